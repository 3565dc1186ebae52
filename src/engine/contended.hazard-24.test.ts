import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, flow, HarnessContended } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";

describe("a CLI's store that eight turns reach at once", () => {
  it("fails the turn that lost, and no other; whoever lost may ask again, in the same session", async () => {
    const lost = new HarnessContended("database is locked");
    const asked = new Map<string, number>();
    const fake = new FakeAgent({
      reply: (prompt) => {
        const times = (asked.get(prompt) ?? 0) + 1;
        asked.set(prompt, times);
        if (prompt === "3" && times === 1) throw lost;
        return `login ${prompt}`;
      },
    });
    const crowd = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      const sessions = await Promise.all(Array.from({ length: 8 }, () => a.spawn()));
      const said = await Promise.all(
        sessions.map((session, index) => a.run(String(index), { session }).catch((error: unknown) => error)),
      );
      return [said, await a.run("3", { session: sessions[3] })];
    });
    const [said, again] = (await runFake(crowd, "", { agents: { a: fake } })) as [unknown[], string];
    assert.equal(said[3], lost);
    assert.deepEqual(
      said.filter((one) => one !== lost),
      [0, 1, 2, 4, 5, 6, 7].map((index) => `login ${index}`),
    );
    assert.equal(again, "login 3");
    assert.equal(fake.live, 0);
  });

  it("is no spent quota: nothing that waits is refused for it", async () => {
    const fake = new FakeAgent({
      reply: () => {
        throw new HarnessContended("session id x is already in use");
      },
    });
    const asks = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      for (let turn = 0; turn < 3; turn++) await a.run("x").catch(() => {});
    });
    await runFake(asks, "", { agents: { a: fake } });
    assert.equal(fake.prompts.length, 3);
  });
});
