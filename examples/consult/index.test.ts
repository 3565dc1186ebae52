import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";
import { consult } from "./index.ts";

// #region use
test("the builder's tools reach the file, the expert and the flow", async () => {
  const heard: string[] = [];
  const builder = new FakeAgent({
    reply: async (_prompt, { session }) => {
      heard.push(await session.use("rules"));
      heard.push(await session.use("ask_expert", { question: "who calls parse()?" }));
      heard.push(await session.use("check"));
      return "done";
    },
  });
  const expert = new FakeAgent({ reply: ["only main.ts", { findings: ["no test"] }] });
  const local = new FakeEnv({ files: { "RULES.md": "No classes." } });
  await runFake(consult, "add a flag", { agents: { builder, expert }, local });

  assert.deepEqual(heard, ["No classes.", "only main.ts", '{"findings":["no test"]}']);
});
// #endregion

// #region fails
test("a tool that fails is told to the agent, and the turn goes on", async () => {
  const builder = new FakeAgent({ reply: (_prompt, { session }) => session.use("rules") });
  const said = await runFake(consult, "add a flag", { agents: { builder } });
  assert.equal(said, "rules failed: /here/RULES.md: no such file");
});
// #endregion

test("arguments of another shape never reach the tool", async () => {
  const builder = new FakeAgent({ reply: (_prompt, { session }) => session.use("ask_expert", { question: 1 }) });
  const expert = new FakeAgent();
  assert.match(
    await runFake(consult, "x", { agents: { builder, expert } }),
    /^ask_expert was called wrongly: question:/,
  );
  assert.deepEqual(expert.prompts, []);
});
