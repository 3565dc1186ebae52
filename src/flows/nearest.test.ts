import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "./nearest.ts";

const KNOWN = ["post", "list", "max-items"];
for (const [word, meant] of [
  ["pots", "post"],
  ["pos", "post"],
  ["POST", "post"],
  ["lsit", "list"],
  ["max-item", "max-items"],
  ["maxitems", "max-items"],
  ["remove", undefined],
  ["", undefined],
] as const) {
  test(`'${word}' is meant as ${meant ?? "nothing known"}`, () => assert.equal(nearest(word, KNOWN), meant));
}
