import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeEnv, runFake } from "hmz/fakes";
import { attempts } from "./index.ts";

/** A workspace in whose copies `npm test` passes where `passes` says so. */
function workspace(passes: (cwd: string) => boolean): FakeEnv {
  return new FakeEnv({
    files: { "a.ts": "before" },
    run: async (command, env, { cwd }) => {
      if (command === "npm test") return { status: passes(cwd) ? 0 : 1 };
      if (command[0] === "cp") await env.write("a.ts", new TextEncoder().encode("after"));
      return command[0] === "cp" ? {} : undefined;
    },
  });
}

test("what passes is laid over the workspace, and no copy is left", async () => {
  const local = workspace(() => true);
  assert.equal(await runFake(attempts, "x", { local }), "done");
  assert.equal(local.text("a.ts"), "after");
  assert.deepEqual(local.clones, []);
});

test("what passes in its copy alone is taken back", async () => {
  const local = workspace((cwd) => cwd.endsWith("/bold"));
  assert.equal(await runFake(attempts, "x", { local }), "it passes in the copy alone");
  assert.equal(local.text("a.ts"), "before");
});

test("nothing passes, and nothing is touched", async () => {
  const local = workspace(() => false);
  assert.equal(await runFake(attempts, "x", { local }), "none of the three passes");
  assert.equal(local.text("a.ts"), "before");
});
