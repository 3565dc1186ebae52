import assert from "node:assert/strict";
import { test } from "node:test";
import { DurationExceeded } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import { twice } from "./index.ts";

test("the work is done, then read back, in one session", async () => {
  const builder = new FakeAgent({ reply: ["done", "nothing was wrong"], cost: 0.5 });
  await runFake(twice, "go", { agents: { builder } });
  assert.deepEqual(builder.prompts, ["go", "Review what you did; fix anything wrong."]);
  assert.equal(builder.sessions.length, 1);
});

test("a turn that does not end is cut off by the clock", async () => {
  const builder = new FakeAgent({ reply: () => new Promise<string>(() => {}) });
  const run = runFake(twice, "go", { agents: { builder }, budget: { duration: 50, graceful: false } });
  await assert.rejects(run, DurationExceeded);
});
