// UTF-8 cut at a chunk's edge; U+2028, U+2029 and `\r` inside a line.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { collect, ENV, Scene } from "../../test/support/processes.ts";
import { startChild } from "./child.ts";

async function linesOf(t: TestContext, script: string): Promise<readonly unknown[]> {
  const scene = await Scene.set(t);
  const child = await startChild({ argv: [await scene.fake(script)], cwd: scene.dir, env: ENV, stdin: "closed" });
  return collect(child.lines());
}

test("hazard 16: a character that arrives in two chunks is one character", async (t) => {
  assert.deepEqual(await linesOf(t, String.raw`printf '{"t":"\342'; sleep .1; printf '\211\244"}\n'`), [
    { kind: "line", text: '{"t":"≤"}' },
  ]);
});

test("hazard 16: the last line is told where the stream ends without a newline", async (t) => {
  assert.deepEqual(await linesOf(t, String.raw`printf 'a\nb \342\211\244'`), [
    { kind: "line", text: "a" },
    { kind: "line", text: "b ≤" },
  ]);
});

test("hazard 18: only the newline ends a line", async (t) => {
  assert.deepEqual(await linesOf(t, String.raw`printf '{"t":"a\342\200\250b\342\200\251c\rd"}\r\n{}\n'`), [
    { kind: "line", text: '{"t":"a\u2028b\u2029c\rd"}' },
    { kind: "line", text: "{}" },
  ]);
});
