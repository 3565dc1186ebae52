import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Agent, agent, flow, type RunDone } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";

/** Runs a function as a flow of one agent with these callbacks after its runs. */
async function told<R>(afterRun: readonly ((done: RunDone) => void | Promise<void>)[], body: (a: Agent) => Promise<R>) {
  const fake = new FakeAgent({ cost: 0.5, outputTokens: 3, seconds: 2, reply: (prompt) => `${prompt}!` });
  const events: RunEvent[] = [];
  const saves = flow({ agents: { a: agent({ callbacks: { afterRun } }) } }, (_task, { agents: { a } }) => body(a));
  const record = (event: RunEvent) => void events.push(event);
  const result = await runFake(saves, "", { agents: { a: fake }, recorder: { record } });
  return { result, fake, events };
}

describe("what follows a run", () => {
  it("is told what was said and spent, each function in its turn, before the flow has its answer", async () => {
    const lines: string[] = [];
    const { result } = await told(
      [
        async ({ said, usage, messages }) => {
          await Promise.resolve();
          lines.push(`${said} ${usage.cost} ${usage.outputTokens} ${usage.duration} ${messages.length}`);
        },
        ({ session, ctx }) => void lines.push(`${session.usage.cost} ${ctx.usage.cost}`),
      ],
      async (a) => {
        const said = await a.run("go");
        lines.push("answered");
        return said;
      },
    );
    assert.equal(result, "go!");
    assert.deepEqual(lines, ["go! 0.5 3 2000 2", "0.5 0.5", "answered"]);
  });

  it("that throws fails the turn with its own error; what was spent stays spent, and the session goes on", async () => {
    const failure = new RangeError("nowhere to save it");
    let calls = 0;
    const { result, fake, events } = await told(
      [
        () => {
          if (++calls === 1) throw failure;
        },
        () => void calls++,
      ],
      async (a) => {
        const session = await a.spawn();
        const error = await a.run("one", { session }).catch((thrown: unknown) => thrown);
        return [error, await a.run("two", { session }), session.usage.cost];
      },
    );
    assert.deepEqual(result, [failure, "two!", 1]);
    assert.equal((result as readonly unknown[])[0], failure);
    assert.equal(calls, 3, "the list ends with what throws");
    assert.deepEqual(fake.prompts, ["one", "two"]);
    assert.equal(fake.live, 0);
    const ends = events.flatMap((event) =>
      event.kind === "failed" ? [`${event.error}: ${event.text}`] : event.kind === "result" ? [event.text] : [],
    );
    assert.deepEqual(ends, ["RangeError: nowhere to save it", "two!"]);
  });

  it("is told nothing of a turn that failed", async () => {
    let calls = 0;
    const { result } = await told([() => void calls++], (a) =>
      a.run("go", { budget: { cost: 0.1, graceful: false } }).catch((error: unknown) => (error as Error).name),
    );
    assert.equal(result, "CostExceeded");
    assert.equal(calls, 0);
  });
});
