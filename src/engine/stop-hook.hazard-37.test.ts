import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, flow } from "hmz/flows";
import { FakeAgent, type FakeAgentOptions, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";

/** Runs one turn under a stop hook that always blocks. */
async function blocked(fake: FakeAgentOptions, reason: (again: number) => string, budget = { cost: Infinity }) {
  const driver = new FakeAgent(fake);
  const notices: string[] = [];
  const blocks = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
    a.onStop(({ again }) => ({ block: again < 1_000, reason: reason(again) }));
    return a.run("go");
  });
  const record = (event: RunEvent) => void (event.kind === "notice" && notices.push(event.text));
  const said = await runFake(blocks, "", { agents: { a: driver }, budget, recorder: { record } });
  return { said, prompts: driver.prompts.length, last: notices.at(-1) };
}

describe("a stop hook that blocks for ever", () => {
  it("for the same reason on the same answer ends its turn, and says so", async () => {
    const { said, prompts, last } = await blocked({ reply: "same" }, () => "keep going");
    assert.equal(said, "same");
    assert.ok(prompts <= 20, `${prompts} prompts`);
    assert.match(last ?? "", /a stop hook said the same/);
  });

  it("on no answer at all ends its turn", async () => {
    const { said, prompts, last } = await blocked({ reply: "" }, () => "say something");
    assert.equal(said, "");
    assert.ok(prompts <= 20, `${prompts} prompts`);
    assert.match(last ?? "", /a stop hook said the same/);
  });

  it("ends its turn once the budget is spent, and says so", async () => {
    const { prompts, last } = await blocked({ cost: 1, reply: (prompt) => prompt }, (again) => `more ${again}`, {
      cost: 5,
    });
    assert.equal(prompts, 5);
    assert.match(last ?? "", /the budget is spent/);
  });

  it("while its answers differ is a loop that the flow asked for", async () => {
    let turns = 0;
    const { prompts } = await blocked({ reply: () => `answer ${turns++}` }, () => "keep going");
    assert.equal(prompts, 1_001);
  });
});
