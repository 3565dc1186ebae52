import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeAgent, runFake } from "hmz/fakes";
import { debate } from "./index.ts";

test("each hears what the other says, until the judge finds them agreed", async () => {
  const first = new FakeAgent({ reply: ["tabs", "spaces, then"], model: "one" });
  const second = new FakeAgent({ reply: ["spaces", "spaces"], model: "two" });
  const judge = new FakeAgent({
    reply: [
      { agreed: false, answer: "spaces: diffs stay aligned" },
      { agreed: true, answer: "spaces" },
    ],
  });
  const result = await runFake(debate, "tabs or spaces?", { agents: { first, second, judge } });

  assert.deepEqual(result, { round: 2, agreed: true, answer: "spaces" });
  assert.match(first.prompts[1] ?? "", /Another engineer answers:\n\nspaces/);
  assert.match(second.prompts[1] ?? "", /spaces, then/);
  assert.match(judge.prompts[1] ?? "", /A says:\nspaces, then[\s\S]*B says:\nspaces/);
});

test("a debate that does not end is ended with the better answer so far", async () => {
  const judge = new FakeAgent({ reply: { agreed: false, answer: "neither" } });
  const result = await runFake(debate, "vim or emacs?", { agents: { judge }, params: { rounds: 2 } });
  assert.deepEqual(result, { round: 2, agreed: false, answer: "neither" });
});
