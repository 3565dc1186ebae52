import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeAgent, FakeOutworlder, runFake } from "hmz/fakes";
import { ask_first } from "./index.ts";

test("nobody there: it goes on, with care", async () => {
  const worker = new FakeAgent({ reply: ["1. rename the flag", "done"] });
  assert.equal(await runFake(ask_first, "rename the flag", { agents: { worker } }), "done");
  assert.match(worker.prompts[1] ?? "", /Change no file format/);
});

// #region person
test("the person is asked with the plan, and may say no", async () => {
  const person = new FakeOutworlder({ reply: { go: false } });
  const worker = new FakeAgent({ reply: "1. drop the table" });
  const said = await runFake(ask_first, "tidy up", { agents: { worker, person } });
  assert.equal(said, "left as it was");
  assert.deepEqual(person.asked, ["1. drop the table\n\nGo on?"]);
});
// #endregion

test("what the worker asks reaches the person, and stays unanswered where nobody is there", async () => {
  const worker = new FakeAgent({
    reply: async (_prompt, { session }) => `told: ${await session.ask("Which database?", ["sqlite", "postgres"])}`,
  });
  const person = new FakeOutworlder({ reply: (prompt) => (prompt.startsWith("Which") ? "sqlite" : { go: true }) });
  assert.equal(await runFake(ask_first, "store it", { agents: { worker, person } }), "told: sqlite");
  assert.ok(person.asked.includes("Which database?\n- sqlite\n- postgres"));
  assert.equal(await runFake(ask_first, "store it", { agents: { worker } }), "told: undefined");
});
