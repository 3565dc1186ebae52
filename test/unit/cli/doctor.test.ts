import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { HARNESS_NAMES } from "../../../src/flows/harness.ts";
import { DRIVEN, openAgent } from "../../../src/sdk/drivers.ts";
import { fresh, typed } from "./in-process.ts";

interface Found {
  readonly name: string;
  readonly state: string;
  readonly says: string;
  readonly remedy?: string;
}

async function findings(
  cwd: string,
  env: Record<string, string>,
): Promise<{ status: number; found: Map<string, Found> }> {
  const { status, stdout } = await typed(["doctor", "--json"], { cwd, env });
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Found);
  return { status, found: new Map(lines.map((line) => [line.name, line])) };
}

/** A directory of programs that answer --version. */
function programs(cwd: string, scripts: Readonly<Record<string, string>>): string {
  const bin = join(cwd, "bin");
  mkdirSync(bin);
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

test("a program that is there says its version, and how it is signed in", async () => {
  const cwd = fresh();
  const bin = programs(cwd, { claude: "echo '2.1.9 (Claude Code)'", codex: "echo 1", git: "echo git version 2.50.1" });
  const { status, found } = await findings(cwd, { PATH: bin, ANTHROPIC_API_KEY: "sk-secret" });
  assert.equal(status, 0);
  assert.equal(found.get("claude")?.state, "ok");
  assert.equal(found.get("claude")?.says, `2.1.9 (${bin}/claude), signed in: ANTHROPIC_API_KEY`);
  assert.equal(found.get("git")?.says, `2.50.1 (${bin}/git)`);
  assert.match(found.get("codex")?.says ?? "", /does not drive it yet$/);
  assert.ok(!JSON.stringify([...found.values()]).includes("sk-secret"));
});

test("what is not signed in, or does not start, says what to do", async () => {
  const cwd = fresh();
  const bin = programs(cwd, { claude: "echo 2.1.9" });
  const { found } = await findings(cwd, { PATH: bin });
  assert.equal(found.get("native")?.state, "attention");
  if (process.platform !== "darwin") {
    assert.equal(found.get("claude")?.state, "attention");
    assert.equal(found.get("claude")?.remedy, "run claude once and sign in, or set ANTHROPIC_API_KEY");
  }
  mkdirSync(join(cwd, ".claude"));
  writeFileSync(join(cwd, ".claude", ".credentials.json"), "{}");
  assert.equal((await findings(cwd, { PATH: bin })).found.get("claude")?.state, "ok");
  writeFileSync(join(bin, "claude"), "#!/bin/sh\nexit 1\n");
  assert.match((await findings(cwd, { PATH: bin })).found.get("claude")?.says ?? "", /does not start$/);
});

test("a caches directory that others can write is said", async () => {
  const cwd = fresh();
  const path = join(cwd, `humanize-${process.getuid?.() ?? -1}`);
  mkdirSync(path);
  chmodSync(path, 0o777);
  assert.match((await findings(cwd, {})).found.get("caches")?.says ?? "", /can be written by others/);
});

test("for a person, the remedy stands under what it is for", async () => {
  const { stdout } = await typed(["doctor"], { env: { PATH: "" } });
  assert.match(stdout, /^this machine\n {2}ok {9}node /);
  assert.match(stdout, /^ {2}attention {2}native .*\n {27}→ set ANTHROPIC_API_KEY/m);
});

test("the doctor knows which harnesses this release drives", async () => {
  for (const harness of HARNESS_NAMES) {
    const spec = { harness, provider: "", model: "scripted/x", effort: "", text: harness };
    const driven = await openAgent(spec, { workspace: fresh(), env: {} }).then(
      () => true,
      (error: Error) => !error.message.includes("does not drive"),
    );
    assert.equal(DRIVEN.includes(harness), driven, harness);
  }
});

test("a home that cannot be made is missing: a file, and what the kernel keeps", async () => {
  const cwd = fresh();
  writeFileSync(join(cwd, "file"), "");
  for (const home of [
    join(cwd, "file"),
    join(cwd, "file/under"),
    ...(existsSync("/proc/self") ? ["/proc/nope"] : []),
  ]) {
    const { status, found } = await findings(cwd, { HUMANIZE_HOME: home });
    assert.equal(found.get("home")?.state, "missing", home);
    assert.equal(status, 1);
  }
});
