import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";
import { todo } from "./index.ts";

test("each open item is a turn, in order", async () => {
  const worker = new FakeAgent();
  const local = new FakeEnv({ files: { "TODO.md": "- [x] a\n- [ ] b\n- [ ] c\n" } });
  assert.deepEqual(await runFake(todo, "TODO.md", { agents: { worker }, local }), ["b", "c"]);
  assert.deepEqual(worker.prompts, ["b", "c"]);
});
