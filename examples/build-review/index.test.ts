import assert from "node:assert/strict";
import { test } from "node:test";
import { OutputSchemaError } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import { build_review } from "./index.ts";

test("what the reviewer finds goes back to the builder, until it approves", async () => {
  const builder = new FakeAgent();
  const reviewer = new FakeAgent({
    reply: [
      { approved: false, problems: [{ file: "src/parse.ts", what: "the empty line is not handled" }] },
      { approved: true, problems: [] },
    ],
  });
  const review = await runFake(build_review, "add a parser", { agents: { builder, reviewer } });

  assert.deepEqual(review, { round: 2, approved: true, problems: [] });
  assert.match(builder.prompts[1] ?? "", /- src\/parse\.ts: the empty line is not handled/);
  assert.deepEqual([builder.sessions.length, reviewer.sessions.length], [1, 2]);
  assert.equal(reviewer.sessions[0]?.permission.local, "read");
});

test("rounds end", async () => {
  const reviewer = new FakeAgent({ reply: { approved: false, problems: [] } });
  const review = await runFake(build_review, "add a parser", { agents: { reviewer }, params: { rounds: 2 } });
  assert.deepEqual([review.round, review.approved], [2, false]);
});

test("an answer of another shape is an error of its own", async () => {
  const reviewer = new FakeAgent({ reply: "looks good to me" });
  await assert.rejects(runFake(build_review, "add a parser", { agents: { reviewer } }), OutputSchemaError);
});
