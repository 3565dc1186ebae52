import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
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
