import assert from "node:assert/strict";
import { test } from "node:test";
import { agent, flow, PermissionTooNarrow } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import { plan, plan_build } from "./index.ts";

test("the same agent plans under the planner's grant, and builds under the builder's", async () => {
  const builder = new FakeAgent({ reply: [{ steps: ["add the flag", "document it"] }, "done", "done"] });
  assert.deepEqual(await runFake(plan_build, "a --dry-run flag", { agents: { builder } }), [
    "add the flag",
    "document it",
  ]);
  const [planning, building] = builder.sessions;
  assert.equal(String(planning?.permission), "local=read, user=read, system=read, online=none");
  assert.equal(String(building?.permission), "local=all, user=read, system=read, online=all");
  assert.match(builder.prompts[0] ?? "", /at most 4 steps/);
});

// #region narrow
test("a grant only shrinks: who may read nothing cannot hand on the right to read", async () => {
  const blind = flow(
    { agents: { a: agent({ permission: { local: "none", user: "none", system: "none" } }) } },
    (task, { agents: { a } }) => plan(task, { agents: { planner: a } }),
  );
  await assert.rejects(runFake(blind), PermissionTooNarrow);
});
// #endregion
