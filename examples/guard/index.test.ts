import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeAgent, runFake } from "hmz/fakes";
import { guard } from "./index.ts";

// #region acts
test("what is refused does not run; the rest does", async () => {
  const commands = ["ls -la", "rm -rf build", "rm build/a.js", "git -C . push origin main", "git status", "rm -fr ."];
  const worker = new FakeAgent({
    reply: async (_prompt, { session }) => {
      for (const command of commands) await session.tool("Bash", { command });
      return "done";
    },
  });
  await runFake(guard, "clean up", { agents: { worker } });
  const ran = worker.sessions[0]?.tools.filter((use) => use.ran).map((use) => use.input["command"]);
  assert.deepEqual(ran, ["ls -la", "rm build/a.js", "git status"]);
});
// #endregion

test("a harness whose hooks gate nothing runs it all the same", async () => {
  const worker = new FakeAgent({
    harness: "codex",
    reply: async (_prompt, { session }) => String(await session.tool("shell", { command: "git push" })),
  });
  assert.equal(await runFake(guard, "clean up", { agents: { worker } }), "true");
});
