import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  agent,
  cli,
  command,
  env,
  flow,
  FlowDefinitionError,
  localEnv,
  optional,
  outworlder,
  tool,
  z,
} from "hmz/flows";
import { declared, definition, definitionOf } from "./definition.ts";

const noop = async () => undefined;
const review = tool({ name: "review", about: "reads", call: () => "ok" });
const board = cli({
  name: "board",
  about: "a board",
  commands: [command({ name: "post", about: "posts", call: () => undefined })],
});

/** As JavaScript calls it: what the compiler refuses must be refused at run time too. */
const define = flow as unknown as (declaration: unknown, run: unknown) => unknown;

const NO_ROLE = "is not a role; a role is declared as one agent or environment";

describe("a declaration that is written wrong", () => {
  const rows: readonly (readonly [what: string, declaration: unknown, message: string, run?: unknown])[] = [
    [
      "no declaration",
      undefined,
      "definition.test: a flow is declared with an object: flow({ agents, envs, params }, run)",
    ],
    [
      "the function first",
      noop,
      "definition.test: a flow is declared with an object: flow({ agents, envs, params }, run)",
    ],
    [
      "no function",
      { name: "f" },
      "f: a flow is an `async` function: flow({ … }, async (task, given) => …)",
      "not a function",
    ],
    ["a name that is not one", { name: "a b" }, "a b: 'a b' is not a flow name: letters, digits, `_`, `.` and `-`"],
    ["a name with a leading dot", { name: ".a" }, ".a: '.a' is not a flow name: letters, digits, `_`, `.` and `-`"],
    ["an empty name", { name: "" }, "definition.test: '' is not a flow name: letters, digits, `_`, `.` and `-`"],
    [
      "a name that is no string",
      { name: 5 },
      "definition.test: '5' is not a flow name: letters, digits, `_`, `.` and `-`",
    ],
    [
      "agents that are no record",
      { name: "f", agents: [agent()] },
      "f: agents=[object Object] is not a record of roles",
    ],
    ["agents that are text", { name: "f", agents: "builder" }, "f: agents=builder is not a record of roles"],
    ["agents that are null", { name: "f", agents: null }, "f: agents=null is not a record of roles"],
    ["envs that are no record", { name: "f", envs: 3 }, "f: envs=3 is not a record of roles"],
    ["params that are no schema", { name: "f", params: {} }, "f: params=[object Object] is not a z.object"],
    ["params of another schema", { name: "f", params: z.string() }, "f: params=[object Object] is not a z.object"],
    [
      "a param called budget",
      { name: "f", params: z.object({ budget: z.number() }) },
      "f: 'budget' is the run's budget, given as -p budget.<limit>=, and cannot be a param",
    ],
    [
      "a role name that is no identifier",
      { name: "f", agents: { "my-builder": agent() } },
      "f: 'my-builder' is not a role: a role's name is a JavaScript identifier",
    ],
    ["a role that is no role", { name: "f", agents: { a: "agent" } }, `f: a: agent ${NO_ROLE}`],
    ["optional around no role", { name: "f", agents: { a: { kind: "optional", role: 1 } } }, `f: a: 1 ${NO_ROLE}`],
    ["an environment as an agent", { name: "f", agents: { a: env() } }, "f: a: an env role is not an Agent"],
    ["something else as an agent", { name: "f", agents: { a: {} } }, "f: a: this is not an Agent"],
    ["an agent as an environment", { name: "f", envs: { e: agent() } }, "f: e: an agent role is not an Env"],
    ["an outworlder as an environment", { name: "f", envs: { e: outworlder() } }, "f: e: this is not an Env"],
    [
      "an agent with an environment's need",
      { name: "f", agents: { a: agent({ needs: ["shell"] as never }) } },
      "f: a: an agent cannot be declared with an environment's needs",
    ],
    [
      "an agent with an unknown need",
      { name: "f", agents: { a: agent({ needs: ["fly"] as never }) } },
      "f: a: 'fly' is not a need of an agent: one of goal, loop, steering, permission_request, subagent_start, " +
        "subagent_stop, ask_user, tools, tool_callbacks, model_callbacks",
    ],
    [
      "needs that are no array",
      { name: "f", agents: { a: agent({ needs: 5 as never }) } },
      "f: a.needs is not an array of needs",
    ],
    [
      "an agent role without its fields",
      { name: "f", agents: { a: { kind: "agent" } } },
      "f: a.needs is not an array of needs",
    ],
    [
      "an unknown harness",
      { name: "f", agents: { a: agent({ harness: "clippy" as never }) } },
      "f: a: 'clippy' is not a harness: one of claude, codex, cursor-agent, opencode, mimo, mcode, qwen, kimi, grok, " +
        "pi, omp, agy, dsh, litellm, acp, native",
    ],
    [
      "a harness that every object has",
      { name: "f", agents: { a: agent({ harness: "toString" as never }) } },
      "f: a: 'toString' is not a harness: one of claude, codex, cursor-agent, opencode, mimo, mcode, qwen, kimi, grok, " +
        "pi, omp, agy, dsh, litellm, acp, native",
    ],
    [
      "an outworlder with needs",
      { name: "f", agents: { human: { kind: "outworlder", needs: ["goal"] } } },
      "f: human: an Outworlder is whoever is outside the run, and has no harness or needs",
    ],
    [
      "a permission that is none",
      { name: "f", agents: { a: agent({ permission: "all" as never }) } },
      "f: a.permission is not a Permission",
    ],
    [
      "a permission that widens outwards",
      { name: "f", agents: { a: agent({ permission: { local: "read", user: "all" } }) } },
      "f: a.permission: a wider scope may not be granted more than a narrower one: local=read, user=all, system=read",
    ],
    [
      "skills that are no list",
      { name: "f", agents: { a: agent({ skills: "lint" as never }) } },
      "f: a.skills is not an array of skill names",
    ],
    [
      "an empty skill",
      { name: "f", agents: { a: agent({ skills: ["lint", ""] }) } },
      "f: a.skills is not an array of skill names",
    ],
    [
      "a skill that is no text",
      { name: "f", agents: { a: agent({ skills: ["lint", 5] as never }) } },
      "f: a.skills is not an array of skill names",
    ],
    [
      "tools that are no list",
      { name: "f", agents: { a: agent({ tools: review as never }) } },
      "f: a.tools is not an array of tools",
    ],
    [
      "clis that are no list",
      { name: "f", agents: { a: agent({ clis: board as never }) } },
      "f: a.clis is not an array of command lines",
    ],
    [
      "tools that are none",
      { name: "f", agents: { a: agent({ tools: [{ name: "x" }] as never }) } },
      "f: a.tools is not an array of tools",
    ],
    [
      "two tools of one name",
      { name: "f", agents: { a: agent({ tools: [review, { ...review }] }) } },
      "f: a.tools names one tool twice",
    ],
    [
      "clis that are none",
      { name: "f", agents: { a: agent({ clis: [{ ...board, name: "a/b" }] }) } },
      "f: a.clis is not an array of command lines",
    ],
    [
      "a cli of no command",
      { name: "f", agents: { a: agent({ clis: [{ ...board, commands: [] }] }) } },
      "f: a.clis is not an array of command lines",
    ],
    [
      "two clis of one name",
      { name: "f", agents: { a: agent({ clis: [board, { ...board }] }) } },
      "f: a.clis names one command line twice",
    ],
    [
      "clis without a shell",
      { name: "f", agents: { a: agent({ harness: "litellm", clis: [board] }) } },
      "f: a.clis needs an agent with a shell",
    ],
    [
      "clis of whoever is outside the run",
      { name: "f", agents: { human: { kind: "outworlder", clis: [board] } } },
      "f: human.clis needs an agent with a shell",
    ],
    [
      "a harness of whoever is outside the run",
      { name: "f", agents: { human: { kind: "outworlder", harness: "claude" } } },
      "f: human: an Outworlder is whoever is outside the run, and has no harness or needs",
    ],
    [
      "callbacks of another name",
      { name: "f", agents: { a: agent({ callbacks: { onTool: [] } as never }) } },
      "f: a.callbacks is not a record of lists of functions",
    ],
    [
      "an environment with an agent's need",
      { name: "f", envs: { e: env({ needs: ["goal"] as never }) } },
      "f: e: an environment cannot be declared with an agent's needs",
    ],
    [
      "an environment with an unknown need",
      { name: "f", envs: { e: env({ needs: ["fly"] as never }) } },
      "f: e: 'fly' is not a need of an environment: one of shell, bash, files, worktree, temp_clone, scratch, rewind, git",
    ],
    ...(["cpus", "memory", "gpus", "gpuMemory"] as const).flatMap((field) =>
      [-1, 1.5, Number.NaN, Infinity, true, "lots"].map(
        (amount) =>
          [
            `${field} of ${String(amount)}`,
            { name: "f", envs: { e: env({ [field]: amount as never }) } },
            `f: e.${field} is not a whole number of at least 0`,
          ] as const,
      ),
    ),
    ["an image with a space", { name: "f", envs: { e: env({ image: "a b" }) } }, "f: e.image is not an image: a b"],
    [
      "an image that is no text",
      { name: "f", envs: { e: env({ image: 5 as never }) } },
      "f: e.image is not an image: 5",
    ],
    [
      "an image of a workspace, with a line break",
      { name: "f", envs: { e: localEnv({ image: "a\n" }) } },
      "f: e.image is not an image: a\n",
    ],
  ];
  for (const [what, declaration, message, run = noop] of rows) {
    it(`is refused: ${what}`, () => {
      assert.throws(
        () => define(declaration, run),
        (error) => {
          assert.ok(error instanceof FlowDefinitionError, String(error));
          assert.equal(error.message, message);
          return true;
        },
      );
    });
  }
});

describe("what a declaration comes to", () => {
  it("a harness brings every need in its row", () => {
    const { agents } = definition(flow({ agents: { a: agent({ harness: "kimi", needs: ["goal"] }) } }, noop));
    const [role] = agents;
    assert.ok(role?.kind === "agent");
    assert.deepEqual([...role.needs].sort(), ["ask_user", "goal", "permission_request", "steering"]);
  });

  it("tools and callbacks bring their needs", () => {
    const { agents } = definition(
      flow({ agents: { a: agent({ tools: [review], callbacks: { beforeTool: [() => 1], afterModel: [] } }) } }, noop),
    );
    const [role] = agents;
    assert.ok(role?.kind === "agent");
    assert.deepEqual([...role.needs].sort(), ["tool_callbacks", "tools"]);
  });

  it("bash brings shell, git brings rewind", () => {
    const { envs } = definition(flow({ envs: { a: env({ needs: ["bash"] }), b: localEnv({ needs: ["git"] }) } }, noop));
    assert.deepEqual(
      envs.map(({ needs, local }) => [[...needs].sort(), local]),
      [
        [["bash", "shell"], false],
        [["git", "rewind"], true],
      ],
    );
  });

  it("amounts are bytes and counts", () => {
    const rows: readonly (readonly [string | number, number])[] = [
      [0, 0],
      [1_024, 1_024],
      ["8GiB", 8 * 2 ** 30],
      ["16 GB", 16e9],
      ["1.5KiB", 1_536],
      ["512M", 512e6],
      ["7", 7],
    ];
    for (const [memory, bytes] of rows) {
      assert.equal(definition(flow({ envs: { e: env({ memory }) } }, noop)).envs[0]?.memory, bytes, String(memory));
    }
  });

  it("roles keep the order they were declared in, and whether they are optional", () => {
    const { agents, envs } = definition(
      flow(
        {
          agents: { z: agent(), human: optional(outworlder()), a: optional(agent()) },
          envs: { z: optional(env()), a: localEnv() },
        },
        noop,
      ),
    );
    assert.deepEqual(
      [...agents, ...envs].map(({ name, kind, optional }) => [name, kind, optional]),
      [
        ["z", "agent", false],
        ["human", "outworlder", true],
        ["a", "agent", true],
        ["z", "env", true],
        ["a", "env", false],
      ],
    );
  });

  it("params refuse unknown keys and keep their refinements", () => {
    const ordered = flow(
      {
        params: z
          .object({ from: z.number(), to: z.number().default(9) })
          .refine(({ from, to }) => from <= to, "from is past to"),
      },
      noop,
    );
    assert.deepEqual(ordered.expectedParams.parse({ from: 1 }), { from: 1, to: 9 });
    assert.throws(() => ordered.expectedParams.parse({ from: 1, other: 1 }), /other/);
    assert.throws(() => ordered.expectedParams.parse({ from: 10 }), /from is past to/);
  });

  it("no params refuse every key", () => {
    const bare = flow({}, noop);
    assert.deepEqual(bare.expectedParams.parse({}), {});
    assert.throws(() => bare.expectedParams.parse({ rounds: 1 }), /rounds/);
  });

  it("finds the definition of a flow alone", () => {
    assert.equal(definitionOf(noop), undefined);
    assert.equal(definitionOf({}), undefined);
    assert.throws(() => definition(noop as never), /this value is not a flow/);
  });
});

it("a flow that another one imports is named by its file, whatever copy of it was loaded", () => {
  for (const [file, name] of [
    ["file:///flows/debate/index.ts?hmz=3", "debate"],
    ["/flows/debate.mts?hmz=12", "debate"],
    ["file:///flows/debate/index.js", "debate"],
  ] as const) {
    assert.equal(declared({}, async () => {}, file).identity.ref, `${name}:${name}`);
  }
});
