import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  agent,
  type Agent,
  env,
  type FlowException,
  flow,
  HarnessThrottled,
  localEnv,
  type Session,
  SessionError,
  z,
} from "hmz/flows";
import { FakeAgent, type FakeAgentOptions, FakeEnv, type FakeRunOptions, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";

/** Runs a function as a flow of one agent that needs nothing. */
function withAgent<R>(
  body: (a: Agent) => Promise<R>,
  fake: FakeAgent | FakeAgentOptions = {},
  options: FakeRunOptions = {},
): Promise<R> {
  const bare = flow({ name: "bare", agents: { a: agent() } }, async (_task, { agents }) => body(agents.a));
  const driver = fake instanceof FakeAgent ? fake : new FakeAgent(fake);
  return runFake(bare, "", { ...options, agents: { a: driver } });
}

/** What a promise rejects with, as its class and message. */
async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return `${(error as FlowException).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

const never = () => new Promise<string>(() => {});

describe("Agent.run refuses", () => {
  it("a prompt that is no string", async () => {
    const said = await withAgent((a) => refusal(a.run(5 as never)));
    assert.equal(said, "TypeError: a: a prompt is a string");
  });

  for (const word of ["goal", "loop"] as const) {
    it(`/${word} without its need`, async () => {
      const fake = new FakeAgent();
      const prompts = [`/${word} win`, `/${word}`, `  \n/${word}\twin`];
      for (const prompt of prompts) {
        const said = await withAgent((a) => refusal(a.run(prompt)), fake);
        assert.equal(said, `CapabilityNotGranted: a: /${word} needs ${word} on the role`);
      }
      assert.deepEqual(fake.prompts, []);
    });
  }

  it("no other word that starts with a slash", async () => {
    for (const prompt of ["/goals", "/loopy x", "/help", "please /goal"]) {
      const fake = new FakeAgent();
      await withAgent((a) => a.run(prompt), fake);
      assert.deepEqual(fake.prompts, [prompt]);
    }
  });

  it("a session of another agent's, and what is none", async () => {
    const two = flow({ agents: { a: agent(), b: agent() } }, async (_task, { agents: { a, b } }) => [
      await refusal(a.run("x", { session: await b.spawn() })),
      await refusal(a.run("x", { session: {} as never })),
      await refusal(a.run("x", { session: "s" as never })),
    ]);
    assert.deepEqual(await runFake(two), [
      "SessionError: a: a session of b is not one of this agent's",
      "SessionError: a: this object is not one of this agent's",
      "SessionError: a: s is not one of this agent's",
    ]);
  });

  it("a session that is over", async () => {
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      await session[Symbol.asyncDispose]();
      return refusal(a.run("x", { session }));
    });
    assert.equal(said, "SessionError: a: the session is over");
  });

  it("a second turn of a session, while one is under way", async () => {
    const said = await withAgent(
      async (a) => {
        const session = await a.spawn();
        const aborter = new AbortController();
        const first = refusal(a.run("x", { session, signal: aborter.signal }));
        const second = await refusal(a.run("y", { session }));
        aborter.abort(new Error("stop"));
        return [second, await first];
      },
      { reply: never },
    );
    assert.deepEqual(said, ["SessionError: a: a turn of this session is under way", "Error: stop"]);
  });

  it("an environment that the run did not hand out", async () => {
    const said = await withAgent(async (a) => [
      await refusal(a.run("x", { env: {} as never })),
      await refusal(a.run("x", { env: "/work" as never })),
    ]);
    assert.deepEqual(said, [
      "TypeError: this object is not an environment this run handed out",
      "TypeError: /work is not an environment this run handed out",
    ]);
  });

  it("an environment of another run's", async () => {
    let kept: unknown;
    const keeps = flow({ envs: { e: env() } }, async (_task, { envs }) => void (kept = envs.e));
    await runFake(keeps);
    const said = await withAgent((a) => refusal(a.run("x", { env: kept as never })));
    assert.equal(said, "TypeError: this object is not an environment this run handed out");
  });

  it("any environment for litellm", async () => {
    const bare = flow({ agents: { a: agent() }, envs: { e: env() } }, async (_task, { agents: { a }, envs: { e } }) => [
      await refusal(a.run("x", { env: e })),
      await a.run("x"),
    ]);
    assert.deepEqual(await runFake(bare, "", { agents: { a: new FakeAgent({ harness: "litellm" }) } }), [
      "UnsupportedOperation: a: litellm is a model called directly, with no tools and no filesystem, so its turns work in no environment; run it without env",
      "ok",
    ]);
  });

  it("a workdir that is not a directory", async () => {
    const bare = flow({ agents: { a: agent() }, envs: { e: env() } }, async (_task, { agents: { a }, envs: { e } }) =>
      refusal(a.run("x", { env: e })),
    );
    const machine = new FakeEnv();
    const said = await runFake(bare, "", { envs: { e: { machine, workdir: "/gone" } } });
    assert.equal(said, "SessionError: /gone is not a directory to open a session in");
  });

  it("a budget that is none", async () => {
    assert.equal(
      await withAgent((a) => refusal(a.run("x", { budget: {} }))),
      "RangeError: a budget sets at least one of duration, cost, output_tokens",
    );
  });

  it("a signal that was aborted before", async () => {
    const fake = new FakeAgent();
    const said = await withAgent((a) => refusal(a.run("x", { signal: AbortSignal.abort(new Error("no")) })), fake);
    assert.equal(said, "Error: no");
    assert.deepEqual(fake.sessions, []);
  });

  it("a view kept past the end of its run, or of its call", async () => {
    let kept: readonly [Agent, Session] | undefined;
    const keep = async (a: Agent) => {
      const session = await a.spawn();
      await a.run("x", { session });
      kept = [a, session];
    };
    const asks = async (): Promise<string[]> => {
      const [a, session] = kept as readonly [Agent, Session];
      const steers = a as unknown as { steer(text: string, options: object): Promise<void> };
      return Promise.all([
        refusal(a.spawn()),
        refusal(a.run("x")),
        refusal(a.run("x", { session })),
        refusal(a.fork(session)),
        refusal(steers.steer("x", { session })),
      ]);
    };
    await withAgent(keep);
    const gone = "FlowCancelled: turn.test:bare: the run has ended";
    const ungranted = "CapabilityNotGranted: a: steer needs steering on the role";
    assert.deepEqual(await asks(), [gone, gone, gone, gone, ungranted]);
    const inner = flow({ name: "inner", agents: { b: agent() } }, async (_task, { agents: { b } }) => keep(b));
    const outer = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      await inner("", { agents: { b: a } });
      return asks();
    });
    const over = "FlowCancelled: turn.test:inner: turn.test:inner has ended";
    assert.deepEqual(await runFake(outer), [over, over, over, over, ungranted.replace("a:", "b:")]);
  });

  it("a turn of a stopped run, with what stopped it", async () => {
    const stop = new AbortController();
    const fake = new FakeAgent({ reply: () => (stop.abort(), never()) });
    let said = "";
    const run = withAgent(async (a) => void (said = await refusal(a.run("x"))), fake, { signal: stop.signal });
    assert.equal(await refusal(run), "FlowCancelled: turn.test:bare: the run was stopped");
    assert.equal(said, "FlowCancelled: turn.test:bare: the run was stopped");
  });
});

describe("a turn that the harness fails", () => {
  const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", errno: -104, syscall: "read" });
  const rows: readonly (readonly [string, Error, string, boolean])[] = [
    ["a leaf is itself", new HarnessThrottled("slow down"), "HarnessThrottled: slow down", true],
    ["a system call that failed is the connection broken", reset, "HarnessDropped: read ECONNRESET", false],
    ["a fault of the driver's is itself", new TypeError("no such thing"), "TypeError: no such thing", true],
  ];
  for (const [what, thrown, expected, itself] of rows) {
    it(what, async () => {
      const said = await withAgent(
        async (a) => {
          const session = await a.spawn();
          const error = await a.run("x", { session }).catch((error: unknown) => error);
          assert.equal(error === thrown, itself);
          assert.ok(itself || (error as Error).cause === thrown);
          return [`${(error as Error).name}: ${(error as Error).message}`, await a.run("y", { session })];
        },
        {
          reply: (prompt) => {
            if (prompt === "x") throw thrown;
            return "goes on";
          },
        },
      );
      assert.deepEqual(said, [expected, "goes on"]);
    });
  }
});

describe("a turn under a session that moves", () => {
  const moves = flow(
    { agents: { a: agent() }, envs: { e: env(), f: env() } },
    async (task, { agents: { a }, envs: { e, f } }) => {
      const session = await a.spawn();
      await a.run("one", { session, env: e });
      const there = task === "machine" ? f : await e.deriveSubdir("sub");
      const said = await refusal(a.run("two", { session, env: there }));
      await a.run("three", { session, env: e });
      return said;
    },
  );
  const rows = [
    ["workdir", "claude", "nothing was refused"],
    ["workdir", "kimi", "nothing was refused"],
    ["workdir", "pi", "UnsupportedOperation: pi cannot move a session into another workdir"],
    ["workdir", "agy", "UnsupportedOperation: agy cannot move a session"],
    ["machine", "claude", "UnsupportedOperation: claude cannot move a session onto another machine"],
    ["machine", "agy", "UnsupportedOperation: agy cannot move a session onto another machine"],
  ] as const;
  for (const [to, harness, expected] of rows) {
    it(`to another ${to}, of ${harness}`, async () => {
      const fake = new FakeAgent({ harness });
      assert.equal(await runFake(moves, to, { agents: { a: fake } }), expected);
      assert.equal(fake.sessions.length, 1);
    });
  }

  it("works where it is told, or in the run's own workspace", async () => {
    const fake = new FakeAgent();
    const places = flow(
      { agents: { a: agent() }, envs: { e: env(), here: localEnv() } },
      async (_task, { agents: { a }, envs: { e, here } }) => {
        await a.run("x", { env: e });
        await a.run("x", { env: here });
        await a.run("x", { env: await e.deriveSubdir("lib/core") });
        await a.run("x");
      },
    );
    await runFake(places, "", { agents: { a: fake } });
    assert.deepEqual(
      fake.sessions.map(({ requests }) => requests[0]?.workdir),
      ["/work", "/here", "/work/lib/core", "/here"],
    );
  });
});

describe("the order of events in a turn", () => {
  it("is always the same", async () => {
    const heard: string[] = [];
    const recorder = {
      record: (event: RunEvent) => {
        if (event.kind === "opened") return;
        heard.push(event.kind);
      },
    };
    const fake = new FakeAgent({
      reply: async (prompt, { session }) => {
        heard.push(`sent ${JSON.stringify(prompt)}`);
        await session.tool("Bash");
        return `did ${session.prompts.length}`;
      },
    });
    const result = await withAgent(
      async (a) => {
        a.onSessionStart(() => (heard.push("session_start"), { context: "before" }));
        a.onUserPromptSubmit(({ prompt }) => (heard.push(`submit ${prompt}`), { context: "after" }));
        a.onPreToolUse(({ tool }) => void heard.push(`tool ${tool}`));
        a.onStop(({ said, again }) => (heard.push(`stop ${said} ${again}`), { block: again < 1, reason: "more" }));
        a.onSessionEnd(() => void heard.push("session_end"));
        const session = await a.spawn();
        const first = await a.run("go", { session });
        a.onStop(null);
        await a.run("again", { session });
        await session[Symbol.asyncDispose]();
        heard.push("disposed");
        return first;
      },
      fake,
      { recorder },
    );
    assert.equal(result, "did 2");
    const tool = ["tool", "tool Bash"];
    assert.deepEqual(heard, [
      "begins",
      "session_start",
      "submit go",
      'sent "before\\n\\ngo\\n\\nafter"',
      ...tool,
      "text",
      "stop did 1 0",
      "notice",
      'sent "more"',
      ...tool,
      "text",
      "stop did 2 1",
      "result",
      "ends",
      "begins",
      "submit again",
      'sent "again\\n\\nafter"',
      ...tool,
      "text",
      "result",
      "ends",
      "session_end",
      "disposed",
    ]);
  });

  it("has exactly one result or failed between begins and ends", async () => {
    const events: RunEvent[] = [];
    const fake = new FakeAgent({
      reply: (prompt) => {
        if (prompt === "fail") throw new HarnessThrottled("slow down");
        return prompt;
      },
    });
    await withAgent(
      async (a) => {
        await a.run("fine");
        await assert.rejects(a.run("fail"), HarnessThrottled);
        await assert.rejects(a.run("fine", { outputSchema: z.object({ n: z.number() }) }));
        await a.run("fine", { budget: { cost: 0 } }).catch(() => {});
      },
      fake,
      { recorder: { record: (event) => events.push(event) } },
    );
    const byTurn = Map.groupBy(
      events.filter((event) => "turn" in event),
      ({ turn }) => turn,
    );
    for (const [turn, said] of byTurn) {
      const kinds = said.map(({ kind }) => kind);
      assert.equal(kinds[0], "begins", `turn ${turn}`);
      assert.equal(kinds.at(-1), "ends", `turn ${turn}`);
      assert.equal(kinds.filter((kind) => kind === "result" || kind === "failed").length, 1, `turn ${turn}`);
    }
    const failed = events.filter((event) => event.kind === "failed").map(({ error }) => error);
    assert.deepEqual(failed.slice(0, 2), ["HarnessThrottled", "OutputSchemaError"]);
  });

  it("carries what each event is of", async () => {
    const events: RunEvent[] = [];
    await withAgent(
      (a) => a.run("go"),
      { model: "m", cost: 0.5, outputTokens: 3, harness: "codex" },
      {
        recorder: { record: (event) => events.push(event) },
      },
    );
    const result = events.find((event) => event.kind === "result");
    assert.ok(result);
    const { at, session, ...rest } = result;
    assert.ok(at > 1e9 && at < 1e11, "Unix seconds");
    assert.notEqual(session, "");
    assert.deepEqual(rest, {
      kind: "result",
      text: "ok",
      agent: "a",
      cli: "codex",
      model: "m",
      call: 0,
      turn: 1,
      tokens: { m: 3 },
      spent: { output: 3 },
      cost: 0.5,
    });
  });
});

describe("/goal and /loop", () => {
  it("reach the harness as commands, the word of goal taken off", async () => {
    const fake = new FakeAgent();
    const wins = flow({ agents: { a: agent({ needs: ["goal", "loop"] }) } }, async (_task, { agents: { a } }) => {
      await a.run("  /goal win the game");
      await a.run("/loop 5m check");
    });
    await runFake(wins, "", { agents: { a: fake } });
    assert.deepEqual(
      fake.sessions.flatMap(({ requests }) => requests).map(({ prompt, command }) => [command, prompt]),
      [
        ["goal", "win the game"],
        ["loop", "/loop 5m check"],
      ],
    );
  });
});

describe("a turn's signal", () => {
  it("interrupts it with its reason, and keeps the session", async () => {
    const fake = new FakeAgent({ reply: (prompt) => (prompt === "hang" ? never() : "there") });
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      const aborter = new AbortController();
      const hung = refusal(a.run("hang", { session, signal: aborter.signal }));
      aborter.abort(new SessionError("the turn was interrupted"));
      return [await hung, await a.run("next", { session })];
    }, fake);
    assert.deepEqual(said, ["SessionError: the turn was interrupted", "there"]);
    assert.equal(fake.sessions.length, 1);
  });
});
