import assert from "node:assert/strict";
import { test } from "node:test";
import { CostExceeded } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import { nightly } from "./index.ts";

const TASK = "go through TODO.md";

// #region graceful
test("the turn that reaches the night's money finishes, and is the last", async () => {
  const worker = new FakeAgent({ cost: 8 });
  const spent = await runFake(nightly, TASK, { agents: { worker } });
  assert.deepEqual(worker.prompts.slice(0, 3), [TASK, TASK, TASK]);
  assert.equal(spent.cost, 24);
});
// #endregion

// #region hard
test("the turn that reaches the night's tokens is cut off, and the note is still written", async () => {
  const worker = new FakeAgent({ outputTokens: 600 });
  const spent = await runFake(nightly, TASK, { agents: { worker }, params: { tokens: 1_000 } });
  assert.equal(spent.outputTokens, 1_200);
  assert.match(worker.prompts.at(-1) ?? "", /NIGHT\.md/);
});
// #endregion

test("a run whose own budget is spent writes no note", async () => {
  const worker = new FakeAgent({ cost: 8 });
  await assert.rejects(runFake(nightly, TASK, { agents: { worker }, budget: { cost: 10 } }), CostExceeded);
  assert.deepEqual(worker.prompts, [TASK, TASK]);
});
