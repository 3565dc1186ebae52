import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { expandBraces, globPattern } from "./glob.ts";

test("a glob without a slash is a name anywhere; one with a slash is a path from the top", () => {
  const fits = (glob: string, path: string): boolean => globPattern(glob).test(path);
  assert.ok(fits("*.ts", "a.ts") && fits("*.ts", "x/y/a.ts") && !fits("*.ts", "a.tsx"));
  assert.ok(fits("src/*.ts", "src/a.ts") && !fits("src/*.ts", "src/x/a.ts") && !fits("src/*.ts", "y/src/a.ts"));
  assert.ok(fits("src/**/*.ts", "src/a.ts") && fits("src/**/*.ts", "src/x/y/a.ts"));
  assert.ok(fits("src/**", "src/x/y") && fits("./src/*", "src/x") && fits("**/x", "x"));
  assert.ok(fits("?.[jt]s", "a.js") && fits("[!a].js", "b.js") && !fits("[!a].js", "a.js") && !fits("?.js", "ab.js"));
  assert.ok(fits("*.{ts,m{j,t}s}", "a.mts") && fits("{src,test}/*", "test/a") && !fits("{src,test}/*", "lib/a"));
  assert.ok(fits("a+(b).txt", "a+(b).txt") && !fits("a.c", "abc"));
});

test("braces are taken apart", () => {
  assert.deepEqual(expandBraces("a{b,c{d,e}}f"), ["abf", "acdf", "acef"]);
});

test("whatever the glob, it makes a pattern", () => {
  fc.assert(fc.property(fc.string(), (glob) => globPattern(glob) instanceof RegExp));
});
