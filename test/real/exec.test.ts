/** `hmz exec` as a person runs it, over the real Claude Code. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { FakeEnv, runFake } from "../../src/fakes/index.ts";
import { scripted } from "../model-server/script.ts";
import { type ModelServer, startModelServer } from "../model-server/server.ts";
import { processesWith, PROGRAM } from "./claude.ts";

const HMZ = fileURLToPath(new URL("../../bin/hmz.js", import.meta.url));
const MODEL = "claude-sonnet-4-5";

let server: ModelServer;
let place: string;
let repository: string;
let env: Record<string, string>;

before(async () => {
  server = await startModelServer();
  place = mkdtempSync(join(tmpdir(), "hmz-real-exec-"));
  repository = join(place, "repository");
  mkdirSync(repository);
  env = {
    PATH: `${dirname(PROGRAM)}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    HOME: place,
    HUMANIZE_HOME: join(place, "home"),
    CLAUDE_CONFIG_DIR: join(place, "config"),
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: "scripted",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
  const git = (...args: string[]): void => {
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...args], { cwd: repository, env });
  };
  git("init", "--quiet");
  writeFileSync(join(repository, "README"), "a repository\n");
  git("add", "--all");
  git("commit", "--quiet", "-m", "first");
});

after(async () => {
  await server.close();
  rmSync(place, { recursive: true, force: true });
});

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

/** Runs hmz; `meanwhile` is given it while it runs. */
async function hmz(
  args: readonly string[],
  meanwhile: (pid: number, stderr: () => string) => Promise<void> = async () => {},
): Promise<Ended> {
  const began = Date.now();
  const child = spawn(process.execPath, [HMZ, ...args], { cwd: repository, env, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => child.on("close", resolve));
  await meanwhile(child.pid as number, () => stderr);
  return { status: await exited, stdout, stderr, ms: Date.now() - began };
}

async function until(holds: () => boolean): Promise<void> {
  for (let waited = 0; waited < 30_000; waited += 50) {
    if (holds()) return;
    await wait(50);
  }
  throw new Error("it never came");
}

interface Recorded {
  readonly event: string;
  readonly how?: string;
  readonly cost?: number;
  readonly output_tokens?: number;
}

function epicOf({ stderr }: Ended): { readonly path: string; readonly events: readonly Recorded[] } {
  const path = /^record: (.+)$/m.exec(stderr)?.[1];
  assert.ok(path, `no record in:\n${stderr}`);
  const lines = readFileSync(join(path, "epic.jsonl"), "utf8").trim().split("\n");
  return { path, events: lines.map((line) => JSON.parse(line) as Recorded) };
}

/** Whatever of the run still lives: its home is in the environment of all that it started. */
async function assertNothingLeft(): Promise<void> {
  assert.deepEqual(await processesWith(place), []);
}

test("ralph_loop edits a repository until its budget is spent", async () => {
  const served = server.served()[MODEL]?.output ?? 0;
  const steps = [
    { sh: "echo a line >> notes.txt", usage: { output: 10_000 } },
    { text: "one more line", usage: { output: 10_000 } },
  ];
  const ended = await hmz([
    "exec",
    "-f",
    "ralph_loop",
    "-a",
    `agent=claude/${MODEL}`,
    "-p",
    "budget.cost=1",
    `append a line ${scripted(steps)}`,
  ]);
  assert.equal(ended.status, 0, ended.stderr);
  assert.match(ended.stderr, /stopped by its budget: ralph_loop:ralph_loop: its budget's cost is spent/);
  // 20,000 output tokens a round are 30 cents, and a little for what is read: the fourth round reaches the dollar.
  assert.equal(readFileSync(join(repository, "notes.txt"), "utf8"), "a line\n".repeat(4));
  const { events } = epicOf(ended);
  assert.equal(events.at(-1)?.how, "stopped");
  const usage = events.find(({ event }) => event === "usage");
  assert.equal(usage?.output_tokens, (server.served()[MODEL]?.output ?? 0) - served);
  assert.ok((usage?.cost ?? 0) >= 1.2 && (usage?.cost ?? 0) < 1.3, String(usage?.cost));
  await assertNothingLeft();
});

/** A flow whose `finally` leaves a word, over an agent whose shell goes on and on. */
function writeStuck(): string {
  const file = join(place, "stuck.ts");
  writeFileSync(
    file,
    `import { agent, flow, localEnv } from "hmz/flows";
export const stuck = flow(
  { agents: { worker: agent() }, envs: { workspace: localEnv({ needs: ["files"] }) } },
  async (task, { agents: { worker }, envs: { workspace } }) => {
    try {
      await worker.run(task, { env: workspace });
    } finally {
      const { writeFileSync } = await import("node:fs");
      writeFileSync(workspace.workdir + "/finally", "ran");
    }
  },
);
`,
  );
  return file;
}

const STUCK = [{ sh: "echo begun > begun; setsid sleep 4321 & sleep 4322" }, { text: "never" }];

for (const [signal, status] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const) {
  test(`${signal} in the middle of a tool: the turn is interrupted, finally runs, ${status}`, async () => {
    rmSync(join(repository, "begun"), { force: true });
    rmSync(join(repository, "finally"), { force: true });
    const args = ["exec", "-f", writeStuck(), "-a", `worker=claude/${MODEL}`, "-p", "budget.cost=1"];
    const ended = await hmz([...args, scripted(STUCK)], async (pid) => {
      await until(() => existsSync(join(repository, "begun")));
      process.kill(pid, signal);
    });
    assert.equal(ended.status, status, ended.stderr);
    assert.equal(readFileSync(join(repository, "finally"), "utf8"), "ran");
    assert.equal(epicOf(ended).events.at(-1)?.how, "stopped");
    await assertNothingLeft();
  });
}

test("^C twice ends it at once, and leaves nothing", async () => {
  rmSync(join(repository, "begun"), { force: true });
  const file = join(place, "deaf.ts");
  writeFileSync(
    file,
    `import { agent, flow, localEnv } from "hmz/flows";
export const deaf = flow(
  { agents: { worker: agent() }, envs: { workspace: localEnv() } },
  async (task, { agents: { worker }, envs: { workspace } }) => {
    try {
      await worker.run(task, { env: workspace });
    } finally {
      await new Promise((resolve) => setTimeout(resolve, 600_000));
    }
  },
);
`,
  );
  const args = ["exec", "-f", file, "-a", `worker=claude/${MODEL}`, "-p", "budget.cost=1"];
  const ended = await hmz([...args, scripted(STUCK)], async (pid, stderr) => {
    await until(() => existsSync(join(repository, "begun")));
    process.kill(pid, "SIGINT");
    await until(() => stderr().includes("stopping"));
    process.kill(pid, "SIGINT");
  });
  assert.equal(ended.status, 130, ended.stderr);
  await wait(500);
  await assertNothingLeft();
});

test("kill -9 of hmz leaves no process behind", async () => {
  rmSync(join(repository, "begun"), { force: true });
  const args = ["exec", "-f", writeStuck(), "-a", `worker=claude/${MODEL}`, "-p", "budget.cost=1"];
  await hmz([...args, scripted(STUCK)], async (pid) => {
    await until(() => existsSync(join(repository, "begun")));
    process.kill(pid, "SIGKILL");
  });
  for (let waited = 0; waited < 10_000 && (await processesWith(place)).length > 0; waited += 100) await wait(100);
  await assertNothingLeft();
});

test("with --json, stdout holds records alone, and each turn ends once", async () => {
  const steps = [{ write: [join(repository, "made.txt"), "made\n"] as const }, { text: "made it" }];
  const ended = await hmz([
    "exec",
    "-f",
    "chat",
    "-a",
    `assistant=claude/${MODEL}`,
    "--json",
    `make a file ${scripted(steps)}`,
  ]);
  assert.equal(ended.status, 0, ended.stderr);
  const records = ended.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { kind: string; text: string; tokens: Record<string, number> });
  assert.equal(records.filter(({ kind }) => kind === "result" || kind === "failed").length, 1);
  assert.equal(records.find(({ kind }) => kind === "result")?.text, "made it");
  assert.deepEqual([records[0]?.kind, records.at(-1)?.kind], ["begins", "ends"]);
  assert.equal(readFileSync(join(repository, "made.txt"), "utf8"), "made\n");
});

test("one flow file, unchanged, over Claude Code, over the loop in this process, and over a fake", async () => {
  const file = join(place, "noted.ts");
  writeFileSync(
    file,
    `import { agent, flow, localEnv } from "hmz/flows";
export const noted = flow(
  { agents: { builder: agent() }, envs: { workspace: localEnv({ needs: ["shell", "files"] }) } },
  async (task, { agents: { builder }, envs: { workspace } }) => {
    const session = await builder.spawn();
    const said = await builder.run(task, { session, env: workspace });
    const { stdout } = await workspace.exec(["cat", "note.txt"]);
    await workspace.write("copy.txt", stdout.toUpperCase());
    return said;
  },
);
`,
  );
  const note = join(repository, "note.txt");
  const copied = (): string => readFileSync(join(repository, "copy.txt"), "utf8");

  const claude = await hmz([
    "exec",
    "-f",
    file,
    "-a",
    `builder=claude/${MODEL}`,
    "-p",
    "budget.cost=1",
    `note it ${scripted([{ write: [note, "by claude\n"] as const }, { text: "noted" }])}`,
  ]);
  assert.equal(claude.status, 0, claude.stderr);
  assert.equal(claude.stdout, "noted\n");
  assert.equal(copied(), "BY CLAUDE\n");

  const script = join(place, "noted.json");
  const steps = [{ tools: [{ tool: "write", input: { path: "note.txt", content: "by native\n" } }] }, { say: "noted" }];
  writeFileSync(script, JSON.stringify({ scenes: [{ steps }] }));
  const args = ["exec", "-f", file, "-a", `builder=native/scripted/${script}`, "-p", "budget.cost=1", "note it"];
  const native = await hmz(args);
  assert.equal(native.status, 0, native.stderr);
  assert.equal(native.stdout, "noted\n");
  assert.equal(copied(), "BY NATIVE\n");

  const env = new FakeEnv({ files: { "note.txt": "by a fake\n" } });
  const said = await runFake(file, "note it", { agents: { builder: "noted" }, local: env });
  assert.equal(said, "noted");
  assert.equal(env.text("copy.txt"), "BY A FAKE\n");
});
