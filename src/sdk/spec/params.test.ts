import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Refused } from "../refused.ts";
import { parseParams } from "./params.ts";

test("values are the text after the first =, as it was written", () => {
  assert.deepEqual(parseParams(["a= 1 , b-c=x=y", "note=one,two", '_t=["a","b"]']), {
    params: { a: " 1 ", "b-c": "x=y", note: "one,two", _t: '["a","b"]' },
    budget: undefined,
  });
});

test("the budget stands among the params or apart from them", () => {
  assert.deepEqual(parseParams(["rounds=3,budget.cost=5", "budget.duration=1h"]), {
    params: { rounds: "3" },
    budget: { duration: 3_600_000, cost: 5 },
  });
});

const REFUSED: readonly [string, readonly string[], string][] = [
  ["no =", ["rounds"], "-p 'rounds': expected <key>=<value>"],
  ["an empty key", ["=1"], "-p '=1': expected <key>=<value>"],
  ["a key that is no key", ["9x=1"], "-p '9x=1': expected <key>=<value>"],
  ["a dotted key", ["a.b=1"], "-p 'a.b=1': expected <key>=<value>"],
  ["a key twice", ["a=1,a=2"], "-p: 'a' is given twice"],
  ["a key twice over two options", ["a=1", "a=2"], "-p: 'a' is given twice"],
  ["a budget with no limit", ["budget=5"], "-p 'budget=5': a budget is given a limit at a time, as budget.cost=5"],
  ["a budget and nothing", ["budget"], "-p 'budget': a budget is given a limit at a time, as budget.cost=5"],
  ["an empty item", [""], "-p '': an item is empty"],
  ["a limit twice", ["budget.cost=1", "budget.cost=2"], "-p: 'budget.cost' is given twice"],
];
for (const [what, values, message] of REFUSED) {
  test(`refuses ${what}`, () => assert.throws(() => parseParams(values), new Refused(message)));
}

test("any text is carried as a value", () => {
  fc.assert(
    fc.property(
      fc.string().filter((text) => !text.includes(",")),
      (text) => {
        assert.deepEqual(parseParams([`key=${text}`]).params, { key: text });
      },
    ),
  );
});

test("a key named as the object prototype's is a key", () => {
  const { params } = parseParams(["__proto__=x"]);
  assert.deepEqual(Object.entries(params), [["__proto__", "x"]]);
});
