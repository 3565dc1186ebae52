import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";
import * as fc from "fast-check";
import { type Agent, agent, type BudgetLike, type FlowContext, flow } from "hmz/flows";
import { FakeAgent, type FakeAgentOptions, runFake } from "hmz/fakes";

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

const never = () => new Promise<string>(() => {});

/** Waits for nothing but its own cancellation. */
function untilCancelled({ signal }: FlowContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });
}

/** Runs a function as a flow of one agent, under a budget. */
function under<R>(
  budget: BudgetLike | undefined,
  fake: FakeAgent | FakeAgentOptions,
  body: (a: Agent, ctx: FlowContext) => Promise<R>,
): Promise<R> {
  const spends = flow({ name: "spends", agents: { a: agent() } }, async (_task, { agents, ctx }) =>
    body(agents.a, ctx),
  );
  return runFake(spends, "", { budget, agents: { a: fake instanceof FakeAgent ? fake : new FakeAgent(fake) } });
}

/** Takes turns until one is refused; how many were taken, and what the refusal said. */
async function untilRefused(a: Agent): Promise<[number, string]> {
  for (let taken = 0; taken < 20; taken++) {
    const said = await refusal(a.run("x"));
    if (said !== "nothing was refused") return [taken, said];
  }
  return [20, "nothing was refused"];
}

const COST = "CostExceeded: spend.test:spends: its budget's cost is spent";
const TOKENS = "OutputTokensExceeded: spend.test:spends: its budget's output tokens are spent";
const DURATION = "DurationExceeded: spend.test:spends: its budget's duration is spent";

describe("a limit that is reached", () => {
  const rows: readonly (readonly [string, BudgetLike, FakeAgentOptions, number, string])[] = [
    ["graceful cost: the turn finishes, the next is refused", { cost: 2.5 }, { cost: 1 }, 3, COST],
    ["graceful cost, reached exactly", { cost: 2 }, { cost: 1 }, 2, COST],
    ["hard cost: the turn is cut off", { cost: 2.5, graceful: false }, { cost: 1 }, 2, COST],
    ["hard cost, reached exactly", { cost: 2, graceful: false }, { cost: 1 }, 1, COST],
    ["graceful tokens", { outputTokens: 25 }, { outputTokens: 10 }, 3, TOKENS],
    ["hard tokens", { outputTokens: 25, graceful: false }, { outputTokens: 10 }, 2, TOKENS],
    [
      "hard tokens leave a graceful cost graceful",
      { outputTokens: 1_000, cost: 2.5, graceful: { outputTokens: false } },
      { cost: 1, outputTokens: 10 },
      3,
      COST,
    ],
    [
      "hard tokens beside a graceful cost",
      { outputTokens: 25, cost: 100, graceful: { outputTokens: false } },
      { cost: 1, outputTokens: 10 },
      2,
      TOKENS,
    ],
    ["nothing may be spent", { cost: 0 }, { cost: 1 }, 0, COST],
    ["no token may be written", { outputTokens: 0 }, {}, 0, TOKENS],
    ["no time may pass", { duration: 0, graceful: { duration: true } }, {}, 0, DURATION],
    [
      "endless",
      { cost: Infinity, outputTokens: Infinity },
      { cost: 1e9, outputTokens: 1e9 },
      20,
      "nothing was refused",
    ],
  ];
  for (const [what, budget, fake, taken, said] of rows) {
    it(what, async () => {
      // A deadline of 0 ends the flow itself, so that what it saw is kept aside.
      let seen: unknown;
      await under(budget, fake, async (a) => void (seen = await untilRefused(a))).catch(() => {});
      assert.deepEqual(seen, [taken, said]);
    });
  }

  it("stays spent: every later turn is refused, before anything is sent", async () => {
    const fake = new FakeAgent({ cost: 1 });
    const said = await under({ cost: 1 }, fake, async (a) => {
      const session = await a.spawn();
      await a.run("x", { session });
      return [
        await refusal(a.run("y", { session })),
        await refusal(a.run("y")),
        await refusal(a.derive({}).run("y")),
        await refusal(a.run("y", { budget: { cost: 100 } })),
      ];
    });
    assert.deepEqual(said, [COST, COST, COST, COST]);
    assert.deepEqual(fake.prompts, ["x"]);
  });

  it("is the run's end where the flow lets it through", async () => {
    const fake = new FakeAgent({ cost: 1 });
    const run = under({ cost: 2.5 }, fake, async (a) => {
      for (;;) await a.run("x");
    });
    await assert.rejects(run, { name: "CostExceeded" });
    assert.equal(fake.prompts.length, 3);
    assert.equal(fake.live, 0);
  });
});

describe("however much a turn costs", () => {
  it("a graceful limit is passed by less than one turn, and a hard one by none that returns", async () => {
    const amount = fc.integer({ min: 1, max: 50 });
    await fc.assert(
      fc.asyncProperty(amount, amount, fc.boolean(), fc.boolean(), async (limit, each, graceful, tokens) => {
        const turns = Math.ceil(limit / each);
        if (turns > 15) return;
        const budget = tokens ? { outputTokens: limit, graceful } : { cost: limit, graceful };
        let spent = 0;
        const said = await under(budget, { cost: each, outputTokens: each }, async (a, ctx) => {
          const refused = await untilRefused(a);
          spent = ctx.usage.cost;
          return refused;
        });
        assert.deepEqual(said, [graceful ? turns : turns - 1, tokens ? TOKENS : COST]);
        assert.equal(spent, turns * each);
      }),
    );
  });
});

describe("a turn's own budget", () => {
  it("lasts one turn: a graceful one only counts, a hard one cuts it short", async () => {
    const fake = new FakeAgent({ cost: 1, outputTokens: 10 });
    const said = await under({ cost: 100 }, fake, async (a) => [
      await refusal(a.run("x", { budget: { cost: 0.5 } })),
      await refusal(a.run("x", { budget: { cost: 0.5, graceful: false } })),
      await refusal(a.run("x", { budget: { outputTokens: 5, graceful: { outputTokens: false } } })),
      await refusal(a.run("x", { budget: { cost: 0.5, outputTokens: 50, graceful: { outputTokens: false } } })),
      await refusal(a.run("x")),
    ]);
    assert.deepEqual(said, ["nothing was refused", COST, TOKENS, "nothing was refused", "nothing was refused"]);
    assert.equal(fake.prompts.length, 5);
  });

  it("that is spent before it begins refuses the turn", async () => {
    const fake = new FakeAgent();
    const said = await under(undefined, fake, async (a) => [
      await refusal(a.run("x", { budget: { cost: 0, graceful: false } })),
      await refusal(a.run("x", { budget: { outputTokens: 0, graceful: false } })),
      await refusal(a.run("x", { budget: { duration: 0, graceful: false } })),
    ]);
    assert.deepEqual(said, [COST, TOKENS, DURATION]);
    assert.deepEqual(fake.prompts, []);
  });

  it("where two leave the same amount, the hard one wins", async () => {
    const rows: readonly (readonly [BudgetLike, BudgetLike])[] = [
      [{ cost: 1 }, { cost: 1, graceful: false }],
      [{ cost: 1, graceful: false }, { cost: 1 }],
    ];
    for (const [run, turn] of rows) {
      assert.equal(await under(run, { cost: 1 }, (a) => refusal(a.run("x", { budget: turn }))), COST);
    }
  });
});

describe("budgets nest", () => {
  const inner = flow({ name: "inner", agents: { b: agent() } }, async (_task, { agents: { b }, ctx }) => {
    const taken = await untilRefused(b);
    return [...taken, ctx.budget, ctx.usage] as const;
  });

  it("what is spent under a call counts against it and every call above", async () => {
    const said = await under({ cost: 5 }, { cost: 1 }, async (a, ctx) => {
      await a.run("x");
      const first = await inner("", { agents: { b: a }, budget: { cost: 2 } });
      const mine = ctx.usage.cost;
      const second = await inner("", { agents: { b: a }, budget: { cost: 10 } });
      return [first[0], first[1], mine, second[0], second[1], ctx.usage.cost, await refusal(a.run("x"))];
    });
    const spent = "CostExceeded: spend.test:inner: its budget's cost is spent";
    assert.deepEqual(said, [2, spent, 3, 2, spent, 5, COST]);
  });

  it("a callee's spent budget is not its caller's", async () => {
    const said = await under({ cost: 100 }, { cost: 1 }, async (a) => {
      await inner("", { agents: { b: a }, budget: { cost: 1 } });
      return refusal(a.run("x"));
    });
    assert.equal(said, "nothing was refused");
  });

  it("a call's budget that is none is refused", async () => {
    const said = await under(undefined, {}, async (a) => [
      await refusal(inner("", { agents: { b: a }, budget: {} })),
      await refusal(inner("", { agents: { b: a }, budget: 5 as never })),
      await refusal(inner("", { agents: { b: a }, budget: { cost: -1 } })),
    ]);
    assert.deepEqual(
      said.map((line) => line.split(":")[0]),
      ["RangeError", "TypeError", "RangeError"],
    );
  });

  it("a hard limit above cuts off a turn of a call below", async () => {
    const once = flow({ name: "once", agents: { b: agent() } }, async (_task, { agents: { b } }) =>
      refusal(b.run("x")),
    );
    const said = await under({ cost: 1, graceful: false }, { cost: 1 }, (a) =>
      once("", { agents: { b: a }, budget: { cost: 50 } }),
    );
    assert.match(said, /^CostExceeded: spend\.test:(once|spends): its budget's cost is spent$/);
  });
});

describe("ctx.budget", () => {
  it("is, for each limit, what this call may still reach", async () => {
    const reads = flow({ name: "reads", agents: { b: agent() } }, async (_task, { agents: { b }, ctx }) => {
      const before = ctx.budget;
      await b.run("x");
      return [before, ctx.budget];
    });
    await under(
      { cost: 10, outputTokens: 100, graceful: { cost: false } },
      { cost: 1, outputTokens: 10 },
      async (a, ctx) => {
        assert.deepEqual(ctx.budget, {
          cost: 10,
          outputTokens: 100,
          graceful: { duration: true, cost: false, outputTokens: true },
        });
        await a.run("x");
        const graceful = { duration: true, cost: false, outputTokens: true };
        assert.deepEqual(ctx.budget, { cost: 10, outputTokens: 100, graceful });
        const wide = { cost: 9, outputTokens: 90, graceful };
        assert.deepEqual(await reads("", { agents: { b: a } }), [wide, wide]);
        const narrow = { cost: 3, outputTokens: 80, graceful };
        assert.deepEqual(await reads("", { agents: { b: a }, budget: { cost: 3 } }), [narrow, narrow]);
      },
    );
  });

  it("has no limit that nothing sets, and one flag where the three agree", async () => {
    await under({ outputTokens: 5, graceful: false }, {}, async (_a, ctx) => {
      assert.equal(ctx.budget.cost, undefined);
      assert.equal(ctx.budget.duration, undefined);
      assert.notEqual(ctx.budget, ctx.budget);
    });
    await under({ cost: 1, duration: "1h", outputTokens: 5, graceful: false }, {}, async (_a, ctx) => {
      const { duration = 0, graceful } = ctx.budget;
      assert.equal(graceful, false);
      assert.ok(duration > 0 && duration <= 3_600_000);
    });
  });
});

describe("ctx.usage", () => {
  it("is the sum over turns, concurrent ones each counted, and is built on each read", async () => {
    await under(undefined, { cost: 0.5, outputTokens: 3, seconds: 10 }, async (a, ctx) => {
      const before = ctx.usage;
      await Promise.all([a.run("x"), a.run("y"), a.run("z")]);
      assert.deepEqual(ctx.usage, { duration: 30_000, cost: 1.5, outputTokens: 9 });
      assert.deepEqual(before, { duration: 0, cost: 0, outputTokens: 0 });
    });
  });

  it("counts a turn that was cut off", async () => {
    await under({ cost: 1, graceful: false }, { cost: 1 }, async (a, ctx) => {
      await refusal(a.run("x"));
      assert.equal(ctx.usage.cost, 1);
    });
  });
});

describe("a spend that is not a finite number", () => {
  for (const cost of [Number.NaN, Infinity]) {
    for (const budget of [{ cost: Infinity }, { outputTokens: 1_000 }, { cost: 5, graceful: false }]) {
      it(`${cost} under ${JSON.stringify(budget)} refuses the next turn`, async () => {
        const said = await under(budget, { cost }, async (a) => [await refusal(a.run("x")), await refusal(a.run("y"))]);
        assert.equal(said[1], COST);
      });
    }
  }
});

describe("a deadline", () => {
  /** A clock that a test winds on, so that no test waits for one. */
  function wound(t: TestContext): (ms: number) => Promise<void> {
    t.mock.timers.enable({ apis: ["Date", "setTimeout"], now: 1e12 });
    return async (ms) => {
      t.mock.timers.tick(ms);
      await nextRound();
    };
  }

  it("that passes while nothing is under way ends the call", async (t) => {
    const tick = wound(t);
    const run = under({ duration: 10 }, {}, (_a, ctx) => untilCancelled(ctx));
    const ended = assert.rejects(run, { name: "DurationExceeded", code: "ETIMEDOUT", message: DURATION.slice(18) });
    await tick(10);
    await ended;
  });

  it("far away is not reached early", async (t) => {
    const tick = wound(t);
    const days = 86_400_000;
    let ended = false;
    const run = under({ duration: "60d" }, {}, (_a, ctx) => untilCancelled(ctx)).finally(() => (ended = true));
    run.catch(() => {});
    for (let day = 0; day < 59; day++) await tick(days);
    assert.equal(ended, false);
    await tick(days);
    await assert.rejects(run, { name: "DurationExceeded" });
  });

  it("is noticed by a machine that slept past it", async (t) => {
    const tick = wound(t);
    const run = under({ duration: "8h" }, {}, (_a, ctx) => untilCancelled(ctx));
    const ended = assert.rejects(run, { name: "DurationExceeded" });
    t.mock.timers.setTime(1e12 + 9 * 3_600_000);
    await tick(30_000);
    await ended;
  });

  it("graceful lets the turn under way finish", async (t) => {
    const tick = wound(t);
    const fake = new FakeAgent({ reply: async () => (await tick(10), "finished") });
    let said = "";
    const run = under({ duration: 10 }, fake, async (a) => {
      said = await a.run("slow");
      await a.run("next");
    });
    await assert.rejects(run, { name: "DurationExceeded" });
    assert.equal(said, "finished");
    assert.deepEqual(fake.prompts, ["slow"]);
  });

  it("graceful takes nothing from a flow that returns after its last turn", async (t) => {
    const tick = wound(t);
    const fake = new FakeAgent({ reply: async () => (await tick(10), "late") });
    assert.equal(await under({ duration: 10 }, fake, (a) => a.run("x")), "late");
  });

  it("graceful waits for every turn under way", async (t) => {
    const tick = wound(t);
    const fake = new FakeAgent({
      reply: async (prompt) => {
        if (prompt === "first") await tick(10);
        else for (let round = 0; round < 10; round++) await nextRound();
        return prompt;
      },
    });
    const run = under({ duration: 10 }, fake, (a) => Promise.all([a.run("first"), a.run("second")]));
    assert.deepEqual(await run, ["first", "second"]);
  });

  it("hard cuts the turn under way off", async (t) => {
    const tick = wound(t);
    const fake = new FakeAgent({ reply: () => (void tick(10), never()) });
    let said = "";
    const run = under({ duration: 10, graceful: false }, fake, async (a) => {
      said = await refusal(a.run("x"));
      await a.run("next");
    });
    await assert.rejects(run, { name: "DurationExceeded" });
    assert.equal(said, DURATION);
    assert.deepEqual(fake.prompts, ["x"]);
  });

  it("hard, of a turn's own, interrupts that turn alone", async (t) => {
    const tick = wound(t);
    const fake = new FakeAgent({ reply: (prompt) => (prompt === "x" ? (void tick(5), never()) : prompt) });
    const said = await under(undefined, fake, async (a) => [
      await refusal(a.run("x", { budget: { duration: 5, graceful: false } })),
      await a.run("y"),
    ]);
    assert.deepEqual(said, [DURATION, "y"]);
  });

  it("of a call is its own, and its caller goes on", async (t) => {
    const tick = wound(t);
    const hangs = flow({ name: "hangs" }, (_task, { ctx }) => untilCancelled(ctx));
    const said = await under({ duration: "1h" }, {}, async (a) => {
      const hung = refusal(hangs("", { budget: { duration: 10 } }));
      await tick(10);
      return [await hung, await a.run("x")];
    });
    assert.deepEqual(said, ["DurationExceeded: spend.test:hangs: its budget's duration is spent", "ok"]);
  });

  it("above a call is the call's too: concurrent ones spend one hour of it", async (t) => {
    const tick = wound(t);
    const hangs = flow({ name: "hangs" }, (_task, { ctx }) => untilCancelled(ctx));
    const run = under({ duration: "1h" }, {}, async () => {
      const all = Promise.all([hangs("", { budget: { duration: "2h" } }), hangs(""), hangs("")]);
      void tick(3_600_000);
      await all;
    });
    await assert.rejects(run, { name: "DurationExceeded", message: DURATION.slice(18) });
  });

  it("leaves a function that listens to nothing to itself", async (t) => {
    const tick = wound(t);
    const run = under({ duration: 10 }, {}, () => new Promise<never>(() => {}));
    run.catch(() => {});
    await tick(10);
    await tick(60_000);
    await assert.rejects(run, { name: "DurationExceeded" });
  });
});

describe("a hard limit that one turn reaches", () => {
  const silent = () => new FakeAgent({ cost: 1, reply: (prompt) => (prompt === "silent" ? never() : prompt) });

  it("cuts off every turn under it, the silent ones too", async () => {
    const said = await under({ cost: 1, graceful: false }, silent(), (a) =>
      Promise.all([refusal(a.run("silent")), refusal(a.run("silent")), refusal(a.run("x"))]),
    );
    assert.deepEqual(said, [COST, COST, COST]);
  });

  it("is one end out of a group, and not a failure for each member", async () => {
    const run = under({ cost: 1, graceful: false }, silent(), (a, ctx) =>
      ctx.group((group) => Promise.all(["silent", "silent", "x"].map((prompt) => group.run(() => a.run(prompt))))),
    );
    await assert.rejects(run, { name: "CostExceeded" });
  });

  it("leaves the turns of other calls", async () => {
    const once = flow({ name: "once", agents: { b: agent() } }, async (_task, { agents: { b } }) =>
      refusal(b.run("x")),
    );
    const fake = new FakeAgent({
      cost: 1,
      reply: async () => {
        for (let round = 0; round < 5; round++) await nextRound();
        return "";
      },
    });
    const said = await under(undefined, fake, (a) =>
      Promise.all([refusal(a.run("y")), once("", { agents: { b: a }, budget: { cost: 1, graceful: false } })]),
    );
    assert.deepEqual(said, ["nothing was refused", "CostExceeded: spend.test:once: its budget's cost is spent"]);
  });
});

describe("arithmetic", () => {
  it("ten times a tenth is one", async () => {
    assert.deepEqual(await under({ cost: 1 }, { cost: 0.1 }, untilRefused), [10, COST]);
  });

  it("tokens that are no number refuse the next turn, and leave nothing to reach", async () => {
    await under({ outputTokens: 5 }, { outputTokens: Number.NaN }, async (a, ctx) => {
      await a.run("x");
      assert.equal(await refusal(a.run("x")), COST);
      assert.equal(ctx.budget.outputTokens, 0);
    });
  });

  it("nothing that is spent is taken back", async () => {
    await under({ cost: 5 }, { cost: -3 }, async (a, ctx) => {
      await a.run("x");
      assert.equal(ctx.usage.cost, 0);
    });
  });
});
