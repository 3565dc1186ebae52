import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { FakeAgent, FakeEnv, runFake } from "../fakes/index.ts";
import type { Session } from "../flows/agent.ts";
import { agent, env, flow, type Harness, optional, outworlder } from "../flows/index.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

function freshJournal(): string {
  return join(temporaryDirectory("kept"), "resume.jsonl");
}

const setsIn = (journal: string): readonly string[] =>
  readFileSync(journal, "utf8")
    .split("\n")
    .filter((line) => line.includes('"t":"set"'));

describe("a session kept in a state", () => {
  const keeping = flow({ name: "top", agents: { coder: agent() }, resumable: true }, async (task, given) => {
    const { coder } = given.agents;
    const { state } = given.ctx;
    if (!given.ctx.resumed) {
      const session = await coder.spawn();
      await coder.run("first", { session });
      state.set("boundary", { at: [session], note: "here" });
      await coder.run("past it", { session });
    }
    const again = state.get<{ at: [Session]; note: string }>("boundary");
    assert.equal(again?.note, "here");
    await coder.run(task, { session: again.at[0] });
  });

  it("is carried on as a fork, in the run that kept it and in every later one", async () => {
    const journal = freshJournal();
    const fake = new FakeAgent();
    await runFake(keeping, "one", { agents: { coder: fake }, journal });
    const [original, carried] = fake.sessions;
    assert.deepEqual(original?.prompts, ["first", "past it"]);
    assert.deepEqual(carried?.prompts, ["one"]);
    assert.notEqual(carried?.id, original?.id);
    for (const task of ["two", "three"]) {
      const later = new FakeAgent();
      await runFake(keeping, task, { agents: { coder: later }, journal, resume: true });
      assert.equal(later.sessions.length, 1);
      assert.deepEqual(later.sessions[0]?.prompts, [task]);
    }
  });

  it("is written down as where its copy is", async () => {
    const journal = freshJournal();
    const fake = new FakeAgent();
    await runFake(keeping, "one", { agents: { coder: fake }, journal });
    const [line] = setsIn(journal);
    const { value } = JSON.parse(line ?? "") as { value: { at: [Record<string, Record<string, string>>] } };
    const kept = value.at[0]["\u0000session"];
    assert.deepEqual(Object.keys(kept ?? {}), ["harness", "id", "at", "role"]);
    assert.equal(kept?.["harness"], "claude");
    assert.equal(kept?.["role"], "coder");
    assert.equal(kept?.["id"], fake.sessions[0]?.id);
    assert.equal(dirname(kept?.["at"] ?? ""), join(dirname(journal), "sessions", "claude", ".kept"));
    assert.ok(existsSync(kept?.["at"] ?? ""));
  });

  it("is a new session on each read", async () => {
    const fake = new FakeAgent();
    const top = flow({ name: "top", agents: { coder: agent() }, resumable: true }, async (_task, given) => {
      const { coder } = given.agents;
      const session = await coder.spawn();
      await coder.run("first", { session });
      given.ctx.state.set("kept", session);
      const [one, other] = [given.ctx.state.get<Session>("kept"), given.ctx.state.get<Session>("kept")];
      assert.notEqual(one, other);
      assert.ok(one && other);
      await Promise.all([coder.run("one", { session: one }), coder.run("other", { session: other })]);
    });
    await runFake(top, "", { agents: { coder: fake } });
    assert.deepEqual(
      fake.sessions.map(({ prompts }) => prompts),
      [["first"], ["one"], ["other"]],
    );
  });

  it("that was read back and not gone on with is kept as what it carries on, and nothing is copied", async () => {
    const journal = freshJournal();
    const top = flow({ name: "top", agents: { coder: agent() }, resumable: true }, async (_task, given) => {
      const { coder } = given.agents;
      const session = await coder.spawn();
      await coder.run("first", { session });
      given.ctx.state.set("one", session);
      given.ctx.state.set("two", given.ctx.state.get("one"));
      const carried = given.ctx.state.get<Session>("two");
      assert.ok(carried);
      await coder.run("on", { session: carried });
      given.ctx.state.set("three", carried);
    });
    await runFake(top, "", { journal });
    const [one, two, three] = setsIn(journal).map((line) => (JSON.parse(line) as { value: unknown }).value);
    assert.deepEqual(two, one);
    assert.notDeepEqual(three, one);
    assert.equal(readdirSync(join(dirname(journal), "sessions", "claude", ".kept")).length, 2);
  });

  it("is gone with a run that has no journal", async () => {
    let at = "";
    const fake = new FakeAgent();
    const open = fake.open.bind(fake);
    fake.open = (opening) => {
      at = opening.carries?.at ?? at;
      return open(opening);
    };
    await runFake(keeping, "one", { agents: { coder: fake } });
    assert.notEqual(at, "");
    assert.ok(!existsSync(at));
  });

  const keeps = async (
    harness: Harness,
    session: (given: {
      coder: { spawn(): Promise<Session>; run(prompt: string, options: { session: Session }): Promise<string> };
    }) => Promise<Session>,
    options: { readonly place?: FakeEnv } = {},
  ): Promise<{ readonly said: string; readonly sets: readonly string[] }> => {
    const journal = freshJournal();
    const caller = flow(
      { name: "top", agents: { coder: agent() }, envs: { e: optional(env()) }, resumable: true },
      async (_task, { agents: { coder }, envs: { e }, ctx }) => {
        const held = await session({
          coder: {
            spawn: () => coder.spawn(),
            run: (prompt, given) => coder.run(prompt, { ...given, ...(e ? { env: e } : {}) }),
          },
        });
        try {
          ctx.state.set("kept", { deep: [held] });
        } catch (error) {
          assert.equal(ctx.state.has("kept"), false);
          return `${(error as Error).name}: ${(error as Error).message}`;
        }
        return "kept";
      },
    );
    const said = await runFake(caller, "", {
      agents: { coder: new FakeAgent({ harness }) },
      ...(options.place ? { envs: { e: options.place } } : {}),
      journal,
    });
    return { said, sets: setsIn(journal) };
  };

  for (const [what, harness, session, said] of [
    [
      "that has taken no turn",
      "claude",
      async ({ coder }) => coder.spawn(),
      "StateNotSerializable: coder: the session to keep has taken no turn to carry on from",
    ],
    [
      "that is over",
      "claude",
      async ({ coder }) => {
        const made = await coder.spawn();
        await coder.run("x", { session: made });
        await made[Symbol.asyncDispose]();
        return made;
      },
      "StateNotSerializable: coder: the session to keep is over",
    ],
    [
      "with a turn under way",
      "claude",
      async ({ coder }) => {
        const made = await coder.spawn();
        await coder.run("x", { session: made });
        coder.run("y", { session: made }).catch(() => {});
        return made;
      },
      "StateNotSerializable: coder: a turn of the session to keep is under way",
    ],
    ...(["cursor-agent", "mcode", "agy", "dsh"] as const).map(
      (harness) =>
        [
          `of ${harness}, which does not fork`,
          harness,
          async ({ coder }) => {
            const made = await coder.spawn();
            await coder.run("x", { session: made });
            return made;
          },
          `StateNotSerializable: coder: ${harness} cannot fork a session`,
        ] as const satisfies Row,
    ),
  ] as const satisfies readonly Row[]) {
    it(`${what} is refused, and nothing is written down`, async () => {
      const outcome = await keeps(harness, session);
      assert.equal(outcome.said, said);
      assert.deepEqual(outcome.sets, []);
    });
  }

  for (const harness of ["opencode", "mimo"] as const) {
    it(`of ${harness}, whose conversations are rows of a database, is refused`, async () => {
      const { said, sets } = await keeps(harness, async ({ coder }) => {
        const made = await coder.spawn();
        await coder.run("x", { session: made });
        return made;
      });
      assert.match(said, /^StateNotSerializable: coder: .*the conversation cannot be found as files/);
      assert.deepEqual(sets, []);
    });
  }

  it("whose last turn's CLI ran on another machine is refused", async () => {
    const { said } = await keeps(
      "claude",
      async ({ coder }) => {
        const made = await coder.spawn();
        await coder.run("x", { session: made });
        return made;
      },
      { place: new FakeEnv({ backend: "ssh", provider: "box" }) },
    );
    assert.equal(said, "StateNotSerializable: coder: claude keeps a conversation on another machine, not here");
  });

  it("of an agent that another call was handed is refused, and so is an outworlder's", async () => {
    const said: string[] = [];
    const refused = (set: () => void): void => {
      try {
        set();
      } catch (error) {
        said.push(`${(error as Error).name}: ${(error as Error).message}`);
      }
    };
    let callers: Session | undefined;
    const callee = flow({ name: "callee", resumable: true }, async (_task, { ctx }) =>
      refused(() => ctx.state.set("kept", callers)),
    );
    const top = flow(
      { name: "top", agents: { coder: agent(), human: outworlder() }, resumable: true },
      async (_task, { agents: { coder, human }, ctx }) => {
        callers = await coder.spawn();
        await coder.run("x", { session: callers });
        await callee("");
        const persons = await human.spawn();
        refused(() => ctx.state.set("kept", persons));
      },
    );
    await runFake(top);
    assert.deepEqual(said, [
      "StateNotSerializable: coder: a session is kept only in the state of the flow call it is of",
      "StateNotSerializable: an outworlder's session cannot be kept in a flow's state",
    ]);
  });

  it("with one that cannot be kept beside it leaves no copy", async () => {
    const journal = freshJournal();
    const top = flow({ name: "top", agents: { coder: agent() }, resumable: true }, async (_task, given) => {
      const { coder } = given.agents;
      const good = await coder.spawn();
      await coder.run("x", { session: good });
      const bad = await coder.spawn();
      assert.throws(() => given.ctx.state.set("kept", [good, bad]), { name: "StateNotSerializable" });
    });
    await runFake(top, "", { journal });
    assert.deepEqual(setsIn(journal), []);
    assert.ok(!existsSync(join(dirname(journal), "sessions")));
  });
});

describe("a session that is read back", () => {
  const kept = flow({ name: "top", agents: { coder: agent() }, resumable: true }, async (_task, given) => {
    const session = await given.agents.coder.spawn();
    await given.agents.coder.run("x", { session });
    given.ctx.state.set("kept", session);
  });
  const reading = flow(
    { name: "top", agents: { coder: agent() }, envs: { e: optional(env()) }, resumable: true },
    async (_task, { agents: { coder }, envs: { e }, ctx }) => {
      const session = ctx.state.get<Session>("kept");
      assert.ok(session);
      const error: unknown = await coder.run("on", { session, ...(e ? { env: e } : {}) }).then(
        () => new Error("nothing was refused"),
        (thrown: unknown) => thrown,
      );
      return `${(error as Error).name}: ${(error as Error).message}`;
    },
  );

  it("by another harness is refused before anything starts", async () => {
    const journal = freshJournal();
    await runFake(kept, "", { journal });
    const codex = new FakeAgent({ harness: "codex" });
    const said = await runFake(reading, "", { journal, resume: true, agents: { coder: codex } });
    assert.equal(said, "UnsupportedOperation: codex cannot carry on a conversation claude kept");
    assert.deepEqual(codex.prompts, []);
  });

  it("onto another machine is refused", async () => {
    const journal = freshJournal();
    await runFake(kept, "", { journal });
    const e = new FakeEnv({ backend: "ssh", provider: "box" });
    const said = await runFake(reading, "", { journal, resume: true, envs: { e } });
    assert.equal(
      said,
      "UnsupportedOperation: claude cannot carry a kept conversation onto another machine its CLI runs on",
    );
  });

  it("whose copy is gone is refused", async () => {
    const journal = freshJournal();
    const fake = new FakeAgent();
    await runFake(kept, "", { journal, agents: { coder: fake } });
    const shelf = join(dirname(journal), "sessions", "claude", ".kept");
    const [name = ""] = readdirSync(shelf);
    rmSync(join(shelf, name), { recursive: true });
    const said = await runFake(reading, "", { journal, resume: true });
    const id = fake.sessions[0]?.id;
    assert.equal(
      said,
      `SessionError: the session cannot be forked: claude: no conversation ${id} under ${join(shelf, name)}`,
    );
  });
});

type Row = readonly [
  what: string,
  harness: Harness,
  session: (given: {
    coder: { spawn(): Promise<Session>; run(prompt: string, options: { session: Session }): Promise<string> };
  }) => Promise<Session>,
  said: string,
];
