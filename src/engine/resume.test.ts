import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { FakeAgent, FakeEnv, runFake } from "../fakes/index.ts";
import type { FlowState } from "../flows/context.ts";
import { FlowRuntimeError, StateNotSerializable } from "../flows/errors.ts";
import { agent, env, flow, Outworlder, outworlder, z } from "../flows/index.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

interface Record {
  readonly t: string;
  readonly [field: string]: unknown;
}

function recordsOf(journal: string): readonly Record[] {
  return readFileSync(journal, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record);
}

const of = (records: readonly Record[], t: string): readonly Record[] => records.filter((record) => record.t === t);

class Crash extends Error {}

function freshJournal(): string {
  return join(temporaryDirectory("journal"), "resume.jsonl");
}

describe("a journal", () => {
  it("holds a record of each kind, with the fields that each has", async () => {
    const journal = freshJournal();
    const inner = flow({ name: "inner", agents: { helper: agent() } }, async (task, { agents: { helper } }) =>
      helper.run(task),
    );
    const top = flow(
      {
        name: "top",
        agents: { builder: agent() },
        envs: { repo: env({ needs: ["temp_clone", "scratch"] }) },
        resumable: true,
      },
      async (_task, { agents: { builder }, envs: { repo }, ctx }) => {
        ctx.state.set("round", 1);
        ctx.state.set("round", { two: [2] });
        ctx.state.set("gone", true);
        ctx.state.delete("gone");
        await repo.deriveTempClone("copy");
        await repo.deriveScratch("notes");
        await inner("go", { agents: { helper: builder } });
      },
    );
    await runFake(top, "the task", { journal });
    const records = recordsOf(journal);
    assert.deepEqual(records[0], { t: "journal", v: 1 });
    const [first, second] = of(records, "call");
    assert.ok(first && second);
    assert.deepEqual({ ...first, digest: "" }, { t: "call", id: 1, parent: 0, digest: "", seq: 0, ref: first["ref"] });
    assert.match(first["digest"] as string, /^[0-9a-f]{32}$/);
    assert.deepEqual([second["id"], second["parent"], second["seq"]], [2, 1, 0]);
    assert.deepEqual(of(records, "set"), [
      { t: "set", id: 1, key: "round", value: 1 },
      { t: "set", id: 1, key: "round", value: { two: [2] } },
      { t: "set", id: 1, key: "gone", value: true },
    ]);
    assert.deepEqual(of(records, "del"), [{ t: "del", id: 1, key: "gone" }]);
    const [session] = of(records, "session");
    assert.deepEqual(Object.keys(session ?? {}), ["t", "id", "role", "harness", "model", "session"]);
    assert.deepEqual([session?.["id"], session?.["role"], session?.["harness"]], [2, "helper", "claude"]);
    const copies = of(records, "tmp");
    assert.deepEqual(
      copies.map(({ id, env, kind, name, chain }) => ({ id, env, kind, name, chain })),
      [
        { id: 1, env: "repo", kind: "temp_clone", name: "copy", chain: "local@/work" },
        { id: 1, env: "repo", kind: "scratch", name: "notes", chain: "local@/work" },
      ],
    );
    assert.deepEqual(of(records, "end"), [
      { t: "end", id: 2, ok: true },
      { t: "end", id: 1, ok: true },
    ]);
  });

  it("says of a call that threw that it is not ok", async () => {
    const journal = freshJournal();
    const top = flow({ name: "top", resumable: true }, async () => {
      throw new Crash("no");
    });
    await assert.rejects(runFake(top, "", { journal }), Crash);
    assert.deepEqual(of(recordsOf(journal), "end"), [{ t: "end", id: 1, ok: false }]);
  });

  it("is rewritten once by the run that picks it up: each call, what its state holds at last, its end", async () => {
    const journal = freshJournal();
    const top = flow({ name: "top", resumable: true }, async (_task, { ctx }) => {
      for (let round = 0; round < 5; round++) ctx.state.set("round", round);
      ctx.state.set("gone", 1);
      ctx.state.delete("gone");
      if (!ctx.resumed) throw new Crash("no");
    });
    await assert.rejects(runFake(top, "", { journal }), Crash);
    const quiet = flow({ name: "top", resumable: true }, async () => {});
    await runFake(quiet, "", { journal, resume: true });
    const [first] = of(recordsOf(journal), "call");
    assert.deepEqual(recordsOf(journal), [
      { t: "journal", v: 1 },
      first,
      { t: "set", id: 1, key: "round", value: 4 },
      { t: "end", id: 1, ok: false },
      { t: "end", id: 1, ok: true },
    ]);
  });
});

describe("a run that is picked up", () => {
  const counting = (name: string, seen: unknown[]) =>
    flow({ name, resumable: true, params: z.object({ n: z.number().default(0) }) }, async (task, { ctx, params }) => {
      const times = ctx.state.get("times", 0) + 1;
      ctx.state.set("times", times);
      seen.push([task, params.n, ctx.resumed, times]);
    });

  it("restores the state of the top call, whatever the run was given", async () => {
    const journal = freshJournal();
    const seen: unknown[] = [];
    const top = counting("top", seen);
    await runFake(top, "one", { journal });
    await runFake(top, "two", { journal, resume: true, params: { n: 3 } });
    await runFake(top, "three", { journal, resume: true });
    assert.deepEqual(seen, [
      ["one", 0, false, 1],
      ["two", 3, true, 2],
      ["three", 0, true, 3],
    ]);
  });

  it("picks up the calls under it of the same digest, in the order of their seq, and begins the others afresh", async () => {
    const journal = freshJournal();
    const seen: unknown[] = [];
    const callee = counting("callee", seen);
    const top = (plan: readonly (readonly [string, number])[]) =>
      flow({ name: "top", resumable: true }, async () => {
        for (const [task, n] of plan) await callee(task, { params: { n } });
      });
    await runFake(
      top([
        ["a", 0],
        ["a", 0],
        ["b", 1],
      ]),
      "",
      { journal },
    );
    seen.length = 0;
    await runFake(
      top([
        ["a", 0],
        ["c", 0],
        ["a", 0],
        ["a", 0],
        ["b", 2],
        ["b", 1],
      ]),
      "",
      { journal, resume: true },
    );
    assert.deepEqual(seen, [
      ["a", 0, true, 2],
      ["c", 0, false, 1],
      ["a", 0, true, 2],
      ["a", 0, false, 1],
      ["b", 2, false, 1],
      ["b", 1, true, 2],
    ]);
    const seqs = of(recordsOf(journal), "call").map(({ seq }) => seq);
    assert.deepEqual(seqs, [0, 0, 1, 0, 0, 2, 0]);
  });

  it("passes on through a call of a flow that is not resumable", async () => {
    const journal = freshJournal();
    const seen: unknown[] = [];
    const callee = counting("callee", seen);
    const between = flow({ name: "between" }, async (task, { ctx }) => {
      assert.equal(ctx.state, undefined);
      seen.push(["between", ctx.resumed]);
      await callee(task, {});
    });
    const top = flow({ name: "top", resumable: true }, async () => between("x", {}));
    await runFake(top, "", { journal });
    await runFake(top, "", { journal, resume: true });
    assert.deepEqual(seen, [
      ["between", false],
      ["x", 0, false, 1],
      ["between", true],
      ["x", 0, true, 2],
    ]);
  });

  it("does not pick up under a call that picked up none", async () => {
    const journal = freshJournal();
    const seen: unknown[] = [];
    const callee = counting("callee", seen);
    const between = flow({ name: "between" }, async () => callee("x", {}));
    const top = (task: string) => flow({ name: "top", resumable: true }, async () => between(task, {}));
    await runFake(top("one"), "", { journal });
    await runFake(top("two"), "", { journal, resume: true });
    assert.deepEqual(seen, [
      ["x", 0, false, 1],
      ["x", 0, false, 1],
    ]);
  });

  const other = new FakeAgent({ harness: "claude", model: "other" });
  for (const [what, differs] of [
    ["an agent's model", { agents: { a: other } }],
    ["an agent's effort", { agents: { a: new FakeAgent({ effort: "high" }) } }],
    ["an agent's account", { agents: { a: new FakeAgent({ provider: "work" }) } }],
    ["an agent's harness", { agents: { a: new FakeAgent({ harness: "codex" }) } }],
    ["an environment's place", { envs: { e: new FakeEnv({ workdir: "/elsewhere" }) } }],
    ["an environment's machine", { envs: { e: new FakeEnv({ backend: "ssh", provider: "host" }) } }],
  ] as const) {
    it(`takes a call that differs in ${what} for another`, async () => {
      const journal = freshJournal();
      const resumed: boolean[] = [];
      const callee = flow(
        { name: "callee", agents: { a: agent() }, envs: { e: env() }, resumable: true },
        async (_task, { ctx }) => void resumed.push(ctx.resumed),
      );
      const top = flow(
        { name: "top", agents: { a: agent() }, envs: { e: env() }, resumable: true },
        async (_task, { agents, envs }) => callee("x", { agents, envs }),
      );
      const usual = { agents: { a: new FakeAgent() }, envs: { e: new FakeEnv() } };
      await runFake(top, "", { journal, ...usual });
      await runFake(top, "", { journal, resume: true, ...usual });
      await runFake(top, "", { journal, resume: true, ...usual, ...differs });
      assert.deepEqual(resumed, [false, true, false]);
    });
  }

  it("tells apart who answers for the person, and how an environment was derived", async () => {
    const journal = freshJournal();
    const resumed: string[] = [];
    const callee = flow(
      { name: "callee", agents: { human: outworlder() }, envs: { e: env() }, resumable: true },
      async (task, { ctx }) => void resumed.push(`${task} ${ctx.resumed}`),
    );
    const top = (changed: boolean) =>
      flow({ name: "top", envs: { e: env() }, resumable: true }, async (_task, { envs: { e } }) => {
        const agents = changed ? { human: Outworlder.new() } : {};
        await callee("person", { agents, envs: { e } });
        await callee("derived", { agents: {}, envs: { e: changed ? await e.deriveSubdir("lib") : e } });
      });
    await runFake(top(false), "", { journal });
    await runFake(top(true), "", { journal, resume: true });
    assert.deepEqual(resumed, ["person false", "derived false", "person false", "derived false"]);
  });

  it("tells params that JSON has no word for apart", async () => {
    const journal = freshJournal();
    const resumed: boolean[] = [];
    const callee = flow(
      { name: "callee", params: z.object({ most: z.unknown() }), resumable: true },
      async (_task, { ctx }) => void resumed.push(ctx.resumed),
    );
    const top = (most: unknown) =>
      flow({ name: "top", resumable: true }, async () => callee("x", { params: { most } }));
    await runFake(top(Infinity), "", { journal });
    await runFake(top(NaN), "", { journal, resume: true });
    await runFake(top(Infinity), "", { journal, resume: true });
    assert.deepEqual(resumed, [false, false, true]);
  });

  it("reads on after lines that are not its own, and refuses none of them", async () => {
    const journal = freshJournal();
    const seen: unknown[] = [];
    const top = counting("top", seen);
    await runFake(top, "one", { journal });
    const strange = [
      `{"t":"set","id":1,"key":"__proto__","value":{"polluted":true}}`,
      `{"t":"set","id":99,"key":"x","value":1}`,
      `{"t":"call","id":1,"parent":0,"digest":"again","seq":0,"ref":"x"}`,
      `{"t":"call","id":7,"parent":55,"digest":"lost","seq":0,"ref":"x"}`,
      `{"t":"later","id":1}`,
      `{"t":"set","id":1}`,
      `[1]`,
      `"text"`,
    ];
    appendFileSync(journal, `${strange.join("\n")}\n`);
    await runFake(top, "two", { journal, resume: true });
    assert.deepEqual(seen.at(-1), ["two", 0, true, 2]);
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });
});

describe("what a state may hold", () => {
  const stateful = async (fn: (state: FlowState) => unknown, journal?: string): Promise<unknown> => {
    const top = flow({ name: "top", resumable: true }, async (_task, { ctx }) => fn(ctx.state));
    return runFake(top, "", journal === undefined ? {} : { journal });
  };

  for (const journaled of [false, true]) {
    const where = journaled ? "with a journal" : "in memory";
    it(`is read back as the round trip through JSON, ${where}`, async () => {
      const journal = journaled ? freshJournal() : undefined;
      await stateful((state) => {
        const value = { list: [1, "two", null], at: new Date(0), odd: [Infinity, -Infinity, NaN], deep: { a: true } };
        state.set("value", value);
        const read = { ...structuredClone(value), at: "1970-01-01T00:00:00.000Z" };
        assert.deepEqual(state.get("value"), read);
        assert.notEqual(state.get("value"), state.get("value"));
        value.deep.a = false;
        assert.deepEqual(state.get("value"), read);
        assert.deepEqual([...state], [["value", read]]);
        assert.deepEqual([...state.keys()], ["value"]);
        assert.equal(state.size, 1);
        assert.equal(state.has("nothing"), false);
        assert.equal(state.get("nothing"), undefined);
        assert.equal(state.get("nothing", 5), 5);
        assert.equal(state.delete("nothing"), false);
        assert.equal(state.delete("value"), true);
        assert.equal(state.size, 0);
      }, journal);
    });
  }

  const circular: { self?: unknown } = {};
  circular.self = circular;
  for (const [what, value, said] of [
    ["a function", { fn: () => 1 }, /^Object cannot be kept in a flow's state: function is not JSON$/],
    ["undefined", undefined, /^undefined cannot be kept in a flow's state: undefined is not JSON$/],
    ["a bigint", [1n], /^Array cannot be kept in a flow's state: bigint is not JSON$/],
    ["a symbol", { s: Symbol("x") }, /^Object cannot be kept in a flow's state: symbol is not JSON$/],
    ["a circle", circular, /^Object cannot be kept in a flow's state: .*circular/],
    ["a map", { map: new Map() }, /^Object cannot be kept in a flow's state: Map is not JSON$/],
    ["a set", new Set([1]), /^Set cannot be kept in a flow's state: Set is not JSON$/],
    ["a promise", Promise.resolve(1), /^Promise cannot be kept in a flow's state: Promise is not JSON$/],
    ["an error", new TypeError("x"), /^TypeError cannot be kept in a flow's state: TypeError is not JSON$/],
    [
      "what stands for a session",
      { "\u0000session": { harness: "claude", id: "x", at: "/etc", role: "a" } },
      /^Object cannot be kept in a flow's state: a key that begins with a NUL is the state's own$/,
    ],
  ] as const) {
    it(`refuses ${what}, and writes nothing down`, async () => {
      const journal = freshJournal();
      await stateful((state) => {
        assert.throws(
          () => state.set("key", value),
          (error: unknown) => {
            assert.ok(error instanceof StateNotSerializable);
            assert.match(error.message, said);
            return true;
          },
        );
        assert.equal(state.has("key"), false);
      }, journal);
      assert.deepEqual(of(recordsOf(journal), "set"), []);
    });
  }

  for (const [key, said] of [
    [5, "a state key is a string, not 5"],
    [null, "a state key is a string, not null"],
    [Symbol("k"), "a state key is a string, not Symbol(k)"],
  ] as const) {
    it(`refuses a key that is ${String(key)}`, async () => {
      await stateful((state) =>
        assert.throws(() => state.set(key as never, 1), { name: "StateNotSerializable", message: said }),
      );
    });
  }
});

describe("a flow over fakes", () => {
  it("takes resume only with a journal, and a journal only where it is resumable", async () => {
    const top = flow({ name: "top", resumable: true }, async () => {});
    await assert.rejects(runFake(top, "", { resume: true }), FlowRuntimeError);
    const plain = flow({ name: "plain" }, async () => {});
    await assert.rejects(runFake(plain, "", { journal: freshJournal() }), FlowRuntimeError);
  });
});
