import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { FlowLoadConflict } from "../flows/errors.ts";
import { checkRelease } from "./release.ts";

const directory = mkdtempSync(join(tmpdir(), "hmz-release-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const asks = (range: unknown, key = "dependencies"): void =>
  writeFileSync(join(directory, "package.json"), JSON.stringify({ [key]: { hmz: range } }));

const RANGES: readonly (readonly [range: string, running: string, held: boolean])[] = [
  ["^0.1.0", "0.1.7", true],
  ["^0.1.0", "0.2.0", false],
  [">=0.1.0 <0.3.0", "0.2.0", true],
  ["0.1.x || 0.3.x", "0.2.0", false],
  ["*", "0.2.0-beta.1", true],
  ["file:../hmz", "0.2.0", true],
  ["git+https://host/o/r", "0.2.0", true],
  ["latest", "0.2.0", true],
];

for (const [range, running, held] of RANGES) {
  test(`'${range}' ${held ? "takes" : "refuses"} ${running}`, async () => {
    for (const key of ["dependencies", "peerDependencies"]) {
      asks(range, key);
      if (held) await checkRelease(directory, running);
      else {
        await assert.rejects(
          checkRelease(directory, running),
          (error) =>
            error instanceof FlowLoadConflict &&
            error.message ===
              `the flow at ${directory} asks for hmz ${range}, and this is hmz ${running}: run it with a release in that range, or change the range in its package.json`,
        );
      }
    }
  });
}

test("the release that runs is the package's own", async () => {
  asks("<0.0.1");
  await assert.rejects(checkRelease(directory), /this is hmz \d+\.\d+\.\d+/);
});

test("a package.json that says nothing of hmz, or is none, asks for nothing", async () => {
  for (const text of ["{}", "torn{", "[]", "null", `{"dependencies":[]}`, `{"dependencies":{"hmz":1}}`]) {
    writeFileSync(join(directory, "package.json"), text);
    await checkRelease(directory, "0.1.0");
  }
  rmSync(join(directory, "package.json"));
  await checkRelease(directory, "0.1.0");
});
