import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { budget, type BudgetLike, graces } from "hmz/flows";

describe("budget", () => {
  const shape = "a budget's graceful is a boolean, or one for each of duration, cost, outputTokens";
  const refused: readonly (readonly [string, unknown, string])[] = [
    ["no limit", {}, "a budget sets at least one of duration, cost, output_tokens"],
    ["graceful alone", { graceful: false }, "a budget sets at least one of duration, cost, output_tokens"],
    ["limits left undefined", { cost: undefined }, "a budget sets at least one of duration, cost, output_tokens"],
    ["a negative cost", { cost: -0.01 }, "a budget's cost is a number of USD, not negative: -0.01"],
    ["a cost that is no number", { cost: Number.NaN }, "a budget's cost is a number of USD, not negative: NaN"],
    ["a cost as text", { cost: "5" }, "a budget's cost is a number of USD, not negative: 5"],
    ["negative tokens", { outputTokens: -1 }, "a budget's outputTokens is a whole number, not negative: -1"],
    ["half a token", { outputTokens: 0.5 }, "a budget's outputTokens is a whole number, not negative: 0.5"],
    [
      "tokens that are no number",
      { outputTokens: Number.NaN },
      "a budget's outputTokens is a whole number, not negative: NaN",
    ],
    ["a negative duration", { duration: -1 }, "'-1' is not a valid duration: must be finite and not negative"],
    [
      "an endless duration",
      { duration: Infinity },
      "'Infinity' is not a valid duration: must be finite and not negative",
    ],
    [
      "a duration that is none",
      { duration: "soon" },
      "'soon' is not a duration: use seconds, 1h30m, or ISO 8601 like PT1H30M",
    ],
    [
      "an unknown limit",
      { cost: 1, output_tokens: 5 },
      "'output_tokens' is not a limit of a budget: one of duration, cost, outputTokens, graceful",
    ],
    ["graceful as text", { cost: 1, graceful: "yes" }, shape],
    ["graceful of an unknown limit", { cost: 1, graceful: { tokens: true } }, shape],
    ["graceful that is no flag", { cost: 1, graceful: { cost: 1 } }, shape],
    ["graceful null", { cost: 1, graceful: null }, shape],
  ];
  for (const [what, given, message] of refused) {
    it(`refuses ${what}`, () => {
      assert.throws(() => budget(given as BudgetLike), { name: "RangeError", message });
    });
  }

  it("is frozen, its duration in milliseconds", () => {
    const made = budget({ duration: "1h30m", cost: Infinity, outputTokens: 0 });
    assert.ok(Object.isFrozen(made));
    assert.deepEqual(made, { duration: 5_400_000, cost: Infinity, outputTokens: 0 });
  });

  it("reads three flags that agree as the one", () => {
    assert.equal(budget({ cost: 1, graceful: { duration: false, cost: false, outputTokens: false } }).graceful, false);
    assert.equal(budget({ cost: 1, graceful: {} }).graceful, true);
    assert.deepEqual(budget({ cost: 1, graceful: { cost: false } }).graceful, {
      duration: true,
      cost: false,
      outputTokens: true,
    });
  });

  it("made again of itself is the same", () => {
    const amount = fc.double({ min: 0, noNaN: true });
    fc.assert(
      fc.property(
        fc.record(
          { cost: amount, outputTokens: fc.nat(), duration: fc.nat(), graceful: fc.boolean() },
          { requiredKeys: ["cost"] },
        ),
        (given) => {
          assert.deepEqual(budget(budget(given)), budget(given));
        },
      ),
    );
  });
});

describe("graces", () => {
  it("is one flag a limit, each true by default", () => {
    const all = (flag: boolean) => ({ duration: flag, cost: flag, outputTokens: flag });
    assert.deepEqual(graces({}), all(true));
    assert.deepEqual(graces({ graceful: undefined }), all(true));
    assert.deepEqual(graces({ graceful: false }), all(false));
    assert.deepEqual(graces({ graceful: { outputTokens: false } }), { ...all(true), outputTokens: false });
    assert.deepEqual(graces(budget({ cost: 1, graceful: { cost: false } })), { ...all(true), cost: false });
  });

  it("a flag left undefined is true, as where it is left out", () => {
    assert.deepEqual(graces({ graceful: { cost: undefined as never } }).cost, true);
  });
});
