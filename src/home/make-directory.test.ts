import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { makeDirectory } from "./make-directory.ts";
import { UnusablePath } from "./unusable-path.ts";

test("makes what is missing, the uppermost first, with its mode, and nothing twice", () => {
  const root = temporaryDirectory("make-directory");
  assert.deepEqual(makeDirectory(join(root, "a/b"), 0o700), [join(root, "a"), join(root, "a/b")]);
  assert.equal(statSync(join(root, "a/b")).mode & 0o777, 0o700);
  assert.deepEqual(makeDirectory(join(root, "a/b")), []);
});

test("a file in the way, a link that leads nowhere and a name that is too long are one sentence each", () => {
  const root = temporaryDirectory("make-directory");
  writeFileSync(join(root, "file"), "");
  symlinkSync(join(root, "nowhere/at-all"), join(root, "link"));
  for (const [path, said] of [
    ["file", /file cannot be made: it is a file, not a directory$/],
    ["file/under/it", /it cannot be made: .*\/file is a file, not a directory$/],
    ["link/x", /x cannot be made: .*link: something else is there$/],
    ["n".repeat(300), /cannot be made: .*: its name is too long$/],
  ] as const) {
    assert.throws(
      () => makeDirectory(join(root, path)),
      (error) => error instanceof UnusablePath && said.test(error.message),
    );
  }
  assert.deepEqual(readdirSync(root).sort(), ["file", "link"]);
});

test("a file system that makes none ends at once", { skip: !existsSync("/proc/self") }, () => {
  // In a process of its own: where it does not end, nothing in it can end it.
  const script = `
    const { makeDirectory } = await import(${JSON.stringify(new URL("./make-directory.ts", import.meta.url).href)});
    try { makeDirectory("/proc/nope/home/epics"); } catch (error) { console.log(error.message); }`;
  const ran = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    timeout: 30_000,
    killSignal: "SIGKILL",
  });
  assert.equal(ran.stdout, "/proc/nope/home/epics cannot be made: no directory can be made in /proc\n");
});

test("nothing in this room makes directories any other way", () => {
  for (const name of readdirSync(import.meta.dirname).filter(
    (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
  )) {
    const text = readFileSync(join(import.meta.dirname, name), "utf8");
    assert.doesNotMatch(text, /mkdir\w*\([^)]*recursive/, name);
  }
});
