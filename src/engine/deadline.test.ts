import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";
import { agent, type Agent, type BudgetLike, flow } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";

const never = () => new Promise<string>(() => {});

function wound(t: TestContext): (ms: number) => Promise<void> {
  t.mock.timers.enable({ apis: ["Date", "setTimeout"], now: 1e12 });
  return async (ms) => {
    t.mock.timers.tick(ms);
    await nextRound();
  };
}

async function said(work: Promise<unknown>): Promise<string> {
  return work.then(
    (result) => String(result),
    (error: unknown) => `${(error as Error).name}: ${(error as Error).message}`,
  );
}

const turn = flow({ name: "turn", agents: { a: agent() } }, (task, { agents: { a } }) => a.run(task));

/** Ten calls side by side, and no group around them. */
async function ten(budget: BudgetLike, fake: FakeAgent, each: (a: Agent, index: number) => Promise<unknown>) {
  const events: RunEvent[] = [];
  let calls: string[] = [];
  const crowd = flow({ name: "crowd", agents: { a: agent() } }, async (_task, { agents: { a } }) => {
    calls = await Promise.all(Array.from({ length: 10 }, (_, index) => said(each(a, index))));
    return "all";
  });
  const run = await said(
    runFake(crowd, "", { budget, agents: { a: fake }, recorder: { record: (e) => events.push(e) } }),
  );
  const count = (kind: RunEvent["kind"]) => events.filter((event) => event.kind === kind).length;
  return { run, calls, events, count };
}

const SPENT = "DurationExceeded: deadline.test:crowd: its budget's duration is spent";

describe("ten calls side by side under one deadline", () => {
  it("hard: every one of them ends with it, and nothing is left running", async (t) => {
    const tick = wound(t);
    const fake = new FakeAgent({ reply: () => (fake.prompts.length === 10 && void tick(10), never()) });
    const { run, calls, events, count } = await ten({ duration: 10, graceful: false }, fake, (a) =>
      turn("x", { agents: { a } }),
    );
    assert.equal(run, SPENT);
    assert.deepEqual(calls, Array<string>(10).fill(SPENT));
    assert.deepEqual([fake.peak, fake.live, fake.closed], [10, 0, 1]);
    assert.ok(fake.sessions.every((session) => session.closed));
    assert.deepEqual([count("called"), count("returned"), count("begins"), count("ends")], [10, 10, 10, 10]);
    assert.ok(events.every((event) => event.kind !== "returned" || event.how === "stopped"));
  });

  it("graceful: every turn under way finishes, and none begins after", async (t) => {
    const tick = wound(t);
    const fake = new FakeAgent({
      reply: async (prompt) => {
        if (fake.prompts.length === 10) await tick(10);
        for (let round = 0; round < Number(prompt); round++) await nextRound();
        return prompt;
      },
    });
    const { run, calls, count } = await ten({ duration: 10 }, fake, async (a, index) => {
      const first = await turn(String(index), { agents: { a } });
      return `${first}, then ${await said(turn("late", { agents: { a } }))}`;
    });
    // The flow said what it had to as its last turn ended: a graceful deadline takes nothing from it.
    assert.equal(run, "all");
    const late = /^\d, then DurationExceeded: deadline\.test:(turn|crowd): its budget's duration is spent$/;
    for (const call of calls) assert.match(call, late);
    assert.equal(fake.prompts.length, 10);
    assert.equal(fake.live, 0);
    assert.equal(count("failed"), 0);
    assert.equal(count("called"), count("returned"));
  });

  it("a shorter one of one call's own ends that call alone", async (t) => {
    const tick = wound(t);
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const fake = new FakeAgent({
      reply: async (prompt) => {
        if (fake.prompts.length === 10) await tick(10);
        if (prompt === "short") return never();
        await released;
        return prompt;
      },
    });
    const { run, calls } = await ten({ duration: "1h", graceful: false }, fake, async (a, index) => {
      if (index > 0) return turn("long", { agents: { a } });
      const work = turn("short", { agents: { a }, budget: { duration: 10, graceful: false } });
      return work.finally(() => release());
    });
    assert.equal(run, "all");
    assert.deepEqual(calls, [
      "DurationExceeded: deadline.test:turn: its budget's duration is spent",
      ...Array<string>(9).fill("long"),
    ]);
    assert.equal(fake.live, 0);
  });
});

describe("a deadline of a call two above the turn", () => {
  const seen: string[] = [];
  const inner = flow({ name: "inner", agents: { a: agent() } }, async (_task, { agents: { a } }) => {
    const one = await said(a.run("x"));
    seen.push(`turn: ${one}`, `next: ${await said(a.run("y"))}`);
    return one;
  });
  const middle = flow({ name: "middle", agents: { a: agent() } }, async (_task, { agents: { a } }) => {
    seen.push(`inner: ${await said(inner("", { agents: { a }, budget: { duration: "2h" } }))}`);
    return "went on";
  });
  const top = flow({ name: "top", agents: { a: agent() } }, async (_task, { agents: { a } }) => {
    seen.push(`middle: ${await said(middle("", { agents: { a }, budget: { duration: 10, graceful: false } }))}`);
    return a.run("z");
  });

  it("is the leaf of the turn, and comes out of its own call, whose caller goes on", async (t) => {
    const tick = wound(t);
    const fake = new FakeAgent({ reply: (prompt) => (prompt === "x" ? (void tick(10), never()) : prompt) });
    const events: RunEvent[] = [];
    const budget = { duration: "1h" };
    const record = (event: RunEvent) => void events.push(event);
    assert.equal(await runFake(top, "", { budget, agents: { a: fake }, recorder: { record } }), "z");
    const spent = "DurationExceeded: deadline.test:middle: its budget's duration is spent";
    assert.deepEqual(seen, [`turn: ${spent}`, `next: ${spent}`, `inner: ${spent}`, `middle: ${spent}`]);
    assert.deepEqual(fake.prompts, ["x", "z"]);
    assert.equal(fake.live, 0);
    const failed = events.flatMap((event) => (event.kind === "failed" ? [event.error] : []));
    assert.deepEqual(failed, ["DurationExceeded"]);
  });
});
