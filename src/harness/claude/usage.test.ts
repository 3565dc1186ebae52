import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { totalOf } from "../../../test/conformance/recording-host.ts";
import type { Spend } from "../../engine/ports.ts";
import { Meter } from "./usage.ts";

const wire = (input_tokens: number, output_tokens = 0) => ({
  input_tokens,
  output_tokens,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
});
const model = (inputTokens: number, outputTokens = 0) => ({
  inputTokens,
  outputTokens,
  cacheReadInputTokens: 0,
  cacheCreationInputTokens: 0,
});
const total = (
  modelUsage: Record<string, ReturnType<typeof model>>,
  since?: Record<string, ReturnType<typeof model>>,
) => ({
  modelUsage,
  model_usage_since_last_result: since,
});
const heard = (spend: Spend | undefined): readonly Spend[] => (spend === undefined ? [] : [spend]);

test("a message that is told once per block is counted once", () => {
  const meter = new Meter();
  assert.deepEqual(meter.rise("1", "m", wire(10, 1))?.tokens, { input: 10, output: 1, cache_read: 0, cache_write: 0 });
  assert.equal(meter.rise("1", "m", wire(10, 1)), undefined);
  assert.deepEqual(meter.rise("1", "m", wire(0, 5))?.tokens, { input: 0, output: 4, cache_read: 0, cache_write: 0 });
});

test("a message that stands for a failure costs nothing", () => {
  assert.equal(new Meter().rise("1", "<synthetic>", wire(10)), undefined);
});

test("the totals add only what was not heard", () => {
  const meter = new Meter();
  meter.rise("1", "m", wire(10, 1));
  assert.deepEqual(totalOf(meter.settle(total({ m: model(10, 20), side: model(3) }))), {
    m: { output: 19 },
    side: { input: 3 },
  });
  assert.deepEqual(meter.settle(total({ m: model(10, 20), side: model(3) })), []);
});

test("a model under two names is paid once", () => {
  const meter = new Meter();
  meter.rise("1", "claude-x-20990101", wire(10, 1));
  assert.deepEqual(totalOf(meter.settle(total({ "region.claude-x": model(10, 20) }))), {
    "region.claude-x": { output: 19 },
  });
});

test("a conversation taken up pays nothing of what was spent before", () => {
  const fork = new Meter();
  fork.carriesOn();
  fork.rise("1", "m", wire(10, 2));
  assert.deepEqual(fork.settle(total({ m: model(1010, 502) })), []);
  assert.deepEqual(totalOf(fork.settle(total({ m: model(1015, 503) }))), { m: { input: 5, output: 1 } });
});

test("a release that starts its totals anew after a resume, and one that goes on", () => {
  for (const totals of [model(7, 3), model(107, 53)]) {
    const meter = new Meter();
    meter.settle(total({ m: model(100, 50) }));
    meter.restarted();
    assert.deepEqual(totalOf(meter.settle(total({ m: totals }))), { m: { input: 7, output: 3 } });
  }
});

test("the release's own difference holds over the totals", () => {
  const meter = new Meter();
  assert.deepEqual(totalOf(meter.settle(total({ m: model(500, 50) }, { m: model(5, 2) }))), {
    m: { input: 5, output: 2 },
  });
});

test("whatever is heard of it, a turn costs what the totals rose by", () => {
  const call = fc.record({ input: fc.nat(1000), output: fc.nat(1000), heard: fc.boolean() });
  fc.assert(
    fc.property(fc.array(fc.array(call, { maxLength: 5 }), { maxLength: 5 }), (turns) => {
      const meter = new Meter();
      const spends: Spend[] = [];
      let [input, output, id] = [0, 0, 0];
      for (const calls of turns) {
        for (const call of calls) {
          id += 1;
          input += call.input;
          output += call.output;
          if (!call.heard) continue;
          spends.push(...heard(meter.rise(`${id}`, "m", wire(call.input, 0))));
          spends.push(...heard(meter.rise(`${id}`, "m", wire(call.input, call.output))));
        }
        spends.push(...meter.settle(total({ m: model(input, output) })));
      }
      const sum = totalOf(spends)["m"] ?? {};
      assert.deepEqual([sum.input ?? 0, sum.output ?? 0], [input, output]);
    }),
  );
});
