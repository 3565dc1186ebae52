import assert from "node:assert/strict";
import { test } from "node:test";
import { CostExceeded } from "hmz/flows";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";
import { each_file } from "./index.ts";

const files = ["a.ts", "b.ts", "c.ts", "d.ts", "e.ts"];
// #region table
const local = new FakeEnv({ run: { "git\0ls-files\0-z\0--\0*.ts": { stdout: files.join("\0") } } });
// #endregion

test("each file has a session of its own, and no more work than asked for goes on at once", async () => {
  let going = 0;
  let most = 0;
  const worker = new FakeAgent({
    reply: async () => {
      most = Math.max(most, ++going);
      await new Promise((resolve) => setImmediate(resolve));
      going--;
    },
  });
  const result = await runFake(each_file, "add types", { agents: { worker }, local, params: { at_once: 2 } });
  assert.deepEqual([...result.done].sort(), files);
  assert.equal(worker.sessions.length, 5);
  assert.equal(most, 2);
});

test("a file that costs too much is cut off, and the others are not", async () => {
  const worker = new FakeAgent({ cost: 1 });
  const result = await runFake(each_file, "add types", { agents: { worker }, local });
  assert.deepEqual([result.done.length, result.cut.length], [0, 5]);
});

test("the run's budget ends it all", async () => {
  const worker = new FakeAgent({ cost: 0.4 });
  const run = runFake(each_file, "add types", {
    agents: { worker },
    local,
    params: { at_once: 1 },
    budget: { cost: 1 },
  });
  await assert.rejects(run, CostExceeded);
  assert.equal(worker.prompts.length, 3);
});

test("another failure interrupts the rest", async () => {
  const worker = new FakeAgent({
    reply: (prompt) => {
      if (prompt.includes("b.ts")) throw new Error("the disk is full");
    },
  });
  await assert.rejects(runFake(each_file, "add types", { agents: { worker }, local, params: { at_once: 1 } }), /disk/);
  assert.equal(worker.prompts.length, 2);
});
