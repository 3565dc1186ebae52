import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Refused } from "../refused.ts";
import { items } from "./items.ts";

const SPLITS: readonly [string, readonly string[]][] = [
  ["note=one,two", ["note=one,two"]],
  ["a=1,b=2", ["a=1", "b=2"]],
  ["a=1,  b =2", ["a=1", "  b =2"]],
  ["rounds=3,budget.cost=5", ["rounds=3", "budget.cost=5"]],
  ["budget.cost=5,budget.graceful.cost=no", ["budget.cost=5", "budget.graceful.cost=no"]],
  ["tags=[1,2],x=3", ["tags=[1,2]", "x=3"]],
  ["a=1,other.cost=2", ["a=1,other.cost=2"]],
  ["a=1,", ["a=1,"]],
  ["a=1,9b=2", ["a=1,9b=2"]],
];

for (const [value, expected] of SPLITS) {
  test(`'${value}' is ${expected.length} item(s)`, () => assert.deepEqual(items("-p", value), expected));
}

for (const value of ["", "  ", ",a=1", " ,a=1"]) {
  test(`'${value}' has an empty item`, () => {
    assert.throws(() => items("-a", value), new Refused(`-a '${value}': an item is empty`));
  });
}

test("a value without a key after a comma stays whole, whatever it holds", () => {
  fc.assert(
    fc.property(
      fc.string().filter((text) => !/,\s*[A-Za-z_][\w.-]*\s*=/.test(text)),
      (text) => {
        assert.deepEqual(items("-p", `note=${text}`), [`note=${text}`]);
      },
    ),
  );
});

test("joining with commas and splitting gives the items back", () => {
  const item = fc.tuple(fc.stringMatching(/^[a-z_][\w-]{0,6}$/), fc.stringMatching(/^[\w ./:@]{0,8}$/));
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 5 }), (pairs) => {
      const written = pairs.map(([key, value]) => `${key}=${value}`);
      assert.deepEqual(items("-p", written.join(",")), written);
    }),
  );
});
