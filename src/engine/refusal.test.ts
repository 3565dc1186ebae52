/** A flow that catches whatever it is told and asks again is ended all the same. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeAgent, runFake } from "../fakes/index.ts";
import { agent, type Budget, CostExceeded, DurationExceeded, flow, FlowCancelled } from "../flows/index.ts";

const callee = flow({ name: "callee", agents: { a: agent() } }, async (_task, { agents: { a } }) => a.run("x"));

const asks = {
  "a turn": (a) => a.run("x"),
  "a turn of a session": async (a) => a.run("x", { session: await a.spawn() }),
  "a call": (a) => callee("", { agents: { a } }),
} as const satisfies Readonly<
  Record<string, (a: Parameters<typeof callee>[1] extends { agents: { a: infer A } } ? A : never) => Promise<unknown>>
>;

// Each is given five seconds to come to an end by itself.
describe("a flow that catches every refusal and asks again", { concurrency: true }, () => {
  const stubborn = (ask: keyof typeof asks) =>
    flow({ name: "stubborn", agents: { a: agent() } }, async (_task, { agents: { a } }): Promise<never> => {
      for (;;) {
        try {
          await asks[ask](a);
        } catch {
          // As whoever wrote it thought best.
        }
      }
    });
  const run = (ask: keyof typeof asks, budget: Partial<Budget>, signal?: AbortSignal) =>
    runFake(stubborn(ask), "", {
      agents: { a: new FakeAgent({ cost: 1 }) },
      budget,
      ...(signal ? { signal } : {}),
    });

  for (const ask of ["a turn", "a turn of a session"] as const) {
    it(`for ${ask} is ended by what it may cost`, { timeout: 20_000 }, () =>
      assert.rejects(run(ask, { cost: 3 }), CostExceeded),
    );
  }

  for (const ask of Object.keys(asks) as (keyof typeof asks)[]) {
    it(`for ${ask} is ended by a deadline`, { timeout: 20_000 }, () =>
      assert.rejects(run(ask, { cost: 3, duration: 50 }), (error: unknown) => {
        assert.ok(error instanceof DurationExceeded || error instanceof CostExceeded);
        return true;
      }),
    );

    it(`for ${ask} is ended by a stop`, { timeout: 20_000 }, () => {
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 20);
      return assert.rejects(run(ask, { cost: 1e9 }, stop.signal), FlowCancelled);
    });
  }
});
