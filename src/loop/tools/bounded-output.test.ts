import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { boundedOutput } from "./bounded-output.ts";

test("head and tail stay, and what is left out is counted", () => {
  assert.equal(boundedOutput("abcdef", 6), "abcdef");
  assert.equal(boundedOutput("abcdefghij", 4), "ab\n… 6 characters left out …\nij");
});

test("no character is cut in half", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1 }), fc.integer({ min: 2, max: 40 }), (text, most) => {
      assert.ok(boundedOutput(text, most).isWellFormed());
    }),
  );
});
