import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";
import { type Agent, agent, flow, type HookKind, SessionError } from "hmz/flows";
import { FakeAgent, type FakeAgentOptions, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";
import type { Opening, SessionDriver } from "./ports.ts";

async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

const NEEDS = ["steering", "permission_request", "subagent_start", "subagent_stop", "ask_user"] as const;
type Full = Agent<(typeof NEEDS)[number]>;

function withAgent<R>(
  body: (a: Full) => Promise<R>,
  options: FakeAgentOptions | FakeAgent = {},
  record: (event: RunEvent) => void = () => {},
): Promise<R> {
  const full = flow({ name: "full", agents: { a: agent({ needs: NEEDS }) } }, async (_task, { agents }) =>
    body(agents.a),
  );
  const fake = options instanceof FakeAgent ? options : new FakeAgent(options);
  return runFake(full, "", { agents: { a: fake }, recorder: { record } });
}

const never = () => new Promise<never>(() => {});

describe("a hook", () => {
  it("on each moment is given its fields, the call's context and the session", async () => {
    const heard: Record<string, object> = {};
    await withAgent(
      async (a) => {
        const session = await a.spawn();
        const keep =
          (kind: HookKind) =>
          ({ ctx, session: given, ...fields }: { ctx: { flow: { name: string } }; session: unknown }) => {
            assert.equal(given, session, kind);
            assert.equal(ctx.flow.name, "full");
            heard[kind] = fields;
          };
        a.onSessionStart(keep("session_start"));
        a.onUserPromptSubmit(keep("user_prompt_submit"));
        a.onPreToolUse(keep("pre_tool_use"));
        a.onPermissionRequest(keep("permission_request"));
        a.onNotification(keep("notification"));
        a.onSubagentStart(keep("subagent_start"));
        a.onSubagentStop(keep("subagent_stop"));
        a.onAskUser(keep("ask_user"));
        a.onStop(keep("stop"));
        a.onSessionEnd(keep("session_end"));
        await a.run("go", { session });
        await session[Symbol.asyncDispose]();
      },
      {
        reply: async (_prompt, { session }) => {
          await session.tool("Bash", { command: "ls" });
          await session.notify("hello");
          await session.subagent("scout", "look", "found");
          assert.equal(await session.ask("which?", ["a", "b"]), undefined);
          return "done";
        },
      },
    );
    assert.deepEqual(heard, {
      session_start: {},
      user_prompt_submit: { prompt: "go" },
      pre_tool_use: { tool: "Bash", input: { command: "ls" } },
      permission_request: { tool: "Bash", input: { command: "ls" } },
      notification: { message: "hello" },
      subagent_start: { subagent: "scout", task: "look" },
      subagent_stop: { subagent: "scout", said: "found" },
      ask_user: { question: "which?", options: ["a", "b"] },
      stop: { said: "done", again: 0 },
      session_end: {},
    });
  });

  it("that hangs replaces the one that hung; null takes it away", async () => {
    const heard: string[] = [];
    await withAgent(async (a) => {
      a.onStop(() => void heard.push("first"));
      a.onStop(() => void heard.push("second"));
      await a.run("x");
      a.onStop(null);
      await a.run("x");
      assert.throws(() => a.onStop("no" as never), {
        name: "TypeError",
        message: "a: a stop hook is a function, or null",
      });
    });
    assert.deepEqual(heard, ["second"]);
  });

  it("hung in the middle of a turn holds for its later moments", async () => {
    const heard: string[] = [];
    await withAgent(
      async (a) => {
        a.onNotification(() => a.onStop(() => void heard.push("stop")));
        await a.run("x");
      },
      { reply: async (_prompt, { session }) => session.notify("now") },
    );
    assert.deepEqual(heard, ["stop"]);
  });

  it("answers with an object or nothing: anything else fails the turn", async () => {
    const said = await withAgent(async (a) => {
      a.onStop((() => true) as never);
      return refusal(a.run("x"));
    });
    assert.equal(said, "TypeError: a stop hook returns an object, or nothing for no change: not boolean");
  });

  it("runs as its flow: what it calls is that flow's call", async () => {
    const inner = flow({ name: "inner" }, async (_task, { ctx }) => ctx.flow.name);
    let said: unknown;
    await withAgent(async (a) => {
      a.onStop(async () => void (said = await inner("")));
      await a.run("x");
    });
    assert.equal(said, "inner");
  });

  const moments: readonly (readonly [string, (a: Full, fn: () => never) => void])[] = [
    ["session_start", (a, fn) => a.onSessionStart(fn)],
    ["user_prompt_submit", (a, fn) => a.onUserPromptSubmit(fn)],
    ["pre_tool_use", (a, fn) => a.onPreToolUse(fn)],
    ["permission_request", (a, fn) => a.onPermissionRequest(fn)],
    ["notification", (a, fn) => a.onNotification(fn)],
    ["subagent_start", (a, fn) => a.onSubagentStart(fn)],
    ["subagent_stop", (a, fn) => a.onSubagentStop(fn)],
    ["ask_user", (a, fn) => a.onAskUser(fn)],
    ["stop", (a, fn) => a.onStop(fn)],
  ];
  for (const [moment, hang] of moments) {
    it(`that throws fails its turn with its own error: ${moment}`, async () => {
      const boom = new RangeError("boom");
      const fake = new FakeAgent({
        reply: async (prompt, { session }) => {
          if (prompt === "after") return "fine";
          await session.tool("Bash");
          await session.notify("x");
          await session.subagent("s");
          await session.ask("?");
          return "done";
        },
      });
      const said = await withAgent(async (a) => {
        const session = await a.spawn();
        hang(a, () => {
          throw boom;
        });
        await assert.rejects(a.run("x", { session }), (error) => error === boom);
        for (const [, unhang] of moments) unhang(a, null as never);
        return a.run("after", { session });
      }, fake);
      assert.equal(said, "fine");
    });
  }
});

describe("a user_prompt_submit hook", () => {
  it("refuses a prompt with its reason, and nothing is sent", async () => {
    const fake = new FakeAgent();
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      a.onUserPromptSubmit(() => ({ block: true, reason: "not on a Sunday" }));
      const first = await refusal(a.run("x", { session }));
      a.onUserPromptSubmit(() => ({ block: true }));
      const second = await refusal(a.run("x", { session }));
      a.onUserPromptSubmit(() => ({ reason: "unused" }));
      return [first, second, await a.run("y", { session })];
    }, fake);
    assert.deepEqual(said, ["SessionError: not on a Sunday", "SessionError: a hook refused the prompt", "ok"]);
    assert.deepEqual(fake.prompts, ["y"]);
  });
});

describe("pre_tool_use and permission_request hooks", () => {
  const tries = async (_prompt: string, { session }: { session: { tool(name: string): Promise<boolean> } }) =>
    String([await session.tool("Read"), await session.tool("Bash")]);

  it("refuse a tool", async () => {
    const said = await withAgent(
      async (a) => {
        a.onPreToolUse(({ tool }) => ({ block: tool === "Bash", reason: "no shell" }));
        const gated = await a.run("x");
        a.onPreToolUse(null);
        a.onPermissionRequest(({ tool }) => ({ allow: tool === "Bash" }));
        const asked = await a.run("x");
        a.onPermissionRequest(() => ({}));
        return [gated, asked, await a.run("x")];
      },
      { reply: tries },
    );
    assert.deepEqual(said, ["true,false", "false,true", "true,true"]);
  });

  const no = { allow: false };
  const words: readonly (readonly [string, "preToolUse" | "permissionRequest", () => object, object])[] = [
    ["its reason", "preToolUse", () => ({ block: true, reason: "no shell" }), { ...no, reason: "no shell" }],
    ["words of ours, for none", "preToolUse", () => ({ block: true }), { ...no, reason: "refused by a hook" }],
    [
      "words of ours, for an empty one",
      "preToolUse",
      () => ({ block: true, reason: "" }),
      { ...no, reason: "refused by a hook" },
    ],
    ["nothing, for a reason alone", "preToolUse", () => ({ reason: "unused" }), { allow: true }],
    ["its reason", "permissionRequest", () => ({ allow: false, reason: "ask me" }), { ...no, reason: "ask me" }],
    ["words of ours, for none", "permissionRequest", () => ({ allow: false }), { ...no, reason: "refused by a hook" }],
    ["nothing, where it allows", "permissionRequest", () => ({ allow: true, reason: "unused" }), { allow: true }],
    [
      "that it failed",
      "preToolUse",
      () => {
        throw new Error("hook");
      },
      { ...no, reason: "the flow's hook failed" },
    ],
    [
      "that it failed",
      "permissionRequest",
      () => {
        throw new Error("hook");
      },
      { ...no, reason: "the flow's hook failed" },
    ],
  ];
  for (const [what, moment, fn, expected] of words) {
    it(`tell the agent ${what}: ${moment}`, async () => {
      const verdicts: unknown[] = [];
      /** An agent that keeps what it is told of a tool. */
      class Told extends FakeAgent {
        override open(opening: Opening): SessionDriver {
          const session = super.open(opening);
          const take = session.take.bind(session);
          session.take = async (prompt, host) => {
            verdicts.push(await host[moment]("Bash", {}));
            return take(prompt, host);
          };
          return session;
        }
      }
      await withAgent(async (a) => {
        if (moment === "preToolUse") a.onPreToolUse(fn);
        else a.onPermissionRequest(fn);
        await refusal(a.run("x"));
      }, new Told());
      assert.deepEqual(verdicts, [expected]);
    });
  }

  it("only hear of it where the harness lets no hook gate its tools", async () => {
    const heard: string[] = [];
    const gates = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      a.onPreToolUse(({ tool }) => (heard.push(tool), { block: true }));
      return a.run("x");
    });
    assert.equal(
      await runFake(gates, "", { agents: { a: new FakeAgent({ harness: "agy", reply: tries }) } }),
      "true,true",
    );
    assert.deepEqual(heard, ["Read", "Bash"]);
  });
});

describe("a stop hook", () => {
  it("keeps its turn going with its reason, and is told how often it has", async () => {
    const fake = new FakeAgent({ reply: (prompt) => `did ${prompt}` });
    const heard: [string, number][] = [];
    const said = await withAgent(async (a) => {
      a.onStop(({ said, again }) => (heard.push([said, again]), { block: again < 3, reason: `more ${again}` }));
      return a.run("go");
    }, fake);
    assert.equal(said, "did more 2");
    assert.deepEqual(heard, [
      ["did go", 0],
      ["did more 0", 1],
      ["did more 1", 2],
      ["did more 2", 3],
    ]);
    assert.deepEqual(fake.prompts, ["go", "more 0", "more 1", "more 2"]);
    assert.equal(fake.sessions[0]?.turns, 1);
  });

  it("without a reason does not block", async () => {
    const fake = new FakeAgent();
    await withAgent(async (a) => {
      a.onStop(() => ({ block: true }));
      await a.run("x");
      a.onStop(() => ({ block: true, reason: "" }));
      await a.run("y");
      a.onStop(() => ({ reason: "but no block" }));
      await a.run("z");
    }, fake);
    assert.deepEqual(fake.prompts, ["x", "y", "z"]);
  });

  it("is not asked while steers are pending", async () => {
    const heard: string[] = [];
    const fake = new FakeAgent({
      reply: async (prompt, { session }) => {
        if (prompt === "go") await session.notify("steer me");
        return `did ${prompt}`;
      },
    });
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      a.onNotification(() => a.steer("left", { session }));
      a.onStop(({ said }) => void heard.push(said));
      return a.run("go", { session });
    }, fake);
    assert.equal(said, "did left");
    assert.deepEqual(heard, ["did left"]);
  });
});

describe("a hook that never answers does not outlive its turn", () => {
  const rows: readonly (readonly [string, (a: Full) => void])[] = [
    ["session_start", (a) => a.onSessionStart(never)],
    ["user_prompt_submit", (a) => a.onUserPromptSubmit(never)],
    ["pre_tool_use", (a) => a.onPreToolUse(never)],
    ["ask_user", (a) => a.onAskUser(never)],
    ["stop", (a) => a.onStop(never)],
  ];
  for (const [moment, hang] of rows) {
    it(moment, async () => {
      const said = await withAgent(
        async (a) => {
          hang(a);
          const aborter = new AbortController();
          const turn = refusal(a.run("x", { signal: aborter.signal }));
          for (let round = 0; round < 5; round++) await nextRound();
          aborter.abort(new SessionError("interrupted"));
          return turn;
        },
        {
          reply: async (_prompt, { session }) => {
            await session.tool("Bash");
            await session.ask("?");
            return "done";
          },
        },
      );
      assert.equal(said, "SessionError: interrupted");
    });
  }
});

describe("a session_end hook that never answers", () => {
  it("does not hold up the end of its run", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const fake = new FakeAgent();
    const notices: string[] = [];
    const run = withAgent(
      async (a) => {
        a.onSessionEnd(never);
        return a.run("x", { session: await a.spawn() });
      },
      fake,
      (event) => void (event.kind === "notice" && notices.push(event.text)),
    );
    for (let round = 0; round < 10; round++) await nextRound();
    assert.equal(fake.live, 1);
    t.mock.timers.tick(30_000);
    assert.equal(await run, "ok");
    assert.equal(fake.live, 0);
    assert.match(notices[0] ?? "", /a session_end hook did not end/);
  });
});

describe("an ask_user hook", () => {
  it("answers, with what need not be an option", async () => {
    const said = await withAgent(
      async (a) => {
        a.onAskUser(({ question }) => ({ answer: `${question} blue` }));
        return a.run("x");
      },
      { reply: async (_prompt, { session }) => session.ask("which?", ["red"]) },
    );
    assert.equal(said, "which? blue");
  });
});

describe("Agent.steer", () => {
  it("reaches the turn under way, at once or at its next opportunity", async () => {
    const fake = new FakeAgent({
      reply: async (prompt, { session }) => (prompt === "wait" ? session.untilSteered() : prompt),
    });
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      const turn = a.run("wait", { session });
      await nextRound();
      await a.steer("left", { session });
      const first = await turn;
      return [first, fake.sessions[0]?.steered];
    }, fake);
    assert.deepEqual(said, ["left", [{ prompt: "left", queued: true }]]);
  });

  it("not queued interrupts the step", async () => {
    const fake = new FakeAgent({ reply: (prompt) => (prompt === "hang" ? new Promise<string>(() => {}) : prompt) });
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      const turn = a.run("hang", { session });
      await nextRound();
      await a.steer("now", { session, queued: false });
      return turn;
    }, fake);
    assert.equal(said, "now");
  });

  it("before the harness has the prompt is put after it", async () => {
    const fake = new FakeAgent();
    await withAgent(async (a) => {
      const session = await a.spawn();
      a.onUserPromptSubmit(async () => {
        await a.steer("one", { session });
        await a.steer("two", { session });
      });
      await a.run("go", { session });
    }, fake);
    assert.deepEqual(fake.prompts, ["go\n\none\n\ntwo"]);
  });

  it("while a stop hook runs is the turn's next prompt", async () => {
    const fake = new FakeAgent({ reply: (prompt) => prompt });
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      a.onStop(async ({ said }) => {
        if (said === "go") await a.steer("left", { session });
      });
      return a.run("go", { session });
    }, fake);
    assert.equal(said, "left");
  });

  it("that the harness did not take before its turn ended is refused, and not lost", async () => {
    const fake = new FakeAgent({ reply: async (_prompt, { session }) => session.notify("now") });
    let steered: Promise<string> | undefined;
    const said = await withAgent(async (a) => {
      const session = await a.spawn();
      a.onNotification(() => {
        Object.assign(fake.sessions[0] as object, {
          steer: async () => {
            for (let round = 0; round < 5; round++) await nextRound();
            return false;
          },
        });
        steered = refusal(a.steer("late", { session }));
      });
      await a.run("x", { session });
      return steered;
    }, fake);
    assert.equal(said, "SessionError: a: no turn of this session is under way to steer");
    assert.deepEqual(fake.prompts, ["x"]);
  });

  it("is refused", async () => {
    const said = await withAgent(async (a) => {
      const idle = await a.spawn();
      const over = await a.spawn();
      await over[Symbol.asyncDispose]();
      await a.run("x", { session: idle });
      return [
        await refusal(a.steer("x", { session: idle })),
        await refusal(a.steer("x", { session: over })),
        await refusal(a.steer("x", { session: {} as never })),
        await refusal(a.steer("x", undefined as never)),
      ];
    });
    assert.deepEqual(said, [
      "SessionError: a: no turn of this session is under way to steer",
      "SessionError: a: the session is over",
      "SessionError: a: this object is not one of this agent's",
      "SessionError: a: undefined is not one of this agent's",
    ]);
  });
});
