import assert from "node:assert/strict";
import { test } from "node:test";
import { count, lasting, money } from "./figures.ts";

test("counts", () => {
  const figures = [0, 999, 1_000, 1_234, 999_949, 999_950, 1_234_567];
  assert.deepEqual(figures.map(count), ["0", "999", "1.0k", "1.2k", "999.9k", "1.00M", "1.23M"]);
});

test("money", () => {
  const figures = [0, 0.0012, 0.01, 4.2, 99.99, 99.999, 130.4];
  assert.deepEqual(figures.map(money), ["$0.0000", "$0.0012", "$0.01", "$4.20", "$99.99", "$100", "$130"]);
});

test("how long", () => {
  const figures = [-1, 0.05, 0.26, 7, 9.99, 10.9, 59.9, 60, 185, 3_600, 7_800];
  assert.deepEqual(figures.map(lasting), [
    "0s",
    "0s",
    "0.2s",
    "7s",
    "9.9s",
    "10s",
    "59s",
    "1m 00s",
    "3m 05s",
    "1h 00m",
    "2h 10m",
  ]);
});
