import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { FakeAgent } from "../fakes/fake-agent.ts";
import { agent, flow, HarnessThrottled } from "../flows/index.ts";
import { Hmz } from "../sdk/hmz.ts";
import { follow } from "./exec.ts";
import { version } from "../sdk/version.ts";
import type { Io } from "./io.ts";
import { main } from "./main.ts";

const root = mkdtempSync(join(tmpdir(), "hmz-exec-"));
after(() => rmSync(root, { recursive: true }));
const home = join(root, "home");
mkdirSync(join(root, ".hmz", "flows"), { recursive: true });
writeFileSync(
  join(root, ".hmz", "flows", "twice.ts"),
  `/** Two passes. */
import { agent, flow, z } from "hmz/flows";
export const twice = flow(
  { agents: { builder: agent() }, params: z.object({ again: z.string().default("again") }) },
  async (task, { agents: { builder }, params }) => {
    const session = await builder.spawn();
    await builder.run(task, { session });
    return builder.run(params.again, { session });
  },
);
export const loop = flow({ name: "loop", agents: { builder: agent() } }, async (task, { agents: { builder } }) => {
  for (;;) await builder.run(task);
});
export const bad = flow({ name: "bad" }, async () => {
  throw new TypeError("no\\u001b[31m such thing");
});
`,
);
writeFileSync(
  join(root, "script.json"),
  JSON.stringify({
    scenes: [
      { steps: [{ say: "first", usage: { input: 10, output: 5 } }] },
      { steps: [{ say: "second", usage: { input: 20, output: 6 } }] },
    ],
  }),
);
const BUILDER = "builder=native/scripted/script.json";
const flowsDirectory = join(root, ".hmz", "flows");
for (const [path, text] of [
  [
    "needs.ts",
    `import { agent, cli, command, env, flow, localEnv, outworlder, z } from "hmz/flows";
const say = command({ name: "say", about: "says", call: () => "said" });
const clis = [cli({ name: "board", about: "a board", commands: [say] })];
export const needs = flow(
  {
    agents: { builder: agent({ needs: ["goal"] }), reviewer: agent({ harness: "codex" }), human: outworlder() },
    envs: { repo: env(), here: localEnv() },
    params: z.object({ rounds: z.number() }),
  },
  async () => {},
);
export const shelves = flow({ agents: { asker: agent({ clis }) } }, async () => {});`,
  ],
  ["wrong.ts", `import { flow } from "hmz/flows";\nexport const wrong = flow({ name: "a b" }, async () => {});`],
  ["fails.ts", `throw new TypeError("no such thing");`],
  [
    "pair.ts",
    `import { flow } from "hmz/flows";\nexport const a = flow({}, async () => {});\nexport const b = flow({}, async () => {});`,
  ],
  ["late/index.ts", `import { flow } from "hmz/flows";\nexport const late = flow({}, async () => {});`],
  ["late/package.json", `{ "peerDependencies": { "hmz": "^99.1.0" } }`],
] as const) {
  mkdirSync(join(flowsDirectory, "late"), { recursive: true });
  writeFileSync(join(flowsDirectory, path), text);
}

class Heard {
  text = "";
  write(text: string): void {
    this.text += text;
  }
}

async function exec(...argv: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const [stdout, stderr] = [new Heard(), new Heard()];
  const io: Io = { stdout, stderr, env: { HUMANIZE_HOME: home }, cwd: root };
  const status = await main(["exec", ...argv], io);
  return { status, stdout: stdout.text, stderr: stderr.text };
}

function epics(): number {
  const shelf = join(home, "epics");
  return existsSync(shelf) ? readdirSync(shelf).flatMap((key) => readdirSync(join(shelf, key))).length : 0;
}

test("a run: lines on stderr, answers on stdout, where its record is", async () => {
  const { status, stdout, stderr } = await exec("-f", "twice", "-a", BUILDER, "-p", "budget.cost=5", "build it");
  assert.equal(stdout, "first\nsecond\n");
  const lines = stderr
    .replace(/for [\d.]+s/g, "for Ns")
    .replace(/in [\d.]+s/g, "in Ns")
    .split("\n");
  assert.deepEqual(lines.slice(0, -2), [
    "● builder is working · native/scripted/script.json · build it",
    "● first",
    "  builder worked for Ns · 10 input · 5 output · scripted",
    "● builder is working · native/scripted/script.json · again",
    "● second",
    "  builder worked for Ns · 20 input · 6 output · scripted",
    "2 turns in Ns · 11 output",
  ]);
  assert.match(lines.at(-2) ?? "", /^record: .*\/epics\/.+/);
  assert.equal(status, 0);
});

test("--json: records alone on stdout, ten keys each, one result between begins and ends", async () => {
  const { status, stdout, stderr } = await exec(
    "build it",
    "--json",
    "-f",
    "twice",
    "-a",
    BUILDER,
    "-p",
    "again=more,budget.cost=5",
  );
  assert.equal(status, 0);
  const events = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const event of events) {
    for (const key of ["at", "agent", "cli", "model", "session", "kind", "text", "whose", "tokens", "spent"]) {
      assert.ok(key in event, key);
    }
  }
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind !== "text");
  assert.deepEqual(kinds, ["begins", "result", "ends", "begins", "result", "ends"]);
  assert.equal(events.findLast(({ kind }) => kind === "begins")?.["text"], "more");
  assert.match(stderr, /^2 turns in [\d.]+s · 11 output\nrecord: .*\n$/);
});

test("a task that starts with a dash follows --", async () => {
  const { status, stderr } = await exec("-f", "twice", "-a", BUILDER, "-p", "budget.cost=5", "--", "--help");
  assert.equal(status, 0);
  assert.match(stderr, /· --help\n/);
});

test("a spent budget is no failure, and is said", async () => {
  const { status, stderr } = await exec("-f", "twice:loop", "-a", BUILDER, "-p", "budget.output_tokens=5", "x");
  assert.equal(status, 0);
  assert.match(stderr, /\nhmz: stopped by its budget: twice:loop: its budget's output tokens are spent\nrecord: /);
});

test("a fault of the flow: its class, its message made safe, its own frames alone", async () => {
  const { status, stderr } = await exec("-f", "twice:bad", "-p", "budget.cost=5", "x");
  assert.equal(status, 1);
  const lines = stderr.split("\n");
  assert.equal(lines[0], "hmz: TypeError: no␛[31m such thing");
  assert.match(lines[1] ?? "", /^ {4}at .*\/\.hmz\/flows\/twice\.ts:15:\d+\)?$/);
  assert.match(lines[2] ?? "", /^record: /);
});

test("what a harness failed at is one line, without a stack", async () => {
  writeFileSync(
    join(root, "refuses.json"),
    JSON.stringify({ scenes: [{ steps: [{ error: { status: 401, message: "no such key" } }] }] }),
  );
  const script = "builder=native/scripted/refuses.json";
  const { status, stderr } = await exec("-f", "twice", "-a", script, "-p", "budget.cost=5", "x");
  assert.equal(status, 1);
  assert.match(stderr, /\nhmz: HarnessRefused: .*no such key.*\nrecord: .*\n$/);
});

test("what an agent lacks is found before the run", async () => {
  const script = "builder=native/scripted/none.json";
  const { status, stderr } = await exec("-f", "twice", "-a", script, "-p", "budget.cost=5", "x");
  assert.equal(status, 2);
  assert.match(
    stderr,
    /^hmz exec: error: 'builder' cannot be native\/scripted\/none\.json: the script .*none\.json cannot be read.*\n$/,
  );
});

const USAGE = "usage: hmz exec -f FLOW [-a ROLE=SPEC]… [-p KEY=VALUE]… [OPTION]… TASK\n";
const AGENTS = ["-a", "builder=claude/m,reviewer=codex/m"];
const FILLED = [...AGENTS, "-e", "repo=local/tmp"];
const REFUSED: readonly [string, readonly string[], string][] = [
  ["no flow", ["x"], `${USAGE}hmz exec: error: -f is needed: which flow to run\n`],
  ["no task", ["-f", "twice"], `${USAGE}hmz exec: error: a task is needed: what the flow is to do\n`],
  ["two tasks", ["-f", "twice", "a", "b"], `${USAGE}hmz exec: error: 'b' is one argument too many\n`],
  ["an unknown option", ["-f", "twice", "--wat", "x"], `${USAGE}hmz exec: error: unknown option '--wat'\n`],
  [
    "a spec that is written wrong",
    ["-f", "nowhere", "-a", "builder", "x"],
    "hmz exec: error: -a 'builder': expected <role>=<harness>[@<provider>]/<model>[:<effort>]\n",
  ],
  [
    "a role given twice over two options",
    ["-f", "twice", "-a", BUILDER, "-a", BUILDER, "x"],
    "hmz exec: error: -a: the role 'builder' is given twice\n",
  ],
  ["a flow that is not there", ["-f", "nowhere", "x"], "hmz exec: error: nowhere: no flow is called 'nowhere'\n"],
  [
    "a missing role",
    ["-f", "twice", "x"],
    "hmz exec: error: twice needs an agent for 'builder'; specify each with -a ROLE=CLI/MODEL:EFFORT\n",
  ],
  [
    "no budget",
    ["-f", "twice", "-a", BUILDER, "x"],
    "hmz exec: error: twice requires a budget: specify with -p budget.cost=...,budget.duration=...,budget.output_tokens=...\n",
  ],
  [
    "an unknown param",
    ["-f", "twice", "-a", BUILDER, "-p", "budget.cost=1,wat=2", "x"],
    "hmz exec: error: twice: there is no param 'wat'; its params are again\n",
  ],
  ...(
    [
      [
        "a flow that is written wrong",
        "wrong",
        `importing the flow at ${join(flowsDirectory, "wrong.ts")} failed: wrong.ts:2: a b: 'a b' is not a flow name: letters, digits, \`_\`, \`.\` and \`-\``,
      ],
      [
        "a flow whose import fails",
        "fails",
        `importing the flow at ${join(flowsDirectory, "fails.ts")} failed: fails.ts:1: no such thing`,
      ],
      [
        "a flow that asks for another release",
        "late",
        `the flow at ${join(flowsDirectory, "late")} asks for hmz ^99.1.0, and this is hmz ${version()}: run it with a release in that range, or change the range in its package.json`,
      ],
      [
        "a ref that is none",
        "a/b/c",
        "'a/b/c' is not a flow's name, [@<flowverse>/][<user>/]<flow>; a path starts with ./, / or ~",
      ],
      [
        "a ref that is relative to nothing",
        ":review",
        "':review' is relative to the flow asking, and no flow is asking",
      ],
      [
        "a module of more flows than one",
        "pair",
        `pair: ${join(flowsDirectory, "pair.ts")} holds a, b and none is called 'pair'; name one as pair:<flow>`,
      ],
      [
        "a flow that its module has not",
        "pair:c",
        `pair:c: ${join(flowsDirectory, "pair.ts")} holds no flow called 'c'; it holds a, b`,
      ],
      ["a path that leads nowhere", "./no", `./no: there is no flow at ${join(root, "no")}`],
    ] as const
  ).map(([what, ref, said]): [string, readonly string[], string] => [
    what,
    ["-f", ref, "-p", "budget.cost=1", "x"],
    `hmz exec: error: ${said}\n`,
  ]),
  ...(
    [
      [
        "a role that is not declared",
        ["-a", "tester=claude/m"],
        "needs has no agent role 'tester'; available roles are 'builder', 'reviewer'",
      ],
      [
        "whoever is outside the run",
        ["-a", "human=claude/m"],
        "needs: 'human' is assigned automatically by the runtime and cannot be set with -a",
      ],
      [
        "a harness that lacks a need",
        ["-a", "builder=pi/m,reviewer=codex/m"],
        "needs: 'builder' needs goal, which pi does not support",
      ],
      [
        "another harness",
        ["-a", "builder=claude/m,reviewer=claude/m"],
        "needs: 'reviewer' requires codex, but got claude",
      ],
      [
        "a missing role",
        ["-a", "builder=claude/m"],
        "needs needs an agent for 'reviewer'; specify each with -a ROLE=CLI/MODEL:EFFORT",
      ],
      [
        "an environment that is not declared",
        [...AGENTS, "-e", "box=local/x"],
        "needs has no environment role 'box'; available roles are 'repo'",
      ],
      [
        "the workspace",
        [...AGENTS, "-e", "here=local/x"],
        "needs: 'here' is the workspace the run started in and cannot be set with -e",
      ],
      [
        "a missing environment",
        AGENTS,
        "needs needs an environment for 'repo'; specify each with -e ROLE=BACKEND[@PROVIDER]/WORKDIR",
      ],
      [
        "an environment that is none",
        [...AGENTS, "-e", "repo=podman/x"],
        "-e 'repo=podman/x': 'podman' is not a backend; one of local, ssh, docker, swarm, apple-container, slurm",
      ],
      [
        "an environment without a workdir",
        [...AGENTS, "-e", "repo=local"],
        "-e 'repo=local': expected <role>=<backend>[@<provider>][/<workdir>]; /<workdir> may be left off only for a runtime saved with one",
      ],
      [
        "an effort",
        ["-a", "builder=claude/m:huge,reviewer=codex/m", "-e", "repo=local/tmp"],
        "HarnessUnrecoverable: claude/m:huge: 'huge' is not an effort of claude; one of max, xhigh, high, medium, low",
      ],
      ["params", [...FILLED, "-p", "rounds=many"], "needs: rounds: Invalid input: expected number, received string"],
      ["a param twice", [...FILLED, "-p", "rounds=1", "-p", "rounds=2"], "-p: 'rounds' is given twice"],
      ["a param that is none", [...FILLED, "-p", "rounds"], "-p 'rounds': expected <key>=<value>"],
      [
        "a budget at a time",
        [...FILLED, "-p", "budget=5"],
        "-p 'budget=5': a budget is given a limit at a time, as budget.cost=5",
      ],
      ["a limit twice", [...FILLED, "-p", "budget.cost=5"], "-p: 'budget.cost' is given twice"],
      ["an empty item", [...FILLED, "-p", ""], "-p '': an item is empty"],
    ] as const
  ).map(([what, argv, said]): [string, readonly string[], string] => [
    `${what}, for what it needs`,
    ["-f", "needs", "-p", "budget.cost=1", ...argv, "x"],
    `hmz exec: error: ${said}\n`,
  ]),
  [
    "command lines without a shell",
    ["-f", "needs:shelves", "-a", "asker=litellm/openai/m", "-p", "budget.cost=1", "x"],
    "hmz exec: error: needs:shelves: 'asker' declares clis, and litellm has no shell to run them from\n",
  ],
  [
    "a budget of no limit",
    ["-f", "twice", "-a", BUILDER, "-p", "budget.graceful=no", "x"],
    "hmz exec: error: -p budget.*: Value error, a budget sets at least one of duration, cost, output_tokens\n",
  ],
  [
    "resuming",
    ["-f", "twice", "-a", BUILDER, "-p", "budget.cost=1", "--resume", "x"],
    "hmz exec: error: twice does not support resuming, so there is no run to resume\n",
  ],
];
for (const [what, argv, said] of REFUSED) {
  test(`refused, with 2 and no epic: ${what}`, async () => {
    const made = epics();
    const { status, stdout, stderr } = await exec(...argv);
    assert.equal(stderr, said);
    assert.equal(stdout, "");
    assert.equal(status, 2);
    assert.equal(epics(), made);
  });
}

test("chat needs no budget", async () => {
  const { status, stdout } = await exec("-f", "chat", "-a", "assistant=native/scripted/script.json", "hi");
  assert.equal(stdout, "first\n");
  assert.equal(status, 0);
});

test("--help fits a screen and ends with an example", async () => {
  const { status, stdout } = await exec("--help");
  assert.equal(status, 0);
  const lines = stdout.trimEnd().split("\n");
  assert.ok(lines.length <= 32);
  assert.ok(lines.every((line) => line.length <= 80));
  assert.match(lines.at(-2) ?? "", /^Example:/);
});

async function followed(builder: FakeAgent, run: Parameters<typeof flow>[1]): Promise<[number, string, string]> {
  const one = flow({ name: "one", agents: { builder: agent() } }, run as never);
  const [stdout, stderr] = [new Heard(), new Heard()];
  const hmz = new Hmz({ workspace: root, home });
  const io: Io = { stdout, stderr, env: {}, cwd: root };
  const status = await follow(hmz.run(one, "x", { agents: { builder }, budget: { cost: 1 } }), io, false);
  return [status, stdout.text, stderr.text];
}

test("a failed turn that the flow survives is shown, and is no failure of the run", async () => {
  let asked = 0;
  const builder = new FakeAgent({
    reply: () => {
      if (asked++ === 0) throw new HarnessThrottled("come back later");
      return "ok";
    },
  });
  const [status, stdout, stderr] = await followed(builder, (async (task: string, { agents }: never) => {
    const { builder } = agents as { builder: { run(task: string): Promise<string> } };
    await builder.run(task).catch(() => {});
    await builder.run(task);
  }) as never);
  assert.equal(status, 0);
  assert.equal(stdout, "ok\n");
  assert.match(stderr, /✗ builder: come back later\n/);
});

for (const [signal, expected] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const) {
  test(`${signal} stops the run, and the status says so once all is released`, async () => {
    const builder = new FakeAgent();
    const [status, , stderr] = await followed(builder, (async (_task: string, { ctx }: never) => {
      const { signal: stopped } = ctx as { signal: AbortSignal };
      setImmediate(() => process.emit(signal, signal));
      await new Promise((resolve) => stopped.addEventListener("abort", resolve));
    }) as never);
    assert.equal(status, expected);
    assert.match(stderr, /^hmz: stopping; .*\nrecord: .*\n$/);
    assert.equal(builder.closed, 1);
    assert.equal(process.listenerCount(signal), 0);
  });
}

for (const [result, said] of [
  [undefined, ""],
  ["what was said", ""],
  [{ ok: false, problems: ["one"] }, 'returned {"ok":false,"problems":["one"]}\n'],
  [7, "returned 7\n"],
  [null, "returned null\n"],
  ["x".repeat(500).split(""), `returned ${JSON.stringify("x".repeat(500).split("")).slice(0, 400)}…\n`],
  [() => 1, "returned a function, which no record can hold\n"],
  [1n, "returned a value that no record can hold: Do not know how to serialize a BigInt\n"],
] as const) {
  test(`what a flow returns is shown, where it is not text: ${typeof result} ${said.length}`, async () => {
    const [status, stdout, stderr] = await followed(new FakeAgent(), async () => result);
    assert.equal(status, 0);
    assert.equal(stdout, "");
    assert.equal(stderr.replace(/record: .*\n$/, ""), said);
  });
}

test("a turn that a flow forgot to wait for is told of", async () => {
  const builder = new FakeAgent({ reply: () => new Promise((resolve) => setTimeout(resolve, 50)) });
  const [status, , stderr] = await followed(builder, (async (task: string, { agents }: never) => {
    const { builder } = agents as { builder: { run(task: string): Promise<string> } };
    builder.run(task).catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
  }) as never);
  assert.equal(status, 0);
  assert.match(stderr, /returned with a turn still under way, which ends now: is an await missing\?/);
});
