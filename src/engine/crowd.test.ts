import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, flow } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";

const SESSIONS = 1_000;
const TURNS = 3;

describe("a thousand sessions at once", () => {
  it("lose no event, no cent and no session", async () => {
    const fake = new FakeAgent({
      cost: 1,
      outputTokens: 2,
      reply: async (prompt) => {
        await Promise.resolve();
        return prompt;
      },
    });
    const counts = new Map<string, number>();
    const numbers = new Set<number>();
    const record = (event: RunEvent): void => {
      counts.set(event.kind, (counts.get(event.kind) ?? 0) + 1);
      if (event.kind === "begins") numbers.add(event.turn);
    };
    const one = flow({ name: "one", agents: { b: agent() } }, async (task, { agents: { b } }) => {
      const session = await b.spawn();
      for (let turn = 0; turn < TURNS; turn++)
        assert.equal(await b.run(`${task} ${turn}`, { session }), `${task} ${turn}`);
      return session.usage.cost;
    });
    const crowd = flow({ name: "crowd", agents: { a: agent() } }, async (_task, { agents: { a }, ctx }) => {
      const all = await ctx.group((group) =>
        Promise.all(
          Array.from({ length: SESSIONS }, (_, at) => group.run(() => one(String(at), { agents: { b: a } }))),
        ),
      );
      return [all.reduce((sum, cost) => sum + cost, 0), ctx.usage.cost, ctx.usage.outputTokens];
    });
    const turns = SESSIONS * TURNS;
    const said = await runFake(crowd, "", { agents: { a: fake }, recorder: { record } });
    assert.deepEqual(said, [turns, turns, 2 * turns]);
    const kinds = ["begins", "text", "result", "ends"];
    assert.deepEqual(
      kinds.map((kind) => counts.get(kind)),
      kinds.map(() => turns),
    );
    assert.deepEqual(
      [counts.get("called"), counts.get("returned"), counts.get("opened")],
      [SESSIONS, SESSIONS, SESSIONS],
    );
    assert.equal(numbers.size, turns);
    assert.deepEqual([fake.live, fake.peak, new Set(fake.sessions.map(({ id }) => id)).size], [0, SESSIONS, SESSIONS]);
  });

  it("are all interrupted when their run is stopped", async () => {
    const aborter = new AbortController();
    let hanging = 0;
    const fake = new FakeAgent({
      reply: () => {
        if (++hanging === SESSIONS) aborter.abort();
        return new Promise<string>(() => {});
      },
    });
    const crowd = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) =>
      Promise.all(Array.from({ length: SESSIONS }, () => a.run("x"))),
    );
    await assert.rejects(runFake(crowd, "", { agents: { a: fake }, signal: aborter.signal }), {
      name: "FlowCancelled",
    });
    assert.deepEqual([fake.live, fake.closed], [0, 1]);
  });
});
