import assert from "node:assert/strict";
import { test } from "node:test";
import { slug } from "./slug.js";

test("words are joined by dashes", () => {
  assert.equal(slug("Hello, World!"), "hello-world");
});
