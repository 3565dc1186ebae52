import assert from "node:assert/strict";
import { test } from "node:test";
import { isColoured, paint } from "./colour.ts";

const terminal = { isTTY: true };
const pipe = {};

test("a terminal is coloured, a pipe is not", () => {
  assert.equal(isColoured(terminal, {}), true);
  assert.equal(isColoured(pipe, {}), false);
});

test("the first that is set decides: NO_COLOR, TERM=dumb, FORCE_COLOR", () => {
  assert.equal(isColoured(terminal, { NO_COLOR: "1", FORCE_COLOR: "1" }), false);
  assert.equal(isColoured(terminal, { NO_COLOR: "" }), true);
  assert.equal(isColoured(pipe, { TERM: "dumb", FORCE_COLOR: "1" }), false);
  assert.equal(isColoured(pipe, { FORCE_COLOR: "1" }), true);
  assert.equal(isColoured(pipe, { FORCE_COLOR: "0" }), false);
  assert.equal(isColoured(terminal, { FORCE_COLOR: "0" }), true);
});

test("a style wraps a text, or leaves it", () => {
  assert.equal(paint(true).red("no"), "\u001b[31mno\u001b[39m");
  assert.equal(paint(true).dim(""), "");
  assert.equal(paint(false).red("no"), "no");
});
