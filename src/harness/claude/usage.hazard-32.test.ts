import assert from "node:assert/strict";
import { test } from "node:test";
import { totalOf } from "../../../test/conformance/recording-host.ts";
import { play, says, USER } from "../../../test/fixtures/claude/played.ts";

test("hazard 32: running totals are booked as differences, over ten turns and a restart", async () => {
  const total = (turns: number): Readonly<Record<string, unknown>> => ({
    modelUsage: { "scripted-model": { inputTokens: 10 * turns, outputTokens: turns } },
  });
  await using played = await play(
    Array.from({ length: 10 }, (_, at) => [
      USER,
      says.init(),
      says.text(`t${at}`, `m${at}`),
      says.result(`t${at}`, total(at + 1)),
    ]).flat(),
  );
  const spends = [];
  for (let turn = 0; turn < 10; turn++) spends.push(...(await played.turn()).host.spends);
  assert.deepEqual(totalOf(spends), { "scripted-model": { input: 100, output: 10 } });
});
