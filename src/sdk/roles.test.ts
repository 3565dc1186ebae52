import assert from "node:assert/strict";
import { test } from "node:test";
import { definition } from "../flows/definition.ts";
import { agent, cli, command, env, flow, localEnv, optional, outworlder, tool, z } from "../flows/index.ts";
import { Refused } from "./refused.ts";
import { checkAgents, checkEnvs, type GivenAgent, requiredBudget } from "./roles.ts";

const work = definition(
  flow(
    {
      agents: {
        builder: agent({ needs: ["goal", "steering"] }),
        reviewer: optional(agent({ harness: "codex" })),
        human: outworlder(),
      },
      envs: { repo: env(), spare: optional(env()), workspace: localEnv() },
    },
    async () => {},
  ),
);
const plain = definition(flow({}, async () => {}));
const shelved = definition(
  flow(
    {
      agents: {
        asker: agent({
          clis: [
            cli({
              name: "board",
              about: "a board",
              commands: [command({ name: "post", about: "posts", call: async () => "" })],
            }),
          ],
        }),
      },
    },
    async () => {},
  ),
);
const offering = definition(
  flow(
    {
      agents: {
        helper: agent({
          tools: [tool({ name: "look", about: "looks", takes: z.object({}), call: async () => "seen" })],
          callbacks: { beforeModel: [async () => undefined] },
        }),
      },
    },
    async () => {},
  ),
);

const builder: GivenAgent = { role: "builder", harness: "claude" };
const AGENTS: readonly [string, typeof work, readonly GivenAgent[], string][] = [
  ["a role twice", work, [builder, builder], "work: duplicate agent role 'builder'"],
  [
    "a role the flow does not declare",
    work,
    [{ role: "tester", harness: "claude" }],
    "work has no agent role 'tester'; available roles are 'builder', 'reviewer'",
  ],
  ["a role of a flow of none", plain, [builder], "work has no agent role 'builder'; it takes none"],
  [
    "an outworlder",
    work,
    [builder, { role: "human", harness: "claude" }],
    "work: 'human' is assigned automatically by the runtime and cannot be set with -a",
  ],
  [
    "nothing for a required role",
    work,
    [{ role: "reviewer", harness: "codex" }],
    "work needs an agent for 'builder'; specify each with -a ROLE=CLI/MODEL:EFFORT",
  ],
  [
    "a harness that lacks a need",
    work,
    [{ role: "builder", harness: "pi" }],
    "work: 'builder' needs goal, which pi does not support",
  ],
  [
    "a driver that serves less than its harness's row",
    work,
    [{ ...builder, serves: new Set(["goal"]) }],
    "work: 'builder' needs steering, which claude does not support",
  ],
  [
    "another harness",
    work,
    [builder, { role: "reviewer", harness: "claude" }],
    "work: 'reviewer' requires codex, but got claude",
  ],
  [
    "command lines without a shell",
    shelved,
    [{ role: "asker", harness: "litellm" }],
    "work: 'asker' declares clis, and litellm has no shell to run them from",
  ],
  [
    "command lines on a driver that puts none on a PATH",
    shelved,
    [{ role: "asker", harness: "claude", shelves: false }],
    "work: 'asker' declares clis, and this release puts none on the PATH of claude; offer their commands as tools",
  ],
  [
    "tools on a harness without any",
    offering,
    [{ role: "helper", harness: "kimi" }],
    "work: 'helper' needs tools, which kimi does not support",
  ],
  [
    "callbacks on a driver without any",
    offering,
    [{ role: "helper", harness: "claude", serves: new Set(["tools"]) }],
    "work: 'helper' needs model_callbacks, which claude does not support",
  ],
];
for (const [what, definition, given, message] of AGENTS) {
  test(`refuses ${what}`, () => {
    assert.throws(() => checkAgents("work", definition, given), new Refused(message));
  });
}

test("what fills the roles passes", () => {
  checkAgents("work", work, [builder, { role: "reviewer", harness: "codex" }]);
  checkAgents("work", work, [builder]);
  checkAgents("work", offering, [{ role: "helper", harness: "native" }]);
  checkEnvs("work", work, ["repo"]);
  checkEnvs("work", work, ["spare", "repo"]);
});

const ENVS: readonly [string, typeof work, readonly string[], string][] = [
  ["an environment twice", work, ["repo", "repo"], "work: duplicate environment role 'repo'"],
  [
    "an environment the flow does not declare",
    work,
    ["box"],
    "work has no environment role 'box'; available roles are 'repo', 'spare'",
  ],
  ["an environment of a flow of none", plain, ["box"], "work has no environment role 'box'; it takes none"],
  [
    "the workspace",
    work,
    ["repo", "workspace"],
    "work: 'workspace' is the workspace the run started in and cannot be set with -e",
  ],
  [
    "nothing for a required environment",
    work,
    [],
    "work needs an environment for 'repo'; specify each with -e ROLE=BACKEND[@PROVIDER]/WORKDIR",
  ],
];
for (const [what, definition, given, message] of ENVS) {
  test(`refuses ${what}`, () => assert.throws(() => checkEnvs("work", definition, given), new Refused(message)));
}

test("a budget is required of every flow but chat", () => {
  assert.throws(
    () => requiredBudget("work", undefined, false),
    new Refused("work requires a budget: specify with -p budget.cost=...,budget.duration=...,budget.output_tokens=..."),
  );
  assert.deepEqual(requiredBudget("chat", undefined, true), { cost: Infinity });
  assert.deepEqual(requiredBudget("chat", { cost: 1 }, true), { cost: 1 });
});
