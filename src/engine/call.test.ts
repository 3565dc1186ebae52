import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";
import { agent, env, flow, type FlowContext, FlowCancelled, HarnessThrottled, z } from "hmz/flows";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

const REF = "call.test";
const never = () => new Promise<string>(() => {});

async function rounds(count: number): Promise<void> {
  for (let round = 0; round < count; round++) await nextRound();
}

function untilCancelled({ signal }: FlowContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });
}

describe("a call", () => {
  it("returns what the callee returns, and rejects with what it throws, as itself", async () => {
    class Mine extends Error {}
    const thrown = new Mine("mine");
    const answers = flow({ params: z.object({ n: z.number() }) }, async (task, { params }) => `${task} ${params.n}`);
    const throws = flow({}, async () => {
      throw thrown;
    });
    const fails = flow({ agents: { b: agent() } }, async (_task, { agents: { b } }) => b.run("x"));
    const top = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      assert.equal(await answers("go", { params: { n: 5 } }), "go 5");
      await assert.rejects(throws(""), (error) => error === thrown);
      await assert.rejects(fails("", { agents: { b: a } }), HarnessThrottled);
      return "went on";
    });
    const fake = new FakeAgent({
      reply: () => {
        throw new HarnessThrottled("slow down");
      },
    });
    assert.equal(await runFake(top, "", { agents: { a: fake } }), "went on");
    await assert.rejects(runFake(throws), (error) => error === thrown);
  });

  it("throws synchronously nothing: a flow that is no promise still resolves", async () => {
    const plain = flow({}, () => "plain");
    const throws = flow({}, () => {
      throw new TypeError("at once");
    });
    const top = flow({}, async () => [await plain(""), await refusal(throws(""))]);
    assert.deepEqual(await runFake(top), ["plain", "TypeError: at once"]);
  });

  it("65 deep is refused", async () => {
    let deepest = 0;
    const dives = flow(
      { name: "dives", params: z.object({ depth: z.number() }) },
      async (_task, { params }): Promise<string> => {
        deepest = params.depth;
        return refusal(dives("", { params: { depth: params.depth + 1 } }));
      },
    );
    let said = "";
    const bottom = flow(
      { name: "bottom", params: z.object({ depth: z.number() }) },
      async (_task, { params }): Promise<void> => {
        deepest = params.depth;
        const line = await refusal(bottom("", { params: { depth: params.depth + 1 } }));
        if (line !== "nothing was refused") said = line;
      },
    );
    await runFake(dives, "", { params: { depth: 1 } });
    assert.equal(deepest, 64);
    await runFake(bottom, "", { params: { depth: 1 } });
    assert.equal(said, `FlowDepthExceeded: ${REF}:bottom: flows are called 65 deep, and 64 is the most`);
  });

  it("is told of as it begins and as it ends, and one that is refused is not", async () => {
    const events: object[] = [];
    const record = (event: RunEvent) => {
      if (event.kind !== "called" && event.kind !== "returned") return;
      const { at: _at, ...rest } = event;
      events.push(rest);
    };
    const leaf = flow({ name: "leaf" }, async () => {});
    const fails = flow({ name: "fails" }, async () => {
      await leaf("l");
      throw new Error("x");
    });
    const spent = flow({ name: "spent", agents: { b: agent() } }, async (_task, { agents: { b } }) => b.run("x"));
    const top = flow({ name: "top", agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      await refusal(fails("f"));
      await refusal((spent as unknown as (task: string) => Promise<void>)("refused"));
      await refusal(spent("s", { agents: { b: a }, budget: { cost: 0 } }));
    });
    await runFake(top, "", { recorder: { record } });
    assert.deepEqual(
      events.map((event) => Object.values(event).join(" ")),
      [
        `called 1 0 ${REF}:fails f`,
        `called 2 1 ${REF}:leaf l`,
        `returned 2 ${REF}:leaf done`,
        `returned 1 ${REF}:fails failed`,
        `called 4 0 ${REF}:spent s`,
        `returned 4 ${REF}:spent stopped`,
      ],
    );
  });

  it("has a context of its own", async () => {
    const contexts: FlowContext[] = [];
    const inner = flow({ name: "inner" }, async (_task, { ctx }) => void contexts.push(ctx));
    const outer = flow({ name: "outer", resumable: true }, async (_task, { ctx }) => {
      contexts.push(ctx);
      await inner("");
      await inner("");
      return ctx.state.get("a", 1);
    });
    assert.equal(await runFake(outer), 1);
    assert.deepEqual(
      contexts.map(({ flow: { name }, resumed, state }) => [name, resumed, state !== undefined]),
      [
        ["outer", false, true],
        ["inner", false, false],
        ["inner", false, false],
      ],
    );
    assert.equal(new Set(contexts).size, 3);
  });
});

describe("what outlives its call is refused", () => {
  it("with FlowCancelled, naming what has ended", async () => {
    let later: Promise<unknown> | undefined;
    const leaf = flow({ name: "leaf" }, async () => {});
    const inner = flow({ name: "inner" }, async () => {
      later = (async () => {
        await rounds(3);
        return refusal(leaf(""));
      })();
    });
    const outer = flow({ name: "outer" }, async () => {
      await inner("");
      return later;
    });
    assert.equal(await runFake(outer), `FlowCancelled: ${REF}:leaf: ${REF}:inner has ended`);
    const top = flow({ name: "top" }, async () => {
      later = (async () => {
        await rounds(3);
        return refusal(leaf(""));
      })();
    });
    await runFake(top);
    assert.equal(await later, `FlowCancelled: ${REF}:leaf: the run has ended`);
  });

  it("and what still goes under it is cancelled, and waited for", async () => {
    const order: string[] = [];
    const fake = new FakeAgent({ reply: never });
    const hangs = flow({ name: "hangs", agents: { b: agent() } }, async (_task, { agents: { b }, ctx }) => {
      try {
        await b.run("x");
      } catch (error) {
        order.push((error as Error).name);
        throw error;
      } finally {
        await rounds(3);
        order.push(`unwound ${ctx.signal.aborted}`);
      }
    });
    const top = flow({ name: "top", agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      hangs("", { agents: { b: a } }).catch(() => {});
      await rounds(3);
      order.push("returns");
    });
    await runFake(top, "", { agents: { a: fake } });
    assert.deepEqual(order, ["returns", "FlowCancelled", "unwound true"]);
    assert.equal(fake.live, 0);
  });

  it("a turn that was left under way is interrupted", async () => {
    const fake = new FakeAgent({ reply: never });
    let left: Promise<string> | undefined;
    const top = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      left = refusal(a.run("x"));
      await rounds(3);
    });
    await runFake(top, "", { agents: { a: fake } });
    assert.match((await left) ?? "", /^(FlowCancelled|SessionError): /);
    assert.equal(fake.live, 0);
  });

  it("an environment is of no use any more", async () => {
    const machine = new FakeEnv();
    let later: Promise<string> | undefined;
    const top = flow({ envs: { e: env({ needs: ["shell"] }) } }, async (_task, { envs: { e } }) => {
      later = (async () => {
        await rounds(3);
        return refusal(e.exec(["true"]));
      })();
    });
    await runFake(top, "", { envs: { e: machine } });
    assert.match((await later) ?? "", /^FlowCancelled: /);
    assert.deepEqual(machine.commands, []);
  });
});

describe("a stopped run", () => {
  it("interrupts the turn under way, lets finally blocks run, closes its sessions", async () => {
    const order: string[] = [];
    const aborter = new AbortController();
    const fake = new FakeAgent({ reply: () => (aborter.abort(), never()) });
    const top = flow({ name: "top", agents: { a: agent() } }, async (_task, { agents: { a }, ctx }) => {
      a.onSessionEnd(() => void order.push("session_end"));
      try {
        await a.run("x", { session: await a.spawn() });
      } finally {
        order.push(`finally ${ctx.signal.aborted}`);
        order.push(await refusal(a.run("y")));
      }
    });
    const said = await refusal(runFake(top, "", { agents: { a: fake }, signal: aborter.signal }));
    assert.equal(said, `FlowCancelled: ${REF}:top: the run was stopped`);
    assert.deepEqual(order, ["finally true", `FlowCancelled: ${REF}:top: the run was stopped`, "session_end"]);
    assert.deepEqual([fake.live, fake.closed, fake.prompts], [0, 1, ["x"]]);
  });

  it("is stopped whatever the flow returns, and keeps an error of the flow's own", async () => {
    const run = (body: (ctx: FlowContext) => Promise<unknown>) => {
      const aborter = new AbortController();
      const top = flow({ name: "top" }, async (_task, { ctx }) => {
        await rounds(1);
        aborter.abort();
        return body(ctx);
      });
      return refusal(runFake(top, "", { signal: aborter.signal }));
    };
    assert.equal(await run(async () => "done all the same"), `FlowCancelled: ${REF}:top: the run was stopped`);
    assert.equal(
      await run((ctx) => Promise.reject(ctx.signal.reason as Error)),
      `FlowCancelled: ${REF}:top: the run was stopped`,
    );
    assert.equal(
      await run(async () => {
        throw new TypeError("while unwinding");
      }),
      "TypeError: while unwinding",
    );
  });

  it("cancels calls below, and a command that is running", async () => {
    const aborter = new AbortController();
    const machine = new FakeEnv({ run: () => (aborter.abort(), new Promise(() => {})) });
    const inner = flow({ name: "inner", envs: { e: env({ needs: ["shell"] }) } }, async (_task, { envs: { e } }) =>
      e.exec(["make"]),
    );
    const top = flow({ name: "top", envs: { e: env({ needs: ["shell"] }) } }, async (_task, { envs }) =>
      inner("", { envs }),
    );
    await assert.rejects(runFake(top, "", { envs: { e: machine }, signal: aborter.signal }), FlowCancelled);
  });
});

describe("a call's own signal", () => {
  it("cancels it, and its caller goes on", async () => {
    const hangs = flow({ name: "hangs" }, (_task, { ctx }) => untilCancelled(ctx));
    const top = flow({}, async () => {
      const aborter = new AbortController();
      const hung = refusal(hangs("", { signal: aborter.signal }));
      aborter.abort(new RangeError("enough"));
      return [await hung, await refusal(hangs("", { signal: AbortSignal.abort(new RangeError("before")) }))];
    });
    assert.deepEqual(await runFake(top), ["RangeError: enough", "RangeError: before"]);
  });
});

describe("ctx.group", () => {
  it("resolves to what its function returns, once every member has ended", async () => {
    const order: string[] = [];
    const top = flow({}, async (_task, { ctx }) =>
      ctx.group(async (group) => {
        void group.run(async () => {
          await rounds(3);
          order.push("member");
          void group.run(async () => void order.push("a member's member"));
        });
        const said = await group.run(async () => "said");
        order.push("body");
        return said;
      }),
    );
    assert.equal(await runFake(top), "said");
    assert.deepEqual(order, ["body", "member", "a member's member"]);
  });

  it("whose member fails interrupts the others, waits for them, and rejects with that error", async () => {
    const order: string[] = [];
    const boom = new Error("boom");
    const fake = new FakeAgent({ reply: never });
    const hangs = flow({ name: "hangs", agents: { b: agent() } }, async (_task, { agents: { b } }) => b.run("x"));
    const top = flow({ agents: { a: agent() } }, async (_task, { agents: { a }, ctx }) => {
      const failed = ctx.group(async (group) => {
        void group.run(() => a.run("x")).catch((error: Error) => order.push(error.name));
        void group.run(() => hangs("", { agents: { b: a } })).catch((error: Error) => order.push(error.name));
        void group
          .run(async (signal) => {
            try {
              await new Promise((_resolve, reject) =>
                signal.addEventListener("abort", () => reject(signal.reason as Error)),
              );
            } finally {
              await rounds(5);
              order.push("unwound");
            }
          })
          .catch(() => {});
        await rounds(3);
        await group.run(async () => {
          throw boom;
        });
      });
      await assert.rejects(failed, (error) => error === boom);
      order.push(`goes on ${ctx.signal.aborted} ${fake.live}`);
      return a.derive({}).role;
    });
    assert.equal(await runFake(top, "", { agents: { a: fake } }), "a");
    assert.deepEqual(order.sort(), ["FlowCancelled", "FlowCancelled", "goes on false 0", "unwound"]);
  });

  it("where more fail rejects with an AggregateError of them", async () => {
    const [one, two] = [new Error("one"), new RangeError("two")];
    const top = flow({}, async (_task, { ctx }) =>
      ctx.group((group) => {
        void group.run(async () => Promise.reject(one)).catch(() => {});
        void group
          .run(async (signal) => {
            await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
            throw two;
          })
          .catch(() => {});
      }),
    );
    await assert.rejects(runFake(top), (error) => {
      assert.ok(error instanceof AggregateError);
      assert.deepEqual(error.errors, [one, two]);
      return true;
    });
  });

  it("whose function throws cancels its members", async () => {
    let reason: unknown;
    const top = flow({}, async (_task, { ctx }) =>
      ctx.group(async (group) => {
        group.signal.addEventListener("abort", () => (reason = group.signal.reason));
        void group
          .run(
            (signal) =>
              new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
          )
          .catch(() => {});
        throw new RangeError("body");
      }),
    );
    assert.equal(await refusal(runFake(top)), "RangeError: body");
    assert.ok(reason instanceof FlowCancelled);
  });

  it("in a group fails alone", async () => {
    const top = flow({}, async (_task, { ctx }) =>
      ctx.group(async (outer) => {
        const inner = await refusal(
          ctx.group(async (group) => {
            await group.run(async () => Promise.reject(new Error("inner")));
          }),
        );
        return [inner, outer.signal.aborted];
      }),
    );
    assert.deepEqual(await runFake(top), ["Error: inner", false]);
  });

  it("starts nothing once it is cancelled", async () => {
    let started = false;
    const top = flow({}, async (_task, { ctx }) =>
      ctx.group(async (group) => {
        await group.run(async () => Promise.reject(new Error("first"))).catch(() => {});
        await group.run(async () => void (started = true)).catch(() => {});
      }),
    );
    assert.equal(await refusal(runFake(top)), "Error: first");
    assert.equal(started, false);
  });
});

describe("ctx.state", () => {
  it("reads what JSON makes of what was set", async () => {
    const keeps = flow({ resumable: true }, async (_task, { ctx: { state } }) => {
      const list = [1];
      state.set("list", list);
      list.push(2);
      state.set("date", new Date(0));
      state.set("b", null);
      (state.get("list") as number[]).push(3);
      return [
        state.get("list"),
        state.get("date"),
        state.get("b", "fallback"),
        state.get("none"),
        state.get("none", 5),
        state.has("b"),
        state.delete("b"),
        state.delete("b"),
        state.size,
        [...state.keys()],
        [...state],
      ];
    });
    const date = "1970-01-01T00:00:00.000Z";
    assert.deepEqual(await runFake(keeps), [
      [1],
      date,
      null,
      undefined,
      5,
      true,
      true,
      false,
      2,
      ["list", "date"],
      [
        ["list", [1]],
        ["date", date],
      ],
    ]);
  });

  it("refuses what JSON cannot hold", async () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const keeps = flow({ resumable: true }, async (_task, { ctx: { state } }) => {
      const said = (key: unknown, value: unknown) => {
        try {
          state.set(key as string, value);
          return "kept";
        } catch (error) {
          return (error as Error).name;
        }
      };
      const values = [undefined, () => 1, Symbol("x"), 1n, cycle, { deep: [() => 1] }];
      return [...values.map((value) => said("k", value)), said(5, 1), said(Symbol("k"), 1), state.size];
    });
    assert.deepEqual(await runFake(keeps), [...Array.from({ length: 8 }, () => "StateNotSerializable"), 0]);
  });
});
