import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Agent, agent, env, flow, permission, type Session, tool } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

const ready = flow({ name: "ready", agents: { a: agent() }, envs: { e: env(), f: env() } }, async () => {});

/** Runs a function as a flow of one agent and two machines. */
function withAgent<R>(
  body: (a: Agent, envs: { e: never; f: never }) => Promise<R>,
  fake = new FakeAgent(),
): Promise<R> {
  const { expectedAgents: agents, expectedEnvs: envs } = ready;
  const bare = flow({ name: "bare", agents, envs }, async (_task, given) => body(given.agents.a, given.envs as never));
  return runFake(bare, "", { agents: { a: fake } });
}

describe("Agent.spawn", () => {
  it("starts nothing: the first turn does", async () => {
    const fake = new FakeAgent();
    await withAgent(async (a) => {
      const session = await a.spawn();
      assert.equal(fake.sessions.length, 0);
      await a.run("x", { session });
      await a.run("y", { session });
      assert.equal(fake.sessions.length, 1);
    }, fake);
  });

  it("a run without a session uses one for that turn alone", async () => {
    const fake = new FakeAgent();
    await withAgent(async (a) => {
      await a.run("x");
      assert.equal(fake.live, 0);
      await a.run("y");
    }, fake);
    assert.deepEqual(
      fake.sessions.map(({ prompts }) => prompts),
      [["x"], ["y"]],
    );
  });
});

describe("Agent.fork", () => {
  it("carries on from where the session stands, which is unchanged", async () => {
    const fake = new FakeAgent();
    await withAgent(async (a) => {
      const parent = await a.spawn();
      await a.run("one", { session: parent });
      const fork = await a.fork(parent);
      assert.equal(fake.sessions.length, 1, "a fork starts nothing");
      await a.run("two", { session: fork });
      await a.run("three", { session: parent });
      await a.run("four", { session: fork });
    }, fake);
    const [parent, fork] = fake.sessions;
    assert.equal(fork?.forkedFrom, parent);
    assert.deepEqual(
      [parent?.prompts, fork?.prompts],
      [
        ["one", "three"],
        ["two", "four"],
      ],
    );
  });

  const refused: readonly (readonly [string, (a: Agent) => Promise<Session>, string])[] = [
    ["no turn", (a) => a.spawn(), "SessionError: a: the session to fork has taken no turn to carry on from"],
    [
      "an end",
      async (a) => {
        const session = await a.spawn();
        await a.run("x", { session });
        await session[Symbol.asyncDispose]();
        return session;
      },
      "SessionError: a: the session to fork is over",
    ],
    ["no view", async () => ({}) as Session, "SessionError: a: this object is not one of this agent's"],
  ];
  for (const [what, made, expected] of refused) {
    it(`refuses a session of ${what}`, async () => {
      assert.equal(await withAgent(async (a) => refusal(a.fork(await made(a)))), expected);
    });
  }

  it("refuses a session whose only prompt was refused", async () => {
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      a.onUserPromptSubmit(() => ({ block: true }));
      await refusal(a.run("x", { session }));
      return refusal(a.fork(session));
    });
    assert.equal(said, "SessionError: a: the session to fork has taken no turn to carry on from");
  });

  const rows = [
    ["claude", "workdir", "nothing was refused"],
    ["codex", "workdir", "nothing was refused"],
    ["pi", "same", "nothing was refused"],
    ["pi", "workdir", "UnsupportedOperation: pi cannot fork a session into another workdir"],
    ["agy", "same", "UnsupportedOperation: agy cannot fork a session"],
    ["dsh", "workdir", "UnsupportedOperation: dsh cannot fork a session"],
    ["claude", "machine", "UnsupportedOperation: claude cannot fork a session onto another machine"],
    ["pi", "machine", "UnsupportedOperation: pi cannot fork a session onto another machine"],
  ] as const;
  for (const [harness, where, expected] of rows) {
    it(`what ${harness} makes of a fork: ${where}`, async () => {
      const fake = new FakeAgent({ harness });
      const forks = flow(
        { agents: { a: agent() }, envs: { e: env(), f: env() } },
        async (_task, { agents: { a }, envs: { e, f } }) => {
          const parent = await a.spawn();
          await a.run("one", { session: parent, env: e });
          const fork = await a.fork(parent);
          const there = { same: e, workdir: await e.deriveSubdir("x"), machine: f }[where];
          return refusal(a.run("two", { session: fork, env: there }));
        },
      );
      assert.equal(await runFake(forks, "", { agents: { a: fake } }), expected);
    });
  }

  it("whose parent took a turn since is refused at its first turn", async () => {
    const said = await withAgent(async (a) => {
      const parent = await a.spawn();
      await a.run("one", { session: parent });
      const fork = await a.fork(parent);
      await a.run("two", { session: parent });
      return refusal(a.run("three", { session: fork }));
    });
    assert.match(said, /^SessionError: a: the session it was forked from has taken a turn since; /);
  });

  it("keeps its parent open until its first turn", async () => {
    const fake = new FakeAgent();
    await withAgent(async (a) => {
      const parent = await a.spawn();
      await a.run("one", { session: parent });
      const fork = await a.fork(parent);
      await parent[Symbol.asyncDispose]();
      assert.equal(await refusal(a.run("two", { session: fork })), "nothing was refused");
    }, fake);
  });
});

const LINT = "https://host.test/team/skills#lint";

describe("Agent.derive", () => {
  const grants = flow(
    {
      name: "grants",
      agents: {
        a: agent({ permission: { local: "read", online: "none" }, skills: [LINT, "https://host.test/team/test.git"] }),
      },
    },
    async (_task, { agents: { a } }) => {
      const said = (options: object) => {
        try {
          a.derive(options);
        } catch (error) {
          return `${(error as Error).name}: ${(error as Error).message}`;
        }
        return "nothing was refused";
      };
      return [
        said({ permission: { online: "all" } }),
        said({ permission: { local: "read", user: "none", system: "none", online: "none" }, skills: [] }),
        said({ permission: "read" }),
        said({ permission: { local: "some" } }),
        said({ skills: ["lint", "deploy", LINT, "ship"] }),
        said({ skills: "lint" }),
        said({}),
      ];
    },
  );

  it("refuses what would widen the grant", async () => {
    assert.deepEqual(await runFake(grants), [
      "CapabilityNotGranted: a: local=all, user=read, system=read, online=all is wider than the " +
        "local=read, user=read, system=read, online=none this agent was granted",
      "nothing was refused",
      "TypeError: permission=read is not a Permission",
      "RangeError: local=some is not a permission kind",
      "CapabilityNotGranted: a: deploy, ship is not among the skills this agent was granted",
      "TypeError: skills=lint is not an array of skill names",
      "nothing was refused",
    ]);
  });

  it("opens its sessions under the narrower grant, and shares hooks and sessions", async () => {
    const fake = new FakeAgent();
    const derives = flow({ agents: { a: agent({ skills: [LINT] }) } }, async (_task, { agents: { a } }) => {
      const narrow = a.derive({ permission: { online: "none" }, skills: [] });
      let heard = 0;
      a.onStop(() => void heard++);
      const own = await narrow.spawn();
      await narrow.run("x", { session: own });
      await a.run("y", { session: own });
      await narrow.run("z", { session: await a.spawn() });
      assert.throws(() => narrow.derive({ permission: {} }), /wider/);
      return heard;
    });
    assert.equal(await runFake(derives, "", { agents: { a: fake } }), 3);
    assert.deepEqual(
      fake.sessions.map(({ permission, skills, prompts }) => [permission.online, skills, prompts]),
      [
        ["none", [], ["x", "y"]],
        ["all", ["lint"], ["z"]],
      ],
    );
    assert.equal(String(permission()), String(fake.sessions[1]?.permission));
  });
});

describe("a session ends", () => {
  it("with its flow call, after every call that one started", async () => {
    const order: string[] = [];
    const fake = new FakeAgent();
    const inner = flow({ name: "inner", agents: { b: agent() } }, async (_task, { agents: { b } }) => {
      b.onSessionEnd(() => void order.push("inner's"));
      await b.run("x", { session: await b.spawn() });
      order.push("inner returns");
    });
    const outer = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      a.onSessionEnd(() => void order.push("outer's"));
      const session = await a.spawn();
      await a.run("x", { session });
      await inner("", { agents: { b: a } });
      order.push("outer goes on");
      await a.run("y", { session });
    });
    await runFake(outer, "", { agents: { a: fake } });
    assert.deepEqual(order, ["inner returns", "inner's", "outer goes on", "outer's"]);
    assert.deepEqual([fake.live, fake.closed], [0, 1]);
  });

  it("once it is disposed, once", async () => {
    const fake = new FakeAgent();
    let ends = 0;
    await withAgent(async (a) => {
      a.onSessionEnd(() => void ends++);
      const session = await a.spawn();
      await a.run("x", { session });
      await Promise.all([session[Symbol.asyncDispose](), session[Symbol.asyncDispose]()]);
      assert.deepEqual([ends, fake.live], [1, 0]);
      await session[Symbol.asyncDispose]();
    }, fake);
    assert.equal(ends, 1);
  });

  it("unheard where it took no turn", async () => {
    let ends = 0;
    await withAgent(async (a) => {
      a.onSessionEnd(() => void ends++);
      await a.spawn();
    });
    assert.equal(ends, 0);
  });

  it("when the flow throws, and when its end's hook does", async () => {
    const fake = new FakeAgent();
    const failed = withAgent(async (a) => {
      a.onSessionEnd(() => {
        throw new Error("hook");
      });
      await a.run("x", { session: await a.spawn() });
      throw new Error("flow");
    }, fake);
    await assert.rejects(failed, /^Error: flow$/);
    assert.equal(fake.live, 0);
  });

  it("when nothing references it any more", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const fake = new FakeAgent();
    await withAgent(async (a) => {
      const kept = await a.spawn();
      await a.run("x", { session: kept });
      for (let n = 0; n < 5; n++) await a.run("y", { session: await a.spawn() });
      assert.equal(fake.live, 6);
      // What a collector takes, it takes in its own time: it is asked again, up to a limit that fails the test.
      for (let round = 0; round < 200 && fake.live > 1; round++) {
        collect();
        await nextRound();
      }
      assert.equal(fake.live, 1);
      await a.run("z", { session: kept });
    }, fake);
    assert.equal(fake.live, 0);
  });

  it("never under a turn that only the turn holds", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const fake = new FakeAgent({
      reply: async () => {
        for (let round = 0; round < 5; round++) {
          collect();
          await nextRound();
        }
        return "there";
      },
    });
    assert.equal(await withAgent((a) => a.run("x"), fake), "there");
    assert.equal(await withAgent(async (a) => a.run("x", { session: await a.spawn() }), fake), "there");
  });
});

describe("a session", () => {
  it("says what its turns spent, current on every read", async () => {
    const fake = new FakeAgent({ cost: 0.25, outputTokens: 3, seconds: 2 });
    await withAgent(async (a) => {
      const session = await a.spawn();
      const { usage } = session;
      assert.deepEqual(usage, { duration: 0, cost: 0, outputTokens: 0 });
      await a.run("x", { session });
      await a.run("y", { session });
      assert.deepEqual(session.usage, { duration: 4_000, cost: 0.5, outputTokens: 6 });
      assert.deepEqual(usage, { duration: 0, cost: 0, outputTokens: 0 });
      assert.equal(session.agent.role, "a");
    }, fake);
  });

  it("offers tools from its next turn on, in place of those it offered", async () => {
    const review = tool({ name: "review", about: "reads", call: () => "fine" });
    const build = tool({ name: "build", about: "builds", call: () => ({ ok: true }) });
    const fake = new FakeAgent({ reply: (_prompt, { session }) => session.offered.map(({ name }) => name).join() });
    const offers = flow({ agents: { a: agent({ tools: [review] }) } }, async (_task, { agents: { a } }) => {
      const session = await a.spawn();
      const said = [await a.run("x", { session })];
      session.offers([build]);
      said.push(await a.run("x", { session }));
      session.offers(null);
      said.push(await a.run("x", { session }));
      assert.throws(() => session.offers([build, build]), TypeError);
      assert.throws(() => session.offers([{}] as never), TypeError);
      return said;
    });
    assert.deepEqual(await runFake(offers, "", { agents: { a: fake } }), ["review", "review,build", "review"]);
  });

  it("offers none where its harness takes none", async () => {
    await withAgent(
      async (a) => {
        const session = await a.spawn();
        assert.equal(session.takesTools, false);
        assert.throws(() => session.offers([]), { name: "UnsupportedOperation" });
        session.offers(null);
      },
      new FakeAgent({ harness: "kimi" }),
    );
  });

  it("is told of once its harness names it, with its parent", async () => {
    const events: RunEvent[] = [];
    const fake = new FakeAgent({ namesLate: true, provider: "work" });
    const forks = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      const session = await a.spawn();
      await a.run("x", { session });
      await a.run("y", { session });
      await a.run("z", { session: await a.fork(session) });
    });
    await runFake(forks, "", { agents: { a: fake }, recorder: { record: (event) => events.push(event) } });
    const [parent, fork] = fake.sessions.map(({ id }) => id);
    assert.deepEqual(
      events.filter((event) => event.kind === "opened").map(({ at: _at, ...rest }) => rest),
      [
        { kind: "opened", call: 0, agent: "a", cli: "claude", provider: "work", session: parent },
        { kind: "opened", call: 0, agent: "a", cli: "claude", provider: "work", session: fork, parent },
      ],
    );
  });
});
