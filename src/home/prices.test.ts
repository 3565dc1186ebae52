import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BUNDLED_PRICES } from "./prices-bundled.ts";
import { pricesOf } from "./prices.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

const million = { input: 1_000_000 };

test("each kind of token at its price", () => {
  const spent = { input: 1_000_000, output: 1_000_000, cache_read: 1_000_000, cache_write: 1_000_000 };
  assert.equal(pricesOf().cost("claude-sonnet-4-5", spent), 3 + 15 + 0.3 + 3.75);
});

test("reasoning is billed as output, and a cache write without a price as input", () => {
  assert.equal(pricesOf().cost("gpt-5", { reasoning: 1_000_000 }), 10);
  assert.equal(pricesOf().cost("gpt-5", { cache_write: 1_000_000 }), 1.25);
});

test("a cache read without a price adds nothing: the figure is a floor", () => {
  assert.equal(pricesOf().cost("qwen3-max", { cache_read: 5, input: 1_000_000 }), 1.2);
});

test("no price, or no priced token, is no figure", () => {
  assert.equal(pricesOf().cost("a-model-of-nobody", million), undefined);
  assert.equal(pricesOf().cost("qwen3-max", { cache_read: 5 }), undefined);
  assert.equal(pricesOf().cost("gpt-5", {}), undefined);
  assert.equal(pricesOf().cost("", million), undefined);
});

for (const name of [
  "claude-sonnet-4-5",
  "Claude Sonnet 4.5",
  "anthropic/claude-sonnet-4.5",
  "claude-sonnet-4-5-20250929",
  "claude-sonnet-4-5@20250929",
  "claude-sonnet-4-5-latest",
  "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  "vertex-claude-sonnet-4-5",
]) {
  test(`'${name}' is claude-sonnet-4-5`, () => assert.equal(pricesOf().cost(name, million), 3));
}

test("a version's own dot is no vendor's prefix, a date with dashes is no version", () => {
  assert.equal(pricesOf().cost("openai/gpt-5.1-codex-mini", million), 0.25);
  assert.equal(pricesOf().cost("gpt-4o-2024-08-06", million), 2.5);
});

test("a name that is only alike has no price", () => {
  for (const name of ["gpt-5.9", "claude-sonnet-9", "my-gpt-5", "gpt-5x"]) {
    assert.equal(pricesOf().cost(name, million), undefined, name);
  }
});

test("every bundled model has a price for what it reads and writes", () => {
  for (const [id, { input, output }] of Object.entries(BUNDLED_PRICES)) {
    assert.ok(input !== undefined && output !== undefined && output > input, id);
  }
});

test("a fetched table replaces the bundled one; a torn one does not", () => {
  const file = join(temporaryDirectory("prices"), "prices.json");
  const table = { models: { "acme/one": { per_million: { input: 7, output: -1, cache_read: "2" } } } };
  writeFileSync(file, JSON.stringify(table));
  assert.equal(pricesOf(file).cost("one", million), 7);
  assert.equal(pricesOf(file).cost("one", { output: 9, cache_read: 9 }), undefined);
  assert.equal(pricesOf(file).cost("gpt-5", million), undefined);
  writeFileSync(file, JSON.stringify(table).slice(0, 20));
  assert.equal(pricesOf(file).cost("gpt-5", million), 1.25);
  assert.equal(pricesOf(join(file, "none")).cost("gpt-5", million), 1.25);
});
