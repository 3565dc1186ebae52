import assert from "node:assert/strict";
import { test } from "node:test";
import { assert as check, integer, property, string } from "fast-check";
import { printable, printableLine } from "./printable.ts";

test("an escape sequence is shown, not obeyed", () => {
  assert.equal(printable("\u001b]0;owned\u0007\u001b[2Jred"), "␛]0;owned␇␛[2Jred");
  assert.equal(printable("\u009b31m"), "\\x9b31m");
  assert.equal(printable("\u007f"), "␡");
});

test("newlines and tabs stay, a CR LF is a newline, a bare CR cannot overwrite a line", () => {
  assert.equal(printable("a\tb\nc\r\nd\re"), "a\tb\nc\nd␍e");
});

test("a bidirectional override cannot reorder what is read", () => {
  assert.equal(printable("a\u202eb\u2066c"), "a\\u202eb\\u2066c");
});

test("whatever goes in, no control character but newline and tab comes out", () => {
  check(
    property(string({ unit: "binary" }), (text) => {
      // oxlint-disable-next-line no-control-regex
      assert.doesNotMatch(printable(text), /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    }),
  );
});

test("a line is one line, and no longer than it may be", () => {
  assert.equal(printableLine("  a\n\tb  c "), "a b c");
  assert.equal(printableLine("abcdef", 4), "abc…");
  assert.equal(printableLine("ab😀cd", 4), "ab…");
  check(
    property(string({ unit: "binary" }), integer({ min: 1, max: 20 }), (text, most) => {
      const line = printableLine(text, most);
      assert.ok(line.length <= most);
      assert.ok(!line.includes("\n"));
    }),
  );
});
