import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fresh, typed } from "./in-process.ts";

function withFlow(name: string, text: string): string {
  const cwd = fresh();
  mkdirSync(join(cwd, ".hmz/flows"), { recursive: true });
  writeFileSync(join(cwd, ".hmz/flows", name), text);
  return cwd;
}

const KERNEL = `/** Writes a kernel. */
import { agent, env, flow, localEnv, optional, outworlder, z } from "hmz/flows";
export const kernel = flow(
  {
    agents: {
      builder: agent({ needs: ["steering"], permission: { online: "none" } }),
      reviewer: optional(agent({ harness: "codex" })),
      human: outworlder(),
    },
    envs: { workspace: localEnv(), gpu: env({ needs: ["bash"], gpus: 1, memory: "8GiB" }) },
    params: z.object({
      target: z.string().describe("what it runs on"),
      mode: z.enum(["fast", "small"]),
      rounds: z.number().int().min(1).default(3),
    }),
    resumable: true,
  },
  async () => {},
);
`;

test("a flow is shown whole, with a command that runs it", async () => {
  const cwd = withFlow("kernel.ts", KERNEL);
  const { status, stdout } = await typed(["flows", "show", "kernel"], { cwd });
  assert.equal(status, 0);
  assert.equal(
    stdout.replace(/^ {2}\/\S*\/bin\/hmz\.js /m, "  hmz "),
    `kernel
Writes a kernel.

agents
  builder   any of claude, codex, kimi, pi, omp, native; needs steering; may touch local=all, user=read, system=read, online=none
  reviewer  optional; codex alone
  human     whoever is outside the run; filled by it

environments
  workspace  the directory that the run is started in; filled by the run
  gpu        a working directory on a machine; needs bash, shell; 8 GiB of memory; 1 GPUs

params
  target  string               required   what it runs on
  mode    "fast" | "small"     required
  rounds  integer, at least 1  default 3

budget     required: cost, duration or output_tokens
resumable  yes: --resume picks up the newest run of it

run it
  hmz exec -f kernel -a builder=claude/sonnet -e gpu=local/DIRECTORY -p 'target=…' -p mode=fast -p budget.cost=5 "add a --dry-run flag"
`,
  );
});

test("a flow that cannot be loaded is listed with why, and shown as a refusal without a stack", async () => {
  const cwd = withFlow("broken.ts", "export const = 1;");
  const { status, stdout } = await typed(["flows"], { cwd });
  assert.equal(status, 0);
  assert.match(stdout, /^@local\/broken +cannot be loaded: /m);
  const shown = await typed(["flows", "broken"], { cwd });
  assert.equal(shown.status, 2);
  assert.match(shown.stderr, /^hmz flows: error: .*broken/);
  assert.doesNotMatch(shown.stderr, /^\s+at /m);
});

test("what a repository writes about its flow cannot colour the terminal", async () => {
  const cwd = withFlow("sly.ts", KERNEL.replace("Writes a kernel.", "\u001b[2J\u001b]0;owned\u0007Sly."));
  for (const argv of [["flows"], ["flows", "sly"]]) {
    const { stdout } = await typed(argv, { cwd, env: { NO_COLOR: "1" }, columns: 80 });
    assert.ok(stdout.includes("␛[2J"), stdout);
    assert.ok(!stdout.includes("\u001b"));
  }
});

test("on a terminal no line is wider than it, and names are bold", async () => {
  const cwd = withFlow("kernel.ts", KERNEL.replace("Writes a kernel.", `Writes ${"a very long ".repeat(20)} kernel.`));
  const { stdout } = await typed(["flows"], { cwd, columns: 60 });
  assert.ok(stdout.includes("\u001b[1m@local/kernel\u001b[22m"));
  // oxlint-disable-next-line no-control-regex
  for (const line of stdout.replace(/\u001b\[\d+m/g, "").split("\n")) assert.ok(line.length <= 60, line);
});

test("--json is one object a line", async () => {
  const cwd = withFlow("kernel.ts", KERNEL);
  const listed = (await typed(["flows", "--json"], { cwd })).stdout.trimEnd().split("\n");
  const own = listed
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find(({ flowverse }) => flowverse === "local");
  assert.equal(own?.["name"], "@local/kernel");
  assert.equal(own?.["resumable"], true);
});

test("a flow that nobody has is refused", async () => {
  const { status, stderr } = await typed(["flows", "show", "no-such-flow"]);
  assert.equal(status, 2);
  assert.equal(stderr, "hmz flows: error: no-such-flow: no flow is called 'no-such-flow'; hmz flows lists them\n");
  assert.equal((await typed(["flows", "show"])).status, 2);
  assert.equal((await typed(["flows", "one", "two"])).status, 2);
});

test("a flow whose name was written wrong: the nearest one is said, of the package and of the project", async () => {
  const cwd = withFlow("kernel.ts", KERNEL);
  for (const [name, near] of [
    ["chta", "chat"],
    ["ralf_loop", "ralph_loop"],
    ["kernle", "kernel"],
    ["@local/kernl", "@local/kernel"],
  ] as const) {
    const { status, stderr } = await typed(["flows", name], { cwd });
    assert.equal(status, 2);
    assert.ok(stderr.endsWith(`; did you mean '${near}'? hmz flows lists them\n`), stderr);
  }
  assert.doesNotMatch((await typed(["flows", "./chta"], { cwd })).stderr, /mean|lists/);
});

for (const [what, make] of [
  [".hmz", (cwd: string) => writeFileSync(join(cwd, ".hmz"), "")],
  [
    ".hmz/flows",
    (cwd: string) => {
      mkdirSync(join(cwd, ".hmz"));
      writeFileSync(join(cwd, ".hmz/flows"), "");
    },
  ],
  [".hmz", (cwd: string) => symlinkSync(".hmz", join(cwd, ".hmz"))],
] as const) {
  test(`${what} that cannot be read is said beside the list`, async () => {
    const cwd = fresh();
    make(cwd);
    const { status, stdout, stderr } = await typed(["flows"], { cwd });
    assert.equal(status, 0);
    assert.match(stdout, /^chat /m);
    assert.match(
      stderr,
      /^hmz flows: no flow of local is listed: \S*\/\.hmz\S* (?:is a file, not a directory|cannot be read: .*)\n$/,
    );
  });
}
