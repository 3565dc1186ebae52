import assert from "node:assert/strict";
import { test } from "node:test";
import { extendedRegex } from "./regex.ts";

test("the classes and groups that models write are put in the syntax of grep -E", () => {
  for (const [pattern, extended] of [
    ["\\d+\\.\\d", "[[:digit:]]+\\.[[:digit:]]"],
    ["[\\d_-]\\s", "[[:digit:]_-][[:space:]]"],
    ["\\w\\W\\S", "[[:alnum:]_][^[:alnum:]_][^[:space:]]"],
    ["(?:a|b)\\(", "(a|b)\\("],
    ["[]\\w]x", "[][:alnum:]_]x"],
    ["[^]a]", "[^]a]"],
    ["\\bfoo\\b", "\\bfoo\\b"],
    ["[.\\/]", "[./]"],
  ] as const) {
    assert.equal(extendedRegex(pattern), extended, pattern);
  }
});
