import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HarnessThrottled, HARNESSES, permission, SessionError, UnsupportedOperation, z } from "hmz/flows";
import { FakeAgent, type FakeAgentOptions, FakeEnv, type FakeSession } from "hmz/fakes";
import type { HarnessEvent } from "../engine/events.ts";
import type { Opening, Spend, TurnHost, TurnSetup, Verdict } from "../engine/ports.ts";

const machine = new FakeEnv();
const setup: TurnSetup = {
  place: { machine, workdir: "/work" },
  hung: new Set(),
  tools: [],
  clis: [],
  schema: undefined,
};
const opening: Opening = { role: "builder", permission: permission(), skills: [], callbacks: {} };
const allow: Verdict = { allow: true };

/** A turn's host that hears everything and answers as it is told. */
class Host implements TurnHost {
  readonly command = undefined;
  readonly aborter = new AbortController();
  readonly signal = this.aborter.signal;
  readonly events: HarnessEvent[] = [];
  readonly spending: Spend[] = [];
  readonly moments: unknown[] = [];
  readonly setup: TurnSetup;
  id = "";
  constructor(changed: Partial<TurnSetup> = {}) {
    this.setup = { ...setup, ...changed };
  }
  named(id: string): void {
    this.id = id;
  }
  event(event: HarnessEvent): void {
    this.events.push(event);
  }
  spent(spend: Spend): void {
    this.spending.push(spend);
  }
  verdicts: { pre?: Verdict; permission?: Verdict } = {};
  async preToolUse(...given: unknown[]): Promise<Verdict> {
    this.moments.push(["pre_tool_use", ...given]);
    return this.verdicts.pre ?? allow;
  }
  async permissionRequest(...given: unknown[]): Promise<Verdict> {
    this.moments.push(["permission_request", ...given]);
    return this.verdicts.permission ?? allow;
  }
  async notification(...given: unknown[]): Promise<void> {
    this.moments.push(["notification", ...given]);
  }
  async subagentStart(...given: unknown[]): Promise<void> {
    this.moments.push(["subagent_start", ...given]);
  }
  async subagentStop(...given: unknown[]): Promise<void> {
    this.moments.push(["subagent_stop", ...given]);
  }
  async askUser(...given: unknown[]): Promise<string | undefined> {
    this.moments.push(["ask_user", ...given]);
    return "blue";
  }
}

async function opened(options: FakeAgentOptions = {}, host = new Host()) {
  const agent = new FakeAgent(options);
  const session = agent.open(opening) as FakeSession;
  await session.ready(host.setup);
  return { agent, session, host };
}

const Verdicts = z.object({ ok: z.boolean().default(true), note: z.string().default("") });

describe("what a fake agent answers", () => {
  const rows: readonly (readonly [string, FakeAgentOptions["reply"], z.ZodType | undefined, object])[] = [
    ["nothing is ok", undefined, undefined, { text: "ok" }],
    ["nothing is the schema's defaults", undefined, Verdicts, { text: "{}", structured: {} }],
    ["nothing, and a schema without them", undefined, z.object({ n: z.number() }), { text: "ok" }],
    ["text", "done", undefined, { text: "done" }],
    ["text that a schema reads", '{"ok":false}', Verdicts, { text: '{"ok":false}' }],
    ["an object", { ok: false }, Verdicts, { text: '{"ok":false}', structured: { ok: false } }],
    ["a function", (prompt) => `you said ${prompt}`, undefined, { text: "you said go" }],
    [
      "an asynchronous function",
      async () => ({ ok: true }),
      Verdicts,
      { text: '{"ok":true}', structured: { ok: true } },
    ],
    ["a function of nothing", () => {}, undefined, { text: "ok" }],
    ["the first of a list", ["one", "two"], undefined, { text: "one" }],
    ["an empty list", [], undefined, { text: "ok" }],
  ];
  for (const [what, reply, zod, answer] of rows) {
    it(what, async () => {
      const { session, host } = await opened({ reply }, new Host(zod ? { zod } : {}));
      assert.deepEqual(await session.take("go", host), answer);
    });
  }

  it("a list is used up one by one, whichever session asks, and then it is ok", async () => {
    const { agent, session, host } = await opened({ reply: ["one", undefined, "three"] });
    const other = agent.open(opening);
    const texts = [];
    for (const taker of [session, other, session, other]) texts.push((await taker.take("go", host)).text);
    assert.deepEqual(texts, ["one", "ok", "three", "ok"]);
  });

  it("a function is told the schema and the session", async () => {
    const asked: unknown[] = [];
    const reply = (_prompt: string, given: object) => void asked.push(given);
    const { session, host } = await opened({ reply }, new Host({ zod: Verdicts }));
    await session.take("go", host);
    assert.deepEqual(asked, [{ outputSchema: Verdicts, session }]);
  });

  it("what a function throws is how the turn fails, and nothing is spent", async () => {
    const { session, host } = await opened({
      reply: () => {
        throw new HarnessThrottled("slow down");
      },
    });
    await assert.rejects(session.take("go", host), HarnessThrottled);
    assert.deepEqual(host.spending, []);
    assert.equal(session.usage.outputTokens, 0);
  });
});

describe("what a fake agent reports", () => {
  it("its identity, and the needs and forks of its harness", () => {
    for (const harness of ["claude", "kimi", "agy", "native"] as const) {
      const agent = new FakeAgent({ harness, model: "m", effort: "high", provider: "work" });
      assert.deepEqual([...agent.serves], [...HARNESSES[harness].needs]);
      assert.equal(agent.forks, HARNESSES[harness].forks);
      assert.deepEqual([agent.harness, agent.model, agent.effort, agent.provider], [harness, "m", "high", "work"]);
    }
    assert.deepEqual([...new FakeAgent({ needs: ["goal"] }).serves], ["goal"]);
  });

  it("whether it forks, where it is told", () => {
    const rows = [
      [{}, "anywhere"],
      [{ forks: false }, "never"],
      [{ harness: "pi", forks: true }, "in-place"],
      [{ harness: "agy", forks: true }, "in-place"],
      [{ harness: "agy", forks: "anywhere" }, "anywhere"],
    ] as const;
    for (const [options, forks] of rows) assert.equal(new FakeAgent(options).forks, forks);
  });

  it("its spending, once an answer", async () => {
    const { session, host } = await opened({ cost: 0.5, outputTokens: 7, seconds: 2, model: "m" });
    await session.take("a", host);
    await session.take("b", host);
    const once = { model: "m", tokens: { output: 7 }, cost: 0.5, seconds: 2 };
    assert.deepEqual(host.spending, [once, once]);
    assert.deepEqual(session.usage, { duration: 4_000, cost: 1, outputTokens: 14 });
  });

  it("its sessions: open, most at once, closed", async () => {
    const agent = new FakeAgent();
    const [one, two] = [agent.open(opening), agent.open(opening)];
    assert.deepEqual([agent.live, agent.peak], [2, 2]);
    await one.close();
    await one.close();
    agent.open(opening);
    assert.deepEqual([agent.live, agent.peak, agent.sessions.length], [2, 2, 3]);
    await two.close();
    assert.equal(agent.live, 1);
    await agent.close();
    assert.equal(agent.closed, 1);
  });

  it("an id of its own for each session, at once or with its first turn", async () => {
    const { agent, session, host } = await opened();
    assert.notEqual(session.id, "");
    assert.notEqual(agent.open(opening).id, session.id);
    const late = await opened({ namesLate: true }, host);
    assert.deepEqual([late.session.id, late.session.named], ["", false]);
    await late.session.take("go", host);
    assert.notEqual(late.session.id, "");
    assert.equal(host.id, late.session.id);
  });

  it("what its sessions were opened with and sent", async () => {
    const agent = new FakeAgent();
    const narrow = permission({ online: "none" });
    const lint = { name: "lint", directory: "", entries: ["lint"] };
    const parent = agent.open({ ...opening, permission: narrow, skills: [lint] }) as FakeSession;
    const fork = agent.open({ ...opening, forkOf: parent }) as FakeSession;
    const host = new Host();
    await parent.take("a", host);
    await parent.take("b", host);
    await fork.take("c", new Host());
    assert.equal(parent.permission, narrow);
    assert.deepEqual(parent.skills, ["lint"]);
    assert.equal(fork.forkedFrom, parent);
    assert.deepEqual([parent.prompts, fork.prompts, agent.prompts], [["a", "b"], ["c"], ["a", "b", "c"]]);
    assert.deepEqual(parent.requests[1], {
      prompt: "b",
      workdir: "/work",
      outputSchema: undefined,
      command: undefined,
    });
    assert.equal(parent.turns, 1, "prompts of one host are one turn");
  });
});

describe("what an agent does in its turn", () => {
  it("tools pass both moments, where they are served, and run unless refused", async () => {
    const no: Verdict = { allow: false, reason: "no" };
    const rows = [
      ["claude", {}, true, 2],
      ["claude", { pre: no }, false, 1],
      ["claude", { permission: no }, false, 2],
      // A harness that gates no tools only tells of them.
      ["codex", { pre: no }, true, 2],
      ["pi", { pre: no, permission: no }, true, 1],
      ["qwen", { pre: no }, false, 1],
    ] as const;
    for (const [harness, verdicts, ran, moments] of rows) {
      const { session, host } = await opened({
        harness,
        reply: async (_prompt, { session }) => String(await session.tool("Bash", { command: "ls" })),
      });
      host.verdicts = verdicts;
      assert.equal((await session.take("go", host)).text, String(ran), `${harness} ${JSON.stringify(verdicts)}`);
      assert.equal(host.moments.length, moments);
      assert.deepEqual(session.tools, [{ name: "Bash", input: { command: "ls" }, ran }]);
      assert.equal(host.events[0]?.kind, "tool");
    }
  });

  it("asks, tells and has sub-agents, as far as its harness does", async () => {
    const reply = async (_prompt: string, { session }: { session: FakeSession }) => {
      await session.notify("waiting");
      const said = await session.subagent("scout", "look", "found");
      return `${await session.ask("which?", ["red"])} ${said}`;
    };
    const { session, host } = await opened({ reply });
    assert.equal((await session.take("go", host)).text, "blue found");
    assert.deepEqual(host.moments, [
      ["notification", "waiting"],
      ["subagent_start", "scout", "look"],
      ["subagent_stop", "scout", "found"],
      ["ask_user", "which?", ["red"]],
    ]);
    const grok = await opened({ harness: "grok", reply });
    await assert.rejects(grok.session.take("go", grok.host), UnsupportedOperation);
    assert.deepEqual(grok.host.moments, [["notification", "waiting"]]);
  });

  it("calls the flow's own tools, and no others", async () => {
    const calls: unknown[] = [];
    const review = {
      name: "review",
      about: "reads",
      schema: {},
      call: async (input: unknown) => {
        calls.push(input);
        return { text: "fine", failed: false };
      },
    };
    const { session, host } = await opened(
      { reply: (prompt, { session }) => session.use(prompt, { path: "a" }) },
      new Host({ tools: [review] }),
    );
    assert.deepEqual(session.offered, [review]);
    assert.equal((await session.take("review", host)).text, "fine");
    assert.deepEqual(calls, [{ path: "a" }]);
    await assert.rejects(session.take("other", host), {
      name: "SessionError",
      message: "builder: the session offers no tool 'other'; it offers review",
    });
  });

  it("has no command line that it was not given", async () => {
    const { session, host } = await opened({
      reply: async (_prompt, { session }) => (await session.runCli(["board", "post"])).stdout,
    });
    await assert.rejects(session.take("go", host), {
      name: "SessionError",
      message: "builder: the session shelves no command line 'board'",
    });
  });

  it("acts within a turn alone", async () => {
    const { session } = await opened();
    await assert.rejects(session.tool("Bash"), SessionError);
    await assert.rejects(session.untilSteered(), SessionError);
  });
});

describe("steering", () => {
  it("is read by whoever waits for it", async () => {
    const { session, host } = await opened({ reply: async (_prompt, { session }) => session.untilSteered() });
    const taken = session.take("go", host);
    assert.equal(await session.steer("left", true), true);
    assert.deepEqual(await taken, { text: "left" });
    assert.deepEqual(session.steered, [{ prompt: "left", queued: true }]);
    assert.deepEqual(session.prompts, ["go"]);
  });

  it("that comes before anybody waits is not lost", async () => {
    const { session, host } = await opened({
      reply: async (_prompt, { session }) => {
        await session.tool("Bash");
        return session.untilSteered();
      },
    });
    const taken = session.take("go", host);
    await session.steer("early", true);
    assert.equal((await taken).text, "early");
  });

  it("that nobody reads is the next prompt of the turn", async () => {
    const { session, host } = await opened({
      reply: async (prompt, { session }) => {
        if (prompt === "go") await session.notify("working");
        return `answered ${prompt}`;
      },
    });
    const taken = session.take("go", host);
    await session.steer("one", true);
    await session.steer("two", true);
    assert.equal((await taken).text, "answered one\n\ntwo");
    assert.deepEqual(session.prompts, ["go", "one\n\ntwo"]);
    assert.equal(host.spending.length, 2);
  });

  it("that does not queue cuts the answer short", async () => {
    const { session, host } = await opened({
      reply: (prompt) => (prompt === "go" ? new Promise<string>(() => {}) : "turned"),
    });
    const taken = session.take("go", host);
    await session.steer("now", false);
    assert.equal((await taken).text, "turned");
    assert.deepEqual(session.prompts, ["go", "now"]);
  });

  it("is not taken by a harness without it, nor between turns", async () => {
    const pending = { reply: () => new Promise<string>(() => {}) };
    const qwen = await opened({ harness: "qwen", ...pending });
    const taken = qwen.session.take("go", qwen.host);
    assert.equal(await qwen.session.steer("x", true), false);
    await qwen.session.close();
    await assert.rejects(taken, SessionError);
    const idle = await opened();
    assert.equal(await idle.session.steer("x", true), false);
  });
});

describe("an interrupted turn", () => {
  const waits: readonly (readonly [string, FakeAgentOptions["reply"]])[] = [
    ["whose reply never comes", () => new Promise<string>(() => {})],
    ["that waits for a steer", (_prompt, { session }) => session.untilSteered()],
    ["whose reply throws late", async () => Promise.reject(new Error("late"))],
  ];
  for (const [what, reply] of waits) {
    it(`rejects with the signal's reason: one ${what}`, async () => {
      const { session, host } = await opened({ reply });
      const taken = session.take("go", host);
      const reason = new Error("stop");
      host.aborter.abort(reason);
      await assert.rejects(taken, reason);
      assert.deepEqual(host.spending, []);
    });
  }

  it("leaves the session for its next turn", async () => {
    const { session, host } = await opened({
      reply: (prompt) => (prompt === "go" ? new Promise<string>(() => {}) : "there"),
    });
    const taken = session.take("go", host);
    host.aborter.abort(new Error("stop"));
    await assert.rejects(taken);
    assert.equal((await session.take("again", new Host())).text, "there");
  });

  it("by its own spending rejects too", async () => {
    const { session, host } = await opened({ cost: 1 });
    host.spent = () => host.aborter.abort(new Error("spent"));
    await assert.rejects(session.take("go", host), /spent/);
  });

  it("whose signal was aborted before takes no prompt", async () => {
    const { session, host } = await opened();
    host.aborter.abort(new Error("stop"));
    await assert.rejects(session.take("go", host), /stop/);
    assert.deepEqual(session.prompts, []);
  });

  it("of a session that is closed rejects, and so does every later one", async () => {
    const { session, host } = await opened({ reply: () => new Promise<string>(() => {}) });
    const taken = session.take("go", host);
    await session.close();
    await assert.rejects(taken, SessionError);
    await assert.rejects(session.take("again", host), SessionError);
    await assert.rejects(session.ready(host.setup), SessionError);
  });
});
