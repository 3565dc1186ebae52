import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { cutTo, width } from "./width.ts";

test("wide, combining and plain characters", () => {
  assert.equal(width("abc"), 3);
  assert.equal(width("漢字"), 4);
  assert.equal(width("e\u0301"), 1);
  assert.equal(width("🚀"), 2);
});

test("cut where it is too wide", () => {
  assert.equal(cutTo("abcdef", 6), "abcdef");
  assert.equal(cutTo("abcdef", 4), "abc…");
  assert.equal(cutTo("漢字漢字", 4), "漢…");
  assert.equal(cutTo("abc", 0), "");
});

test("never wider than it may be", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 0, max: 12 }), (line, most) => {
      assert.ok(width(cutTo(line, most)) <= most);
    }),
  );
});
