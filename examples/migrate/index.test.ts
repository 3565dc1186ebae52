import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";
import { migrate } from "./index.ts";

// #region test
test("a run that was stopped is picked up where it was, and does nothing twice", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "migrate-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const journal = join(directory, "resume.jsonl");

  const worker = () =>
    new FakeAgent({
      reply: (prompt) => (prompt.startsWith("Which modules") ? { modules: ["a", "b", "c"] } : "done"),
    });
  let runs = 0;
  const failing = new FakeEnv({ run: () => ({ status: ++runs === 2 ? 1 : 0, stderr: "b.test fails" }) });
  const first = worker();
  await assert.rejects(runFake(migrate, "to ESM", { agents: { worker: first }, local: failing, journal }), {
    message: "b: its tests fail: b.test fails",
  });

  const second = worker();
  const passing = new FakeEnv({ run: () => ({ status: 0 }) });
  await runFake(migrate, "to ESM", { agents: { worker: second }, local: passing, journal, resume: true });
  assert.deepEqual(second.prompts, [
    "Migrate b, and nothing else.",
    "Migrate c, and nothing else.",
    "All of them are migrated. What is left to say to a reviewer?",
  ]);
});
// #endregion
