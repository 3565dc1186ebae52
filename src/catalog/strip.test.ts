import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { stripped } from "./strip.ts";

let cache: string;
const made: string[] = [];
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), "hmz-strip-"));
  made.push(cache);
});
after(() => made.forEach((directory) => rmSync(directory, { recursive: true, force: true })));

test("types are blanked out, and every line and column stays", () => {
  assert.equal(stripped("const a: number = 1;\nlet b;"), "const a         = 1;\nlet b;");
});

test("nothing is warned of, and other warnings pass", async () => {
  const warned: string[] = [];
  const hear = (warning: Error): void => void warned.push(warning.message);
  process.on("warning", hear);
  stripped("let a: 1;");
  process.emitWarning("another");
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", hear);
  assert.deepEqual(warned, ["another"]);
});

test("what is kept is readable by its owner alone", () => {
  stripped("let a: 1;", cache);
  const [name = ""] = readdirSync(cache);
  assert.equal(statSync(join(cache, name)).mode & 0o777, 0o600);
});

test("a kept file that is torn, changed or empty is stripped anew", () => {
  const script = stripped("let a: 1;", cache);
  const file = join(cache, readdirSync(cache)[0] ?? "");
  const whole = readFileSync(file, "utf8");
  for (const broken of [whole.slice(0, -1), whole.replace("let a", "let b"), "", "\n", whole.replace(/^[^\n]*/, "")]) {
    writeFileSync(file, broken);
    assert.equal(stripped("let a: 1;", cache), script);
    assert.equal(readFileSync(file, "utf8"), whole);
  }
});

test("a cache that cannot be written is done without", () => {
  const file = join(cache, "file");
  writeFileSync(file, "");
  assert.equal(stripped("let a: 1;", file), "let a   ;");
});

test("the oldest are dropped once there are too many", () => {
  for (let index = 0; index < 256; index += 1) {
    const file = join(cache, `old-${index}`);
    writeFileSync(file, "");
    utimesSync(file, 1_000 + index, 1_000 + index);
  }
  stripped("let a: 1;", cache);
  const left = readdirSync(cache);
  assert.equal(left.length, 128);
  assert.ok(left.includes("old-255") && !left.includes("old-100"));
});
