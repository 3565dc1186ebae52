import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { RunEvent } from "../engine/events.ts";
import { FakeAgent } from "../fakes/fake-agent.ts";
import { FakeEnv } from "../fakes/fake-env.ts";
import {
  agent,
  CapabilityMissing,
  CostExceeded,
  env,
  flow,
  FlowCancelled,
  HarnessUnrecoverable,
  localEnv,
  outworlder,
  ParamsError,
  z,
} from "../flows/index.ts";
import { machineDir } from "../home/paths.ts";
import { Hmz } from "./hmz.ts";
import { Refused } from "./refused.ts";
import type { Run } from "./run.ts";

const root = mkdtempSync(join(tmpdir(), "hmz-run-"));
after(() => rmSync(root, { recursive: true }));
const home = join(root, "home");
const bin = join(root, "bin");
mkdirSync(bin);
writeFileSync(join(bin, "claude"), "#!/bin/sh\n", { mode: 0o755 });
writeFileSync(join(root, "a.json"), JSON.stringify({ scenes: [{ steps: [{ say: "said" }] }] }));
const variables = { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, OPENAI_API_KEY: "none", TMPDIR: root };
const hmz = new Hmz({ workspace: root, home, env: variables });
const budget = { cost: 5 };

const twice = flow({ agents: { builder: agent() } }, async (task, { agents: { builder } }) => {
  const session = await builder.spawn();
  await builder.run(task, { session });
  return builder.run("again", { session });
});

function epicsMade(): number {
  const shelf = join(home, "epics");
  return existsSync(shelf) ? readdirSync(shelf).flatMap((key) => readdirSync(join(shelf, key))).length : 0;
}

function record(run: Run): readonly Readonly<Record<string, unknown>>[] {
  const text = readFileSync(join(run.epic ?? "", "epic.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function failure(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => assert.fail("it did not fail"),
    (error: unknown) => error as Error,
  );
}

test("a run starts once it is waited for, and ends with what the flow returned", async () => {
  const builder = new FakeAgent({ reply: ["one", "two"], cost: 0.5, outputTokens: 7 });
  const run = hmz.run(twice, "build", { agents: { builder }, budget });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(builder.sessions.length, 0);
  assert.equal(run.epic, undefined);
  assert.equal(await run.wait(), "two");
  assert.equal(run.result, "two");
  assert.deepEqual(builder.prompts, ["build", "again"]);
  assert.equal(run.usage.cost, 1);
  assert.equal(run.usage.outputTokens, 14);
  assert.equal(builder.closed, 1);
  assert.equal(builder.live, 0);
  assert.deepEqual(run.running, []);
});

test("the epic: began, opened, usage, ended; nothing holds it afterwards", async () => {
  const builder = new FakeAgent({ model: "m", effort: "high" });
  const run = hmz.run(twice, "build", { agents: { builder }, budget: { cost: Infinity, duration: "1h" } });
  await run.wait();
  const events = record(run);
  assert.deepEqual(
    events.map(({ event }) => event),
    ["began", "opened", "usage", "ended"],
  );
  const [began, , , ended] = events;
  assert.equal(began?.["task"], "build");
  assert.deepEqual(began?.["agents"], [
    { agent: "builder", backend: "claude", model: "m", effort: "high", provider: "" },
  ]);
  assert.deepEqual(began?.["budget"], { duration: 3_600_000, cost: "Infinity" });
  assert.equal(ended?.["how"], "done");
  assert.equal(existsSync(join(run.epic ?? "", ".held")), false);
  const stream = readFileSync(join(run.epic ?? "", "events.jsonl"), "utf8")
    .trimEnd()
    .split("\n");
  assert.equal(stream.filter((line) => line.includes('"kind":"result"')).length, 2);
});

test("events: several readers, each from when it came, to the end", async () => {
  const run = hmz.run(twice, "build", { agents: { builder: new FakeAgent() }, budget });
  const read = async (): Promise<string[]> => {
    const kinds: string[] = [];
    for await (const { kind } of run.events) kinds.push(kind);
    return kinds;
  };
  const watched: RunEvent[] = [];
  run.watch(() => {
    throw new Error("a reader that fails");
  });
  run.watch((event) => watched.push(event));
  const [one, other] = [read(), read()];
  await run.start();
  const late = read();
  await run.wait();
  assert.deepEqual(await one, await other);
  assert.deepEqual(
    await one,
    watched.map(({ kind }) => kind),
  );
  assert.deepEqual((await one).filter((kind) => kind === "begins" || kind === "ends").length, 4);
  assert.ok((await late).length <= (await one).length);
  assert.deepEqual(await read(), []);
});

test("a fault of the flow fails the run with itself, and the record says so", async () => {
  const broken = flow({}, async () => {
    throw new TypeError("no such thing");
  });
  const run = hmz.run(broken, "x", { budget });
  const error = await failure(run.wait());
  assert.ok(error instanceof TypeError);
  const ended = record(run).at(-1);
  assert.equal(ended?.["how"], "failed");
  assert.deepEqual(ended?.["error"], { name: "TypeError", message: "no such thing" });
});

test("a spent budget stops the run", async () => {
  const loop = flow({ agents: { builder: agent() } }, async (task, { agents: { builder } }) => {
    for (;;) await builder.run(task);
  });
  const builder = new FakeAgent({ cost: 2 });
  const run = hmz.run(loop, "x", { agents: { builder }, budget });
  assert.ok((await failure(run.wait())) instanceof CostExceeded);
  assert.equal(record(run).at(-1)?.["how"], "stopped");
  assert.equal(builder.prompts.length, 3);
  assert.equal(builder.closed, 1);
});

const waiting = flow({}, async (_task, { ctx }) => {
  await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error)));
});

test("stop, from a method and from a signal", async () => {
  const run = hmz.run(waiting, "x", { budget });
  await run.start();
  assert.equal(run.running.length, 1);
  run.stop("enough");
  const error = await failure(run.wait());
  assert.ok(error instanceof FlowCancelled);
  assert.match(error.message, /enough/);
  assert.equal(record(run).at(-1)?.["how"], "stopped");

  const controller = new AbortController();
  const other = hmz.run(waiting, "x", { budget, signal: controller.signal });
  await other.start();
  controller.abort();
  assert.ok((await failure(other.wait())) instanceof FlowCancelled);
});

test("a run that is stopped before it started never starts, and leaves no epic", async () => {
  const made = epicsMade();
  const builder = new FakeAgent();
  const run = hmz.run(twice, "x", { agents: { builder }, budget });
  run.stop();
  assert.ok((await failure(run.wait())) instanceof FlowCancelled);
  const aborted = hmz.run(twice, "x", { agents: { builder }, budget, signal: AbortSignal.abort() });
  assert.ok((await failure(aborted.wait())) instanceof FlowCancelled);
  assert.equal(builder.prompts.length, 0);
  assert.equal(epicsMade(), made);
});

test("a second stop ends the sessions of a harness that does not come to rest", async () => {
  const stubborn = new FakeAgent();
  const open = stubborn.open.bind(stubborn);
  let closed = 0;
  let began = (): void => {};
  const taking = new Promise<void>((resolve) => (began = resolve));
  stubborn.open = (opening) => {
    const session = open(opening);
    let end = (): void => {};
    session.take = () => {
      began();
      return new Promise((_, reject) => (end = () => reject(new Error("ended"))));
    };
    session.close = async () => {
      closed += 1;
      end();
    };
    return session;
  };
  const run = hmz.run(twice, "x", { agents: { builder: stubborn }, budget });
  await run.start();
  await taking;
  run.stop();
  assert.equal(closed, 0);
  run.stop();
  assert.ok((await failure(run.wait())) instanceof FlowCancelled);
  assert.equal(closed, 1);
});

test(
  "a stop reaches the run, however early it comes",
  { skip: process.platform !== "linux", timeout: 60_000 },
  async (t) => {
    for (const ms of [0, 60]) {
      // What a killed run left is ended as this one starts, and takes its time where it does not obey.
      const left = spawn("sh", ["-c", "trap '' TERM; while :; do sleep 0.05; done"], {
        detached: true,
        stdio: "ignore",
        env: { PATH: process.env["PATH"], HMZ_MARK: "killed.tree" },
      });
      t.after(() => left.kill("SIGKILL"));
      await once(left, "spawn");
      const going = join(machineDir(variables), "going");
      mkdirSync(going, { recursive: true });
      writeFileSync(join(going, "note.json"), JSON.stringify({ pid: process.pid, start: 1, mark: "killed" }));
      const run = hmz.run(waiting, "x", { budget });
      const ended = failure(run.wait());
      await new Promise((resolve) => setTimeout(resolve, ms));
      run.stop();
      assert.ok((await ended) instanceof FlowCancelled, `stopped after ${ms} ms`);
    }
  },
);

test("a run that is disposed of is stopped, and waited for", async () => {
  const run = hmz.run(waiting, "x", { budget });
  await run.start();
  await run[Symbol.asyncDispose]();
  assert.equal(record(run).at(-1)?.["how"], "stopped");
  await hmz.run(waiting, "x", { budget })[Symbol.asyncDispose]();
});

test("one agent for two roles is closed once", async () => {
  const both = flow({ agents: { one: agent(), two: agent() } }, async (task, { agents }) => {
    await agents.one.run(task);
    await agents.two.run(task);
  });
  const fake = new FakeAgent();
  await hmz.run(both, "x", { agents: { one: fake, two: fake }, budget }).wait();
  assert.equal(fake.closed, 1);
  assert.equal(fake.prompts.length, 2);
});

test("fake environments and places of this machine", async () => {
  const reads = flow(
    { envs: { repo: env({ needs: ["files"] }), here: localEnv(), other: env() } },
    async (_task, { envs: { repo, here, other } }) => [await repo.readText("a"), here.workdir, other.workdir],
  );
  const run = hmz.run(reads, "x", {
    envs: { repo: new FakeEnv({ files: { a: "text" } }), other: `local${home}` },
    budget,
  });
  assert.deepEqual(await run.wait(), ["text", root, home]);
  assert.deepEqual(record(run)[0]?.["envs"], ["repo=local/work", `other=local${home}`]);
});

const choosy = flow(
  {
    name: "choosy",
    agents: { builder: agent({ needs: ["goal"] }), human: outworlder() },
    envs: { repo: env({ cpus: 4 }) },
    params: z.object({ rounds: z.number() }),
  },
  async () => {},
);
const goals = new FakeAgent();
const given = { agents: { builder: goals }, envs: { repo: new FakeEnv() }, params: { rounds: "3" }, budget };
const REFUSALS: readonly [string, () => Run, string][] = [
  [
    "an agent spec",
    () => hmz.run(choosy, "x", { ...given, agents: { builder: "vim/m" } }),
    "-a 'builder=vim/m': expected [NAME=]CLI[@PROVIDER]/MODEL[:EFFORT]",
  ],
  [
    "an env spec",
    () => hmz.run(choosy, "x", { ...given, envs: { repo: "podman/x" } }),
    "-e 'repo=podman/x': 'podman' is not a backend; one of local, ssh, docker, swarm, apple-container, slurm",
  ],
  [
    "a machine that is not opened yet",
    () => hmz.run(choosy, "x", { ...given, envs: { repo: "docker/x" } }),
    "-e 'repo=docker/x': this release opens environments on this machine alone; write repo=local/<workdir>",
  ],
  [
    "a workdir that is none",
    () => hmz.run(choosy, "x", { ...given, envs: { repo: "local/no/such/directory" } }),
    "-e 'repo=local/no/such/directory': /no/such/directory is not a directory",
  ],
  [
    "a harness that is not driven yet",
    () => hmz.run(twice, "x", { agents: { builder: "pi/m" }, budget }),
    "pi/m: this release does not drive pi yet; it drives claude and native",
  ],
  [
    "an effort",
    () => hmz.run(twice, "x", { agents: { builder: "claude/m:huge" }, budget }),
    "HarnessUnrecoverable: claude/m:huge: 'huge' is not an effort of claude; one of max, xhigh, high, medium, low",
  ],
  [
    "a model of native",
    () => hmz.run(twice, "x", { agents: { builder: "native/m" }, budget }),
    "HarnessUnrecoverable: native/m: 'm' names no model of native: write <provider>/<model>, where the provider is one of anthropic, openai, google, openai-compatible, scripted",
  ],
  [
    "a role",
    () => hmz.run(choosy, "x", { ...given, agents: { ...given.agents, human: goals } }),
    "choosy: 'human' is assigned automatically by the runtime and cannot be set with -a",
  ],
  [
    "a need",
    () => hmz.run(choosy, "x", { ...given, agents: { builder: new FakeAgent({ harness: "pi" }) } }),
    "choosy: 'builder' needs goal, which pi does not support",
  ],
  [
    "no budget",
    () => hmz.run(choosy, "x", { ...given, budget: undefined }),
    "choosy requires a budget: specify with -p budget.cost=...,budget.duration=...,budget.output_tokens=...",
  ],
  [
    "a budget of nothing",
    () => hmz.run(choosy, "x", { ...given, budget: {} }),
    "a budget sets at least one of duration, cost, output_tokens",
  ],
  [
    "resuming what keeps nothing",
    () => hmz.run(choosy, "x", { ...given, resume: true }),
    "choosy does not support resuming, so there is no run to resume",
  ],
  [
    "resuming nothing",
    () =>
      hmz.run(
        flow({ name: "keeps", resumable: true }, async () => {}),
        "x",
        { budget, resume: true },
      ),
    "keeps has no run to resume here: none saved any progress",
  ],
  [
    "a ref that names nothing",
    () => hmz.run("no_such_flow", "x", { budget }),
    "no_such_flow: no flow is called 'no_such_flow'",
  ],
  [
    "what is no flow",
    () => hmz.run({} as never, "x", { budget }),
    "this value is not a flow; give what flow() returned, or a ref",
  ],
  [
    "what is no agent",
    () => hmz.run(twice, "x", { agents: { builder: 5 as never }, budget }),
    "the agent given for 'builder' is neither a spec nor a driver",
  ],
];
for (const [what, run, message] of REFUSALS) {
  test(`refused before anything is made: ${what}`, async () => {
    const made = epicsMade();
    const error = await failure(run().wait());
    assert.ok(error instanceof Refused, String(error.stack));
    assert.equal(error.code, "HMZ_REFUSED");
    assert.equal(error.message, message);
    assert.equal(epicsMade(), made);
  });
}

test("a refusal keeps the error that says why", async () => {
  const params = await failure(hmz.run(choosy, "x", { ...given, params: { rounds: "many" } }).wait());
  assert.ok(params instanceof Refused && params.cause instanceof ParamsError);
  assert.match(params.message, /^choosy: rounds: /);
  const machine = await failure(hmz.run(choosy, "x", { ...given, envs: { repo: new FakeEnv({ cpus: 1 }) } }).start());
  assert.ok(machine instanceof Refused);
  const effort = await failure(hmz.run(twice, "x", { agents: { builder: "claude/m:huge" }, budget }).check());
  assert.ok(effort.cause instanceof HarnessUnrecoverable);
  const shell = flow({ envs: { repo: env({ needs: ["git"] }) } }, async () => {});
  const bare = await failure(hmz.run(shell, "x", { envs: { repo: new FakeEnv({ needs: ["files"] }) }, budget }).wait());
  assert.ok(bare instanceof Refused && bare.cause instanceof CapabilityMissing, String(bare));
});

test("what was opened before a refusal is closed", async () => {
  const builder = new FakeAgent();
  await failure(hmz.run(twice, "x", { agents: { builder }, envs: { repo: new FakeEnv() }, budget }).wait());
  // It is refused by its roles, before anything is opened.
  assert.equal(builder.closed, 0);
  await failure(hmz.run(choosy, "x", { ...given, agents: { builder }, envs: { repo: "local/no/such" } }).wait());
  assert.equal(builder.closed, 1);
});

test("a record that cannot be kept refuses the run", async () => {
  const file = join(root, "file");
  writeFileSync(file, "");
  const builder = new FakeAgent();
  const error = await failure(
    new Hmz({ workspace: root, home: file }).run(twice, "x", { agents: { builder }, budget }).wait(),
  );
  assert.ok(error instanceof Refused);
  assert.match(error.message, /^the record of the run cannot be kept: /);
  assert.equal(builder.prompts.length, 0);
});

test("unreadable: a cost limit on a model without a price", async () => {
  const specs = (model: string, limits: object = budget): Run =>
    hmz.run(twice, "x", { agents: { builder: `native/${model}` }, budget: limits });
  const unpriced = specs("openai/no-such-model-9");
  assert.equal(unpriced.unreadable(), "");
  await unpriced.check();
  assert.equal(
    unpriced.unreadable(),
    "'openai/no-such-model-9' has no price here, so budget.cost does not limit it; budget.duration and budget.output_tokens do",
  );
  for (const run of [
    specs("scripted/a.json"),
    specs("openai/no-such-model-9", { cost: Infinity }),
    specs("openai/no-such-model-9", { duration: "1h" }),
    hmz.run(twice, "x", { agents: { builder: "claude/opus" }, budget }),
    hmz.run(twice, "x", { agents: { builder: new FakeAgent() }, budget }),
  ]) {
    await run.check();
    assert.equal(run.unreadable(), "");
  }
});
