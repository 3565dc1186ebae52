import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { cutTo, width, wrapped } from "./width.ts";

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

test("wrapped between words and between wide characters, a long word left whole", () => {
  assert.deepEqual(wrapped("one two three", 8, 5), ["one two", "three"]);
  assert.deepEqual(wrapped("see https://example.com/a/b now", 8, 6), ["see", "https://example.com/a/b", "now"]);
  assert.deepEqual(wrapped("漢字漢字", 4, 4), ["漢字", "漢字"]);
  assert.deepEqual(wrapped("a  b", 4, 4), ["a  b"]);
  assert.deepEqual(wrapped("    deep words", 8, 8), ["    deep", "words"]);
  assert.deepEqual(wrapped("", 4, 4), [""]);
});

test("wrapping loses no word, and no line is too wide that could be broken", () => {
  const words = fc.array(fc.constantFrom("a", "bc", "def", "漢", "漢字", "🚀x", "e\u0301", "👩‍🚀"), { maxLength: 20 });
  fc.assert(
    fc.property(words, fc.integer({ min: 6, max: 12 }), fc.integer({ min: 6, max: 12 }), (words, first, others) => {
      const lines = wrapped(words.join(" "), first, others);
      assert.equal(lines.join(" ").replaceAll(" ", ""), words.join(""));
      for (const [at, line] of lines.entries()) assert.ok(width(line.trimEnd()) <= (at === 0 ? first : others), line);
    }),
  );
});
