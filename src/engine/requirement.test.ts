import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  agent,
  type Flow,
  env,
  flow,
  localEnv,
  optional,
  outworlder,
  Outworlder,
  type Session,
  tool,
  z,
} from "hmz/flows";
import { FakeAgent, FakeEnv, type FakeRunOptions, runFake } from "hmz/fakes";
import { startRun } from "./run.ts";

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

const REF = "requirement.test";
type Call = (task: string, options?: object) => Promise<unknown>;

describe("what a called flow is handed", () => {
  let ran = 0;
  const callee = (declaration: object): Call => flow({ name: "callee", ...declaration }, async () => void ran++);
  const review = tool({ name: "review", about: "reads", call: () => "ok" });
  const everything = { local: "all", user: "all", system: "all", online: "all" } as const;

  const caller = flow(
    {
      name: "caller",
      agents: {
        plain: agent(),
        steers: agent({ needs: ["steering"] }),
        narrow: agent({ permission: { local: "read", online: "none" } }),
        human: outworlder(),
      },
      envs: { box: env({ needs: ["shell"] }), far: env({ needs: ["bash"] }), here: localEnv() },
    },
    async (_task, { agents, envs }) => {
      const { plain, steers, narrow, human } = agents;
      const { box, far } = envs;
      const made = Outworlder.new();
      const rows: readonly (readonly [string, object, object, string])[] = [
        ["no agent", { agents: { a: agent() } }, {}, `MissingRole: ${REF}:callee: no agent was given for 'a'`],
        [
          "undefined for an agent",
          { agents: { a: agent() } },
          { agents: { a: undefined } },
          `MissingRole: ${REF}:callee: no agent was given for 'a'`,
        ],
        ["no environment", { envs: { e: env() } }, {}, `MissingRole: ${REF}:callee: no environment was given for 'e'`],
        [
          "nothing for what may be left out",
          { agents: { a: optional(agent()), h: outworlder() }, envs: { e: optional(env()), l: localEnv() } },
          {},
          "nothing was refused",
        ],
        [
          "an agent without a need",
          { agents: { a: agent({ needs: ["goal", "steering", "ask_user"] }) } },
          { agents: { a: steers } },
          `CapabilityMissing: ${REF}:callee: 'a' needs goal, ask_user, which the agent given was not granted`,
        ],
        ["an agent with more", { agents: { a: agent() } }, { agents: { a: steers } }, "nothing was refused"],
        [
          "an agent whose harness would serve it, and whose role did not declare it",
          { agents: { a: agent({ tools: [review] }) } },
          { agents: { a: plain } },
          `CapabilityMissing: ${REF}:callee: 'a' needs tools, which the agent given was not granted`,
        ],
        [
          "an agent of a narrower permission",
          { agents: { a: agent() } },
          { agents: { a: narrow } },
          `PermissionTooNarrow: ${REF}:callee: 'a' needs local=all, user=read, system=read, online=all, and the agent given holds local=read, user=read, system=read, online=none`,
        ],
        [
          "an agent derived narrower",
          { agents: { a: agent() } },
          { agents: { a: plain.derive({ permission: { online: "none" } }) } },
          `PermissionTooNarrow: ${REF}:callee: 'a' needs local=all, user=read, system=read, online=all, and the agent given holds local=all, user=read, system=read, online=none`,
        ],
        [
          "a role that asks for everything",
          { agents: { a: agent({ permission: everything }) } },
          { agents: { a: plain } },
          `PermissionTooNarrow: ${REF}:callee: 'a' needs local=all, user=all, system=all, online=all, and the agent given holds local=all, user=read, system=read, online=all`,
        ],
        [
          "an agent of another harness",
          { agents: { a: agent({ harness: "codex" }) } },
          { agents: { a: plain } },
          `HarnessMismatch: ${REF}:callee: 'a' is codex, and the agent given is claude`,
        ],
        [
          "an agent for an outworlder",
          { agents: { h: outworlder() } },
          { agents: { h: plain } },
          `CapabilityMissing: ${REF}:callee: 'h' is an Outworlder, and plain is an agent`,
        ],
        ["an outworlder for one", { agents: { h: outworlder() } }, { agents: { h: human } }, "nothing was refused"],
        ["one that the flow made", { agents: { h: outworlder() } }, { agents: { h: made } }, "nothing was refused"],
        [
          "an outworlder for a plain agent",
          { agents: { a: agent() } },
          { agents: { a: human } },
          "nothing was refused",
        ],
        [
          "an outworlder for an agent with needs",
          { agents: { a: agent({ needs: ["goal"] }) } },
          { agents: { a: human } },
          `CapabilityMissing: ${REF}:callee: 'a' asks for what no outworlder can do`,
        ],
        [
          "an outworlder for a harness",
          { agents: { a: agent({ harness: "agy" }) } },
          { agents: { a: made } },
          `CapabilityMissing: ${REF}:callee: 'a' asks for what no outworlder can do`,
        ],
        [
          "an object of its own for an agent",
          { agents: { a: agent() } },
          { agents: { a: { run: async () => "mine" } } },
          `RequirementError: ${REF}:callee: 'a' was given this object, which is not an agent the run handed out`,
        ],
        [
          "an environment for an agent",
          { agents: { a: agent() } },
          { agents: { a: box } },
          `RequirementError: ${REF}:callee: 'a' was given this object, which is not an agent the run handed out`,
        ],
        [
          "a spec for an environment",
          { envs: { e: env() } },
          { envs: { e: "local/work" } },
          `RequirementError: ${REF}:callee: 'e' was given "local/work", which is not an environment the run handed out`,
        ],
        [
          "an environment without a need",
          { envs: { e: env({ needs: ["bash", "files"] }) } },
          { envs: { e: box } },
          `CapabilityMissing: ${REF}:callee: 'e' needs bash, files, which the environment given was not granted`,
        ],
        [
          "an environment with more",
          { envs: { e: env({ needs: ["shell"] }) } },
          { envs: { e: far } },
          "nothing was refused",
        ],
        [
          "an environment with less",
          { envs: { e: env({ cpus: 9 }) } },
          { envs: { e: box } },
          `ResourceUnmet: ${REF}:callee: 'e' needs 9 CPUs, and the environment given has 8`,
        ],
        [
          "an environment with less memory",
          { envs: { e: env({ memory: "65GiB" }) } },
          { envs: { e: box } },
          `ResourceUnmet: ${REF}:callee: 'e' needs ${65 * 2 ** 30} bytes of memory, and the environment given has ${64 * 2 ** 30}`,
        ],
        [
          "an environment with no GPU",
          { envs: { e: env({ gpus: 1 }) } },
          { envs: { e: box } },
          `ResourceUnmet: ${REF}:callee: 'e' needs 1 GPUs, and the environment given has 0`,
        ],
        [
          "GPUs too small",
          { envs: { e: env({ gpuMemory: 1 }) } },
          { envs: { e: box } },
          `ResourceUnmet: ${REF}:callee: 'e' needs 1 bytes of memory per GPU, and the environment given has 0`,
        ],
        [
          "a local environment for a local one",
          { envs: { e: localEnv() } },
          { envs: { e: box } },
          "nothing was refused",
        ],
        [
          "a remote environment for a local one",
          { envs: { e: localEnv() } },
          { envs: { e: far } },
          `CapabilityMissing: ${REF}:callee: 'e' is a LocalEnv, and the environment given is ssh@box/srv, which is not this machine`,
        ],
        [
          "a workspace that does not serve a need",
          { envs: { e: localEnv({ needs: ["files"] }) } },
          {},
          `CapabilityMissing: ${REF}:callee: 'e' needs files, which local/here does not support`,
        ],
        [
          "agents that are none",
          { agents: { a: agent() } },
          { agents: "builder" },
          `RequirementError: ${REF}:callee: agents are given as an object, one for each role`,
        ],
        [
          "environments that are none",
          { envs: { e: env() } },
          { envs: null },
          `RequirementError: ${REF}:callee: environments are given as an object, one for each role`,
        ],
        [
          "a budget that is a number",
          {},
          { budget: 5 },
          "TypeError: a call's budget is made by budget({ duration, cost, outputTokens, graceful })",
        ],
        [
          "a budget that limits nothing",
          {},
          { budget: {} },
          "RangeError: a budget sets at least one of duration, cost, output_tokens",
        ],
        [
          "a workspace that has less",
          { envs: { e: localEnv({ cpus: 99 }) } },
          {},
          `ResourceUnmet: ${REF}:callee: 'e' needs 99 CPUs, and the environment given has 8`,
        ],
        [
          "a role that it does not declare",
          { agents: { a: agent() } },
          { agents: { a: plain, b: plain } },
          `RequirementError: ${REF}:callee has no agent role 'b'; available roles are 'a'`,
        ],
        [
          "an environment role that it does not declare",
          {},
          { envs: { toString: box } },
          `RequirementError: ${REF}:callee has no environment role 'toString'; available roles are none`,
        ],
        [
          "params of another shape",
          { params: z.object({ n: z.number() }) },
          { params: { n: "x" } },
          `ParamsError: ${REF}:callee: n: Invalid input: expected number, received string`,
        ],
        [
          "params as text that is JSON",
          { params: z.object({ n: z.number() }) },
          { params: { n: "5" } },
          "nothing was refused",
        ],
        [
          "params that do not go together",
          {
            params: z
              .object({ from: z.number(), to: z.number() })
              .refine(({ from, to }) => from <= to, "from is past to"),
          },
          { params: { from: "5", to: 1 } },
          `ParamsError: ${REF}:callee: from is past to`,
        ],
        [
          "params that are no object",
          { params: z.object({}) },
          { params: [] },
          `ParamsError: ${REF}:callee: params=[] is not an object of params`,
        ],
        [
          "an unknown param",
          {},
          { params: { n: 1 } },
          `ParamsError: ${REF}:callee: there is no param 'n'; it has no params`,
        ],
      ];
      const told: [string, string, boolean][] = [];
      for (const [what, declaration, options, expected] of rows) {
        const before = ran;
        const said = await refusal(callee(declaration)("go", options));
        if (said !== expected) told.push([what, said, false]);
        const went = ran > before;
        if (went !== (expected === "nothing was refused")) told.push([what, `ran: ${went}`, false]);
      }
      return told;
    },
  );

  it("is refused before anything of it ran, row by row", async () => {
    const fake = () => new FakeAgent({ cost: 1 });
    const agents = { plain: fake(), steers: fake(), narrow: fake() };
    const envs = { far: new FakeEnv({ backend: "ssh", provider: "box", workdir: "/srv" }) };
    const local = new FakeEnv({ workdir: "/here", needs: ["shell"] });
    assert.deepEqual(await runFake(caller, "", { agents, envs, local }), []);
    for (const { sessions } of Object.values(agents)) assert.deepEqual(sessions, []);
  });

  it("is refused what another run handed out", async () => {
    let kept: unknown;
    const keeps = flow({ agents: { a: agent() } }, async (_task, { agents }) => void (kept = agents.a));
    await runFake(keeps);
    const hands = flow({ agents: {} }, async () =>
      refusal(callee({ agents: { a: agent() } })("", { agents: { a: kept } })),
    );
    assert.equal(
      await runFake(hands),
      `RequirementError: ${REF}:callee: 'a' was given this object, which is not an agent the run handed out`,
    );
  });

  it("is exactly its declaration: needs, permission, skills and tools are its role's", async () => {
    const fake = new FakeAgent({ reply: (_prompt, { session }) => session.offered.map(({ name }) => name).join() });
    const narrow = flow(
      {
        name: "narrow",
        agents: { b: agent({ permission: { online: "none" }, skills: ["https://host.test/o/r#test"] }) },
      },
      async (_task, { agents: { b } }) => {
        assert.throws(() => (b as unknown as { onAskUser(fn: null): void }).onAskUser(null), {
          name: "CapabilityNotGranted",
          message: "b: a ask_user hook needs ask_user on the role",
        });
        return b.run("x");
      },
    );
    const wide = flow(
      { agents: { a: agent({ needs: ["ask_user"], skills: ["https://host.test/o/r#lint"], tools: [review] }) } },
      async (_task, { agents: { a } }) => [await a.run("x"), await narrow("", { agents: { b: a } })],
    );
    assert.deepEqual(await runFake(wide, "", { agents: { a: fake } }), ["review", ""]);
    assert.deepEqual(
      fake.sessions.map(({ permission, skills }) => [permission.online, skills]),
      [
        ["all", ["lint"]],
        ["none", ["test"]],
      ],
    );
  });

  it("has hooks and sessions of its own", async () => {
    const heard: string[] = [];
    let callers: Session | undefined;
    const inner = flow({ name: "inner", agents: { b: agent() } }, async (_task, { agents: { b } }) => {
      b.onStop(() => void heard.push("inner's"));
      await b.run("x");
      return refusal(b.run("y", { session: callers as Session }));
    });
    const outer = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      a.onStop(() => void heard.push("outer's"));
      callers = await a.spawn();
      const said = await inner("", { agents: { b: a } });
      await a.run("z");
      return said;
    });
    assert.equal(await runFake(outer), "SessionError: b: a session of a is not one of this agent's");
    assert.deepEqual(heard, ["inner's", "outer's"]);
  });
});

/** A machine that has neither git nor bash on its PATH, and says so. */
class Bare extends FakeEnv {
  constructor() {
    super({
      needs: ["shell", "files", "temp_clone", "scratch"],
      backend: "docker",
      provider: "gpubox",
      workdir: "/repo",
    });
  }

  lacks(need: string): string | undefined {
    const program = { bash: "bash", git: "git", worktree: "git" }[need];
    return program && `${need} needs ${program} on the machine's PATH, and it has none`;
  }
}
const BARE = "docker@gpubox/repo does not support";

describe("what a run is started with", () => {
  const bare = (declaration: object) => flow({ name: "bare", ...declaration }, async () => "ran") as unknown as Flow;
  const rows: readonly (readonly [string, object, FakeRunOptions, string])[] = [
    [
      "an agent of another harness",
      { agents: { a: agent({ harness: "codex" }) } },
      { agents: { a: new FakeAgent() } },
      `HarnessMismatch: ${REF}:bare: 'a' requires codex, but got claude`,
    ],
    [
      "an agent that does not serve a need",
      { agents: { a: agent({ needs: ["goal", "loop"] }) } },
      { agents: { a: new FakeAgent({ harness: "pi" }) } },
      `CapabilityMissing: ${REF}:bare: 'a' needs goal, loop, which pi does not support`,
    ],
    [
      "a role that the flow does not declare",
      { agents: { a: agent() } },
      { agents: { b: "ok" } },
      `RequirementError: ${REF}:bare has no agent role 'b'; available roles are 'a'`,
    ],
    [
      "an environment role that it does not declare",
      {},
      { envs: { e: {} } },
      `RequirementError: ${REF}:bare has no environment role 'e'; available roles are none`,
    ],
    [
      "an agent for the person's role",
      { agents: { human: outworlder() } },
      { agents: { human: new FakeAgent() } },
      `RequirementError: ${REF}:bare: 'human' is assigned automatically by the runtime and cannot be set with -a`,
    ],
    [
      "an environment for the workspace's role",
      { envs: { here: localEnv() } },
      { envs: { here: {} } },
      `RequirementError: ${REF}:bare: 'here' is the workspace the run started in and cannot be set with -e`,
    ],
    [
      "an environment that does not serve a need",
      { envs: { e: env({ needs: ["files", "shell"] }) } },
      { envs: { e: new FakeEnv({ needs: ["shell"], backend: "docker", provider: "gpu" }) } },
      `CapabilityMissing: ${REF}:bare: 'e' needs files, which docker@gpu/work does not support`,
    ],
    ...(
      [
        ["git", "git"],
        ["worktree", "git"],
        ["bash", "bash"],
      ] as const
    ).map(
      ([need, program]) =>
        [
          `a machine without ${program}, for ${need}`,
          { envs: { e: env({ needs: [need] }) } },
          { envs: { e: new Bare() } },
          `CapabilityMissing: ${REF}:bare: 'e' needs ${need}, which ${BARE}: ${need} needs ${program} on the machine's PATH, and it has none`,
        ] as const,
    ),
    [
      "a machine without git, for rewind, which grants nothing alone",
      { envs: { e: env({ needs: ["rewind"] }) } },
      { envs: { e: new Bare() } },
      "nothing was refused",
    ],
    ...(
      [
        ["memory", "65GiB", `${65 * 2 ** 30} bytes of memory`, `${64 * 2 ** 30}`],
        ["gpus", 2, "2 GPUs", "1"],
        ["gpuMemory", 16, "16 bytes of memory per GPU", "8"],
      ] as const
    ).map(
      ([field, asked, needed, there]) =>
        [
          `a machine with less: ${field}`,
          { envs: { e: env({ [field]: asked }) } },
          { envs: { e: new FakeEnv({ gpus: 1, gpuMemory: 8 }) } },
          `ResourceUnmet: ${REF}:bare: 'e' needs ${needed}, and the environment given has ${there}`,
        ] as const,
    ),
    [
      "params that are no object",
      { params: z.object({}) },
      { params: [] as never },
      `ParamsError: ${REF}:bare: params=[] is not an object of params`,
    ],
    [
      "an unknown param",
      { params: z.object({ n: z.number().default(1) }) },
      { params: { m: 1 } },
      `ParamsError: ${REF}:bare: there is no param 'm'; its params are n`,
    ],
    [
      "a workspace that does not serve a need",
      { envs: { here: localEnv({ needs: ["files"] }) } },
      { local: new FakeEnv({ needs: [] }) },
      `CapabilityMissing: ${REF}:bare: 'here' needs files, which local/work does not support`,
    ],
    [
      "a machine with less",
      { envs: { e: env({ cpus: 4 }) } },
      { envs: { e: new FakeEnv({ cpus: 2 }) } },
      `ResourceUnmet: ${REF}:bare: 'e' needs 4 CPUs, and the environment given has 2`,
    ],
    [
      "params that do not validate",
      { params: z.object({ n: z.number() }) },
      {},
      `ParamsError: ${REF}:bare: n: Invalid input: expected number, received undefined`,
    ],
    [
      "params that do not go together",
      {
        params: z.object({ from: z.number(), to: z.number() }).superRefine(({ from, to }, context) => {
          if (from > to) context.addIssue({ code: "custom", path: ["to"], message: `is before ${from}` });
          if (to > 9) context.addIssue({ code: "custom", message: "it ends past 9" });
        }),
      },
      { params: { from: "20", to: "10" } },
      `ParamsError: ${REF}:bare: to: is before 20; it ends past 9`,
    ],
    [
      "a budget that is none",
      {},
      { budget: {} },
      "RangeError: a budget sets at least one of duration, cost, output_tokens",
    ],
  ];
  for (const [what, declaration, options, expected] of rows) {
    it(`is refused: ${what}`, async () => {
      assert.equal(await refusal(runFake(bare(declaration), "", options)), expected);
    });
  }

  it("is refused without what a role requires", () => {
    const env0 = new FakeEnv();
    const setup = {
      task: "",
      agents: {},
      envs: {},
      workspace: { machine: env0, workdir: "/work" },
      outworlder: { away: () => true, ask: async () => "" },
      params: {},
      budget: { cost: 1 },
      prices: { cost: () => undefined },
      recorder: { record: () => assert.fail("something ran") },
      load: () => Promise.reject(new Error("nothing is loaded")),
      keep: () => {
        throw new Error("nothing here is kept");
      },
      skills: async () => [],
    };
    const starts = (declaration: object) => () => startRun({ ...setup, flow: bare(declaration) });
    assert.throws(starts({ agents: { a: agent() } }), {
      name: "MissingRole",
      message: `${REF}:bare needs an agent for 'a'; specify each with -a ROLE=CLI/MODEL:EFFORT`,
    });
    assert.throws(starts({ envs: { e: env() } }), {
      name: "MissingRole",
      message: `${REF}:bare needs an environment for 'e'; specify each with -e ROLE=BACKEND[@PROVIDER]/WORKDIR`,
    });
  });

  it("is filled by runFake where it is left out", async () => {
    const fills = flow(
      {
        agents: {
          plain: agent(),
          pi: agent({ harness: "pi" }),
          maybe: optional(agent()),
          human: outworlder(),
        },
        envs: {
          box: env({ needs: ["files"], cpus: 64, memory: "1TiB", gpus: 2 }),
          maybe: optional(env()),
          here: localEnv(),
        },
        params: z.object({ n: z.number().default(3) }),
      },
      async (task, { agents, envs, params }) => [
        task,
        [agents.plain.harness, await agents.plain.run("x"), agents.pi.harness],
        [agents.maybe, envs.maybe, "maybe" in agents],
        [agents.human.away, await agents.human.run("?")],
        [envs.box.workdir, envs.here.workdir],
        params,
      ],
    );
    assert.deepEqual(await runFake(fills, "task"), [
      "task",
      ["claude", "ok", "pi"],
      [undefined, undefined, false],
      [true, ""],
      ["/work", "/here"],
      { n: 3 },
    ]);
  });

  it("takes replies for agents, files for environments, and a reply for the person", async () => {
    const takes = flow(
      { agents: { a: agent(), human: outworlder() }, envs: { e: env({ needs: ["files"] }) } },
      async (_task, { agents, envs }) => [
        await agents.a.run("x"),
        await agents.human.run("?"),
        await envs.e.readText("a/b.txt"),
      ],
    );
    const options = { agents: { a: ["hi"], human: "yes" }, envs: { e: { "a/b.txt": "text" } } };
    assert.deepEqual(await runFake(takes, "", options), ["hi", "yes", "text"]);
  });
});
