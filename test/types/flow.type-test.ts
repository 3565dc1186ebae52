/** The contract, held by the compiler: each line under an expectation must fail to compile, each other one must not. */

import { agent, env, flow, localEnv, optional, outworlder, tool, z } from "hmz/flows";

const review = tool({
  name: "review",
  about: "reads one file",
  takes: z.object({ path: z.string() }),
  call: ({ path }) => path.length,
});

export const plain = flow({ agents: { builder: agent() }, envs: { workspace: localEnv() } }, async (_task, given) => {
  const { builder } = given.agents;
  const session = await builder.spawn();
  const said: string = await builder.run("go", { session, env: given.envs.workspace });
  const shaped: { ok: boolean } = await builder.run("go", { outputSchema: z.object({ ok: z.boolean() }) });
  // @ts-expect-error steer was not declared
  await builder.steer("now", { session });
  // @ts-expect-error a permission_request hook was not declared
  builder.onPermissionRequest(null);
  // @ts-expect-error exec was not declared
  await given.envs.workspace.exec(["true"]);
  // @ts-expect-error a flow that keeps no journal has no state
  given.ctx.state.set("a", 1);
  return { said, shaped };
});

export const needy = flow(
  {
    agents: {
      worker: agent({ needs: ["steering", "goal"], tools: [review] }),
      claude: agent({ harness: "claude" }),
      maybe: optional(agent({ needs: ["ask_user"] })),
      human: outworlder(),
    },
    envs: { box: env({ needs: ["bash", "files"], memory: "8GiB" }), shellOnly: localEnv({ needs: ["shell"] }) },
    params: z.object({ rounds: z.number().int(), note: z.string().default("") }),
    resumable: true,
  },
  async (_task, { agents, envs, params, ctx }) => {
    const session = await agents.worker.spawn();
    await agents.worker.steer("now", { session, queued: false });
    agents.claude.onAskUser(({ question, options }) => ({ answer: options[0] ?? question }));
    // @ts-expect-error an optional role is used unchecked
    await agents.maybe.run("go");
    if (agents.maybe) await agents.maybe.run("go");
    const away: boolean = agents.human.away;
    await envs.box.exec("ls | wc -l");
    await envs.box.exec(["ls"], { timeout: 1_000 });
    const bytes: Uint8Array = await envs.box.read("a");
    // @ts-expect-error a script needs bash
    await envs.shellOnly.exec("ls");
    const rounds: number = params.rounds;
    ctx.state.set("rounds", rounds);

    const done: { said: string; shaped: { ok: boolean } } = await plain("x", { agents: { builder: agents.worker } });
    // @ts-expect-error a required role is missing
    await plain("x");
    // @ts-expect-error a required role is missing
    await plain("x", { agents: {} });
    // @ts-expect-error no such role
    await plain("x", { agents: { builder: agents.worker, other: agents.worker } });
    await needy("x", {
      // @ts-expect-error the agent given was not granted goal, steering and tools
      agents: { worker: agents.human, claude: agents.claude },
      envs: { box: envs.box },
      params: { rounds: 1 },
    });
    await needy("x", {
      agents: { worker: agents.worker, claude: agents.claude },
      // @ts-expect-error the environment given was not granted bash and files
      envs: { box: envs.shellOnly },
      params: { rounds: 1 },
    });
    await needy("x", {
      agents: { worker: agents.worker, claude: agents.claude },
      envs: { box: envs.box },
      // @ts-expect-error a param of the wrong shape
      params: { rounds: "one" },
    });
    await needy("x", {
      agents: { worker: agents.worker, claude: agents.claude, human: agents.human },
      envs: { box: envs.box, shellOnly: envs.box },
      params: { rounds: 1 },
      budget: { duration: "1h30m", graceful: { cost: false } },
    });
    // @ts-expect-error params that have no default are missing
    await needy("x", { agents: { worker: agents.worker, claude: agents.claude }, envs: { box: envs.box } });
    return { done, away, bytes };
  },
);

// @ts-expect-error not a need of an agent
agent({ needs: ["shell"] });
// @ts-expect-error not a harness
agent({ harness: "clippy" });
// @ts-expect-error an outworlder's permission
outworlder({ permission: {} });
// @ts-expect-error not a need of an environment
env({ needs: ["goal"] });
// @ts-expect-error not a permission kind
agent({ permission: { local: "some" } });
// @ts-expect-error not a scope
agent({ permission: { onlin: "none" } });
// @ts-expect-error a tool's call is given what its schema makes
tool({ name: "t", about: "a", takes: z.object({ n: z.number() }), call: ({ m }) => m });
// @ts-expect-error an environment is no agent
flow({ agents: { a: env() } }, async () => {});
// @ts-expect-error an agent is no environment
flow({ envs: { e: agent() } }, async () => {});
// @ts-expect-error params are an object's schema
flow({ params: z.string() }, async () => {});

export const hooked = flow({ agents: { a: agent({ harness: "claude" }) } }, async (_task, { agents: { a }, ctx }) => {
  a.onStop(({ said, again }) => ({ block: again < 3, reason: said }));
  a.onStop(async () => {});
  a.onStop(null);
  // @ts-expect-error a stop hook answers block and reason
  a.onStop(() => ({ allow: true }));
  // @ts-expect-error a stop hook is given no prompt
  a.onStop(({ prompt }) => void prompt);
  // @ts-expect-error litellm's and others' needs are not claude's
  a.onToolCallback(null);
  a.onPermissionRequest(({ tool, input }) => ({ allow: tool !== "Bash", reason: String(input["command"]) }));
  const narrow = a.derive({ permission: { online: "none" } });
  await narrow.steer("x", { session: await narrow.spawn() });
  await using session = await a.spawn();
  await a.run("x", { session, budget: { duration: "5m", graceful: false }, signal: ctx.signal });
  // @ts-expect-error a session of nothing
  await a.run("x", { session: {} });
  const both: [number, string] = await ctx.group(async (group) =>
    Promise.all([group.run(async () => 1), group.run(async (signal) => String(signal.aborted))]),
  );
  return both;
});

export const kept = flow({ resumable: true }, async (_task, { ctx }) => {
  const count: number = ctx.state.get("count", 0);
  const maybe: string | undefined = ctx.state.get<string>("maybe");
  ctx.state.set("count", count + 1);
  return maybe;
});
