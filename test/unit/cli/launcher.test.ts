import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { fresh } from "./in-process.ts";

const LAUNCHER = fileURLToPath(new URL("../../../bin/hmz.js", import.meta.url));
const SOURCES = "--conditions=hmz-source";

function launch(options: readonly string[], argv: readonly string[], launcher = LAUNCHER): Record<string, unknown> {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...options, launcher, ...argv], { encoding: "utf8" });
  return { status, stdout, stderr };
}

test("--version, also through the link that npm makes", () => {
  const { version } = JSON.parse(readFileSync(join(LAUNCHER, "../../package.json"), "utf8")) as { version: string };
  const link = join(fresh(), "hmz");
  symlinkSync(LAUNCHER, link);
  assert.deepEqual(launch([], ["--version"], link), { status: 0, stdout: `hmz ${version}\n`, stderr: "" });
});

test("a command's exit status is the process's, and nothing warns of TypeScript", () => {
  const wrong = launch([SOURCES], ["wrong"]);
  assert.deepEqual(wrong, {
    status: 2,
    stdout: "",
    stderr: "usage: hmz <command> …\nhmz: error: there is no command 'wrong'\n",
  });
  assert.equal(launch([SOURCES], ["--help"])["stderr"], "");
});

test("a Node that is too old is told so in one line", () => {
  const old = join(fresh(), "old.cjs");
  writeFileSync(old, 'Object.defineProperty(process, "version", { value: "v20.20.2" });');
  const { status, stdout, stderr } = launch(["--require", old], ["--version"]);
  assert.deepEqual([status, stdout], [2, ""]);
  assert.match(String(stderr), /^hmz needs Node 22\.18 or newer; this is v20\.20\.2 \(\/.*\)\. Install .*\n$/);
});

test("a checkout that is not built says how to build it", () => {
  const copy = fresh();
  mkdirSync(join(copy, "bin"));
  cpSync(LAUNCHER, join(copy, "bin/hmz.js"));
  writeFileSync(join(copy, "package.json"), '{"type":"module","version":"0.0.0"}');
  const { status, stderr } = launch([], ["flows"], join(copy, "bin/hmz.js"));
  assert.equal(status, 2);
  assert.equal(stderr, `hmz is not built: run \`npm run build\` in ${copy}\n`);
});

test("a reader that leaves is no failure", () => {
  const script = 'node --conditions=hmz-source "$1" --help | true; echo "${PIPESTATUS[0]}"';
  const { stdout, stderr } = spawnSync("bash", ["-c", script, "bash", LAUNCHER], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(process.execPath, "..")}:${process.env["PATH"] ?? ""}` },
  });
  assert.deepEqual([stdout, stderr], ["0\n", ""]);
});

for (const argv of ["--version", "--help", "flows", "doctor", "epics --help", "help new"]) {
  test(`hmz ${argv}, its output lost: one sentence, status 1`, { skip: !existsSync("/dev/full") }, () => {
    const { status, stderr } = inShell(`"$NODE" ${SOURCES} "$LAUNCHER" ${argv} >/dev/full`, fresh());
    assert.equal(status, 1);
    assert.match(stderr, /^hmz: error: the output could not be written: ENOSPC.*\n$/);
  });
}

for (const argv of ["flows", "new x", "new --link", "exec -f chat -a agent=claude/x y", "epics", "doctor"]) {
  test(`hmz ${argv} in a directory that is gone: one sentence, status 2`, () => {
    const { status, stderr } = inShell(`rmdir "$PWD"; "$NODE" ${SOURCES} "$LAUNCHER" ${argv}`, fresh());
    assert.equal(status, 2);
    assert.match(stderr, /^hmz \w+: error: the directory that hmz was started in is gone: change to another one\n$/);
  });
}

test("help needs no directory", () => {
  assert.equal(inShell(`rmdir "$PWD"; "$NODE" ${SOURCES} "$LAUNCHER" --help`, fresh()).status, 0);
});

test("HUMANIZE_HOME where no directory can be made is refused at once", { skip: !existsSync("/proc/self") }, () => {
  const cwd = fresh();
  writeFileSync(join(cwd, "script.json"), JSON.stringify({ scenes: [{ steps: [{ say: "done" }] }] }));
  const env = { HUMANIZE_HOME: "/proc/nope", HUMANIZE_PRICES: "off" };
  const line = `"$NODE" ${SOURCES} "$LAUNCHER" exec -f ralph_loop -a agent=native/scripted/script.json -p budget.cost=1 x`;
  const { status, stderr } = inShell(line, cwd, env);
  assert.equal(status, 2);
  assert.match(
    stderr,
    /the record of the run cannot be kept: \/proc\/nope\S* cannot be made: no directory can be made in \/proc/,
  );
  // The launcher's own directory too.
  assert.equal(inShell(`"$NODE" ${SOURCES} "$LAUNCHER" --help`, cwd, { TMPDIR: "/proc/nope" }).status, 0);
});

test("of NO_COLOR beside FORCE_COLOR Node says nothing, and of anything else it does", () => {
  const both = { FORCE_COLOR: "1", NO_COLOR: "1" };
  const asks = join(fresh(), "asks.mjs");
  writeFileSync(
    asks,
    'import { WriteStream } from "node:tty"; process.once("beforeExit", () => WriteStream.prototype.getColorDepth());',
  );
  const warns = join(fresh(), "warns.cjs");
  writeFileSync(warns, 'process.nextTick(() => process.emitWarning("the NO_COLOR of somebody"));');
  const line = (file: string): string => `"$NODE" ${SOURCES} --import "${file}" "$LAUNCHER" flows`;
  assert.equal(inShell(line(asks), fresh(), both).stderr, "");
  assert.match(inShell(line(warns), fresh(), both).stderr, /Warning: the NO_COLOR of somebody/);
});

function inShell(
  script: string,
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): { status: number | null; stderr: string } {
  const { status, stderr } = spawnSync("bash", ["-c", script], {
    encoding: "utf8",
    cwd,
    timeout: 30_000,
    killSignal: "SIGKILL",
    env: {
      PATH: process.env["PATH"],
      HOME: cwd,
      HUMANIZE_HOME: join(cwd, "home"),
      NODE: process.execPath,
      LAUNCHER,
      ...env,
    },
  });
  return { status, stderr };
}
