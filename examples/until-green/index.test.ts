import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";
import { until_green } from "./index.ts";

test("the turn is held until the tests pass", async () => {
  const outcomes = [{ status: 1, stdout: "1 failing\n" }, { status: 0 }];
  const local = new FakeEnv({ run: (command) => (command === "npm test" ? outcomes.shift() : undefined) });
  const fixer = new FakeAgent({ reply: ["I think it is done", "now it is"] });

  assert.deepEqual(await runFake(until_green, "fix the parser", { agents: { fixer }, local }), {
    green: true,
    said: "now it is",
  });
  assert.equal(fixer.sessions[0]?.turns, 1);
  assert.match(fixer.prompts[1] ?? "", /`npm test` fails[\s\S]*1 failing/);
});

test("a turn that never gets there ends after as many tries as were asked for", async () => {
  const fixer = new FakeAgent({ reply: (prompt) => `tried: ${prompt.length}` });
  const red = await runFake(until_green, "fix it", {
    agents: { fixer },
    local: new FakeEnv({ run: () => ({ status: 1 }) }),
    params: { tries: 2 },
  });
  assert.equal(red.green, false);
  assert.equal(fixer.prompts.length, 3);
});
