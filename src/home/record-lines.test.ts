import assert from "node:assert/strict";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { lineParts, recordLines } from "./record-lines.ts";

const file = join(temporaryDirectory("lines"), "x.jsonl");

function linesOf(content: string | Uint8Array, most?: number): (string | undefined)[] {
  writeFileSync(file, content);
  const opened = openSync(file, "r");
  try {
    return [...lineParts(opened, most)].flat();
  } finally {
    closeSync(opened);
  }
}

test("the lines of a file are its own, wherever its parts are cut", () => {
  const line = fc.oneof(
    fc.constantFrom("", "{}", "é😀".repeat(9)),
    // A part is a megabyte: these lie across its edges.
    fc.integer({ min: 0, max: 1_500_000 }).map((size) => "é".repeat(size / 2)),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 6 }), fc.boolean(), (lines, ended) => {
      const content = lines.join("\n") + (ended && lines.length > 0 ? "\n" : "");
      const whole = content.split("\n");
      if (whole.at(-1) === "") whole.pop();
      assert.deepEqual(linesOf(content), whole);
    }),
    { numRuns: 40 },
  );
});

test("a line that is too long is passed over, and what follows it is read", () => {
  const long = "x".repeat(3_000_000);
  assert.deepEqual(linesOf(`a\n${long}\nb\n${long}`, 2_000_000), ["a", undefined, "b", undefined]);
  assert.deepEqual(linesOf(`${"x".repeat(11)}\n${"y".repeat(10)}`, 10), [undefined, "y".repeat(10)]);
});

test("objects are read, and what is none is counted", () => {
  writeFileSync(file, '{"a":1}\n\n\u0000\u0000{"b":2}\nnull\n[1]\n"x"\n{"c":\n\u0000\n{"d":4}');
  let bad = 0;
  assert.deepEqual([...recordLines(file, () => (bad += 1))], [{ a: 1 }, { b: 2 }, { d: 4 }]);
  assert.equal(bad, 5);
  assert.deepEqual([...recordLines(`${file}.none`)], []);
});
