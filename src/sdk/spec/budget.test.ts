import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Budget } from "../../flows/budget.ts";
import { Refused } from "../refused.ts";
import { parseBudget } from "./budget.ts";

function read(limits: Record<string, string>): Budget {
  return parseBudget(new Map(Object.entries(limits)));
}

const READ: readonly [Record<string, string>, Budget][] = [
  [{ duration: "6h" }, { duration: 21_600_000 }],
  [{ duration: "90" }, { duration: 90_000 }],
  [{ cost: "$20" }, { cost: 20 }],
  [{ cost: "0.5" }, { cost: 0.5 }],
  [{ cost: "inf" }, { cost: Infinity }],
  [{ cost: "0" }, { cost: 0 }],
  [{ output_tokens: "1.5m" }, { outputTokens: 1_500_000 }],
  [{ output_tokens: "1.1M" }, { outputTokens: 1_100_000 }],
  [{ output_tokens: "200k" }, { outputTokens: 200_000 }],
  [{ output_tokens: "200_000" }, { outputTokens: 200_000 }],
  [{ output_tokens: "5.0" }, { outputTokens: 5 }],
  [
    { cost: "5", graceful: "OFF" },
    { cost: 5, graceful: false },
  ],
  [
    { cost: "5", graceful: "Yes" },
    { cost: 5, graceful: true },
  ],
  [
    { cost: "5", "graceful.output_tokens": "false" },
    { cost: 5, graceful: { duration: true, cost: true, outputTokens: false } },
  ],
  [
    { cost: "5", graceful: "no", "graceful.cost": "1" },
    { cost: 5, graceful: { duration: false, cost: true, outputTokens: false } },
  ],
];
for (const [limits, expected] of READ) {
  test(`reads ${JSON.stringify(limits)}`, () => assert.deepEqual(read(limits), expected));
}

const NOT_TOKENS = "is not a valid token count: expected a number like 200000 or 200k";
const REFUSED: readonly [Record<string, string>, string][] = [
  [
    { money: "5" },
    "-p budget.money: not a limit; one of budget.duration, budget.cost, budget.output_tokens, budget.graceful, budget.graceful.duration, budget.graceful.cost, budget.graceful.output_tokens",
  ],
  [{ duration: "soon" }, "-p budget.duration: 'soon' is not a duration: use seconds, 1h30m, or ISO 8601 like PT1H30M"],
  [{ duration: "1h1h" }, "-p budget.duration: '1h1h' names a unit twice"],
  [{ duration: "-5" }, "-p budget.duration: '-5' is negative"],
  [{ duration: "inf" }, "-p budget.duration: 'inf' is not a valid duration: must be finite and not negative"],
  [{ duration: "99999999999999w" }, "-p budget.duration: duration '99999999999999w' is too long"],
  ...["", "five", "-1", "nan", "$", "$$5", "5usd", "1e999", "0x10"].map((cost): [Record<string, string>, string] => [
    { cost },
    `-p budget.cost: '${cost}' is not a valid USD cost`,
  ]),
  ...["", "many", "-1", "1g", "k", "_", "inf", "99999999999m"].map((count): [Record<string, string>, string] => [
    { output_tokens: count },
    `-p budget.output_tokens: '${count}' ${NOT_TOKENS}`,
  ]),
  [{ output_tokens: "1.5" }, "-p budget.output_tokens: '1.5' must be a whole number of tokens"],
  [{ output_tokens: "1.0005k" }, "-p budget.output_tokens: '1.0005k' must be a whole number of tokens"],
  [{ cost: "5", graceful: "maybe" }, "-p budget.graceful: 'maybe' must be true or false"],
  [{ cost: "5", "graceful.cost": "" }, "-p budget.graceful.cost: '' must be true or false"],
  [{ cost: "5", graceful: "toString" }, "-p budget.graceful: 'toString' must be true or false"],
  [{ graceful: "true" }, "-p budget.*: Value error, a budget sets at least one of duration, cost, output_tokens"],
];
for (const [limits, message] of REFUSED) {
  test(`refuses ${JSON.stringify(limits)}`, () => assert.throws(() => read(limits), new Refused(message)));
}

test("a count of tokens reads as itself, however it is scaled", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 40 }), (count) => {
      assert.equal(read({ output_tokens: String(count) }).outputTokens, count);
      const digits = String(count).padStart(4, "0");
      assert.equal(read({ output_tokens: `${digits.slice(0, -3)}.${digits.slice(-3)}k` }).outputTokens, count);
    }),
  );
});

test("whatever is written, it is a budget or a refusal", () => {
  fc.assert(
    fc.property(fc.constantFrom("duration", "cost", "output_tokens", "graceful"), fc.string(), (limit, text) => {
      try {
        read({ cost: "1", [limit]: text });
      } catch (error) {
        assert.ok(error instanceof Refused);
      }
    }),
  );
});
