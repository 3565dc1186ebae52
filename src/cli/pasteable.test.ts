import assert from "node:assert/strict";
import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { hmzCommand, nodeCommand } from "./pasteable.ts";

const LAUNCHER = fileURLToPath(new URL("../../bin/hmz.js", import.meta.url));

/** A directory of programs: the node that runs, or one of another release. */
function directory(node: "own" | "other" | "none", hmz: boolean): string {
  const path = temporaryDirectory("pasteable");
  if (node === "own") symlinkSync(process.execPath, join(path, "node"));
  for (const name of [...(node === "other" ? ["node"] : []), ...(hmz ? ["hmz"] : [])]) {
    writeFileSync(join(path, name), "#!/bin/sh\n");
    chmodSync(join(path, name), 0o755);
  }
  return path;
}

for (const [node, hmz, npm, said] of [
  ["own", true, false, ["node", "hmz"]],
  ["own", false, false, ["node", LAUNCHER]],
  ["other", true, false, [process.execPath, `${process.execPath} ${LAUNCHER}`]],
  ["none", false, false, [process.execPath, `${process.execPath} ${LAUNCHER}`]],
  ["own", true, true, [process.execPath, `${process.execPath} ${LAUNCHER}`]],
] as const) {
  test(`node on the PATH: ${node}; hmz on it: ${hmz}; started by npx: ${npm}`, () => {
    const env = { PATH: directory(node, hmz), ...(npm ? { npm_command: "exec" } : {}) };
    assert.deepEqual([nodeCommand(env), hmzCommand(env)], said);
  });
}
