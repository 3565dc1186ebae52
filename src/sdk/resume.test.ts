import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, it } from "node:test";
import { FakeAgent } from "../fakes/index.ts";
import { agent, flow, FlowCancelled } from "../flows/index.ts";
import { readJournal } from "../home/journal.ts";
import { put } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { Hmz } from "./hmz.ts";
import { Refused } from "./refused.ts";
import type { Run } from "./run.ts";

const budget = { cost: 5 };

interface Workspace {
  readonly hmz: Hmz;
  readonly home: string;
  readonly root: string;
}

function workspace(): Workspace {
  const root = temporaryDirectory("resume");
  const home = join(root, "home");
  return { hmz: new Hmz({ workspace: root, home, env: { ...process.env, TMPDIR: root } }), home, root };
}

const counting = flow({ name: "counting", resumable: true }, async (task, { ctx }) => {
  const times = ctx.state.get("times", 0) + 1;
  ctx.state.set("times", times);
  if (task === "wait") {
    await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error)));
  }
  if (task === "fail") throw new Error("no");
  return times;
});

const plain = flow({ name: "plain" }, async () => "done");

function epicOf(run: Run): string {
  return basename(run.epic as string);
}

function beganOf(run: Run): Readonly<Record<string, unknown>> {
  const [line = ""] = readFileSync(join(run.epic as string, "epic.jsonl"), "utf8").split("\n");
  return JSON.parse(line) as Record<string, unknown>;
}

describe("a run picked up", () => {
  it("is a run of its own, that says whose it carries on and goes on from its state", async () => {
    const { hmz } = workspace();
    const first = hmz.run(counting, "fail", { budget });
    await assert.rejects(first.wait(), { message: "no" });
    assert.equal(beganOf(first)["resumable"], true);
    assert.equal("picked_up" in beganOf(first), false);
    const second = hmz.run(counting, "x", { budget, resume: true });
    assert.equal(await second.wait(), 2);
    assert.notEqual(second.epic, first.epic);
    assert.equal(beganOf(second)["picked_up"], epicOf(first));
    const third = hmz.run(counting, "x", { budget, resume: true });
    assert.equal(await third.wait(), 3);
    assert.equal(beganOf(third)["picked_up"], epicOf(second));
    // The journal of the run that was picked up is left as it was.
    const kept = readJournal(join(first.epic as string, "resume.jsonl"));
    assert.deepEqual(kept.bad, []);
    assert.deepEqual(
      kept.records.filter((record) => (record as { t: string }).t === "set"),
      [{ t: "set", id: 1, key: "times", value: 1 }],
    );
  });

  it("is a chosen one, where an epic is named, by path or by name", async () => {
    const { hmz } = workspace();
    const first = hmz.run(counting, "x", { budget });
    await first.wait();
    await hmz.run(counting, "x", { budget, resume: true }).wait();
    await hmz.run(counting, "x", { budget, resume: true }).wait();
    assert.equal(await hmz.run(counting, "x", { budget, resume: first.epic as string }).wait(), 2);
    assert.equal(await hmz.run(counting, "x", { budget, resume: epicOf(first) }).wait(), 2);
  });

  it("begins afresh without resume", async () => {
    const { hmz } = workspace();
    assert.equal(await hmz.run(counting, "x", { budget }).wait(), 1);
    assert.equal(await hmz.run(counting, "x", { budget }).wait(), 1);
  });

  it("is of the flow's ref, or of the name it was run under, and of nothing else", async () => {
    const { hmz, root } = workspace();
    const source = (body: string) =>
      `import { flow } from "hmz/flows"; export const kernel = flow({ resumable: true }, async (_task, { ctx }) => { ${body} });`;
    const count = `const n = (ctx.state.get("n") ?? 0) + 1; ctx.state.set("n", n); return n;`;
    put(root, {
      "alice/kernel/index.ts": source(count),
      "bob/kernel/index.ts": source(count),
      "other/index.ts": source(count).replace("kernel", "other"),
    });
    assert.equal(await hmz.run("./alice/kernel", "x", { budget }).wait(), 1);
    assert.equal(await hmz.run("./other", "x", { budget }).wait(), 1);
    // Kept in directories of one name, they share a ref.
    assert.equal(await hmz.run("./bob/kernel", "x", { budget, resume: true }).wait(), 2);
    assert.equal(await hmz.run("./other", "x", { budget, resume: true }).wait(), 2);
  });

  it("is not one that is still going, nor the one that it has picked up", async () => {
    const { hmz } = workspace();
    const oldest = hmz.run(counting, "x", { budget });
    await oldest.wait();
    const first = hmz.run(counting, "x", { budget });
    await first.wait();
    const going = hmz.run(counting, "wait", { budget, resume: true });
    const ended = assert.rejects(going.wait(), FlowCancelled);
    await going.start();
    assert.equal(beganOf(going)["picked_up"], epicOf(first));
    const meanwhile = hmz.run(counting, "x", { budget, resume: true });
    await meanwhile.wait();
    assert.equal(beganOf(meanwhile)["picked_up"], epicOf(oldest));
    await assert.rejects(hmz.run(counting, "x", { budget, resume: epicOf(going) }).wait(), {
      name: "Refused",
      message: `${epicOf(going)} is still going: stop it first, then resume it`,
    });
    going.stop();
    await ended;
    assert.equal(await hmz.run(counting, "x", { budget, resume: epicOf(going) }).wait(), 3);
  });

  it("passes over what it cannot pick up: a run killed before it saved anything, a directory that is no epic", async () => {
    const { hmz } = workspace();
    const first = hmz.run(counting, "x", { budget });
    await first.wait();
    const began = readFileSync(join(first.epic as string, "epic.jsonl"), "utf8");
    put(join(first.epic as string, ".."), {
      "29990101T000000.000Z-aaaaaa/epic.jsonl": began,
      "29990101T000000.000Z-bbbbbb/epic.jsonl": began,
      "29990101T000000.000Z-bbbbbb/resume.jsonl": `{"t":"journal","v":1}\n`,
      "29990101T000000.000Z-cccccc/epic.jsonl": began,
      "29990101T000000.000Z-cccccc/resume.jsonl": "",
      "29990102T000000.000Z-dddddd/epic.jsonl": `{"event":"beg`,
    });
    writeFileSync(join(first.epic as string, "..", "zzz"), "");
    const second = hmz.run(counting, "x", { budget, resume: true });
    assert.equal(await second.wait(), 2);
    assert.equal(beganOf(second)["picked_up"], epicOf(first));
  });

  it("loses nothing of a journal whose last line is torn, or that has NULs in the middle", async () => {
    const { hmz } = workspace();
    const first = hmz.run(counting, "x", { budget });
    await first.wait();
    const journal = join(first.epic as string, "resume.jsonl");
    const lines = readFileSync(journal, "utf8").trimEnd().split("\n");
    writeFileSync(
      journal,
      `${lines.slice(0, 2).join("\n")}\n${"\0".repeat(300)}\n${lines.slice(2).join("\n")}\n{"t":"se`,
    );
    const second = hmz.run(counting, "x", { budget, resume: true });
    assert.equal(await second.wait(), 2);
    assert.deepEqual([second.picksUp?.epic, second.picksUp?.bad], [epicOf(first), [3, 6]]);
  });

  it("of a flow that is resumable keeps a journal; of one that is not, none", async () => {
    const { hmz } = workspace();
    const kept = hmz.run(counting, "x", { budget });
    await kept.wait();
    const none = hmz.run(plain, "x", { budget });
    await none.wait();
    assert.ok(readdirSync(kept.epic as string).includes("resume.jsonl"));
    assert.ok(!readdirSync(none.epic as string).includes("resume.jsonl"));
  });

  it("counts its budget from zero", async () => {
    const { hmz } = workspace();
    const spending = flow({ name: "spending", agents: { a: agent() }, resumable: true }, async (_task, given) => {
      await given.agents.a.run("x");
      return given.ctx.usage.cost;
    });
    const agents = { a: new FakeAgent({ cost: 3 }) };
    assert.equal(await hmz.run(spending, "x", { budget, agents }).wait(), 3);
    assert.equal(await hmz.run(spending, "x", { budget, agents, resume: true }).wait(), 3);
  });
});

describe("resuming is refused", () => {
  for (const [what, refused] of [
    [
      "of a flow that is not resumable",
      async ({ hmz }) => {
        await hmz.run(plain, "x", { budget }).wait();
        return {
          run: hmz.run(plain, "x", { budget, resume: true }),
          said: "plain does not support resuming, so there is no run to resume",
        };
      },
    ],
    [
      "where no run saved progress",
      async ({ hmz }) => ({
        run: hmz.run(counting, "x", { budget, resume: true }),
        said: "counting has no run to resume here: none saved any progress",
      }),
    ],
    [
      "of an epic that saved none",
      async ({ hmz }) => {
        const first = hmz.run(plain, "x", { budget });
        await first.wait();
        return {
          run: hmz.run(counting, "x", { budget, resume: epicOf(first) }),
          said: `${epicOf(first)} has no saved progress to resume from`,
        };
      },
    ],
    [
      "of an epic that is none",
      async ({ hmz }) => ({
        run: hmz.run(counting, "x", { budget, resume: "nonsense" }),
        said: "there is no epic 'nonsense'; 'hmz epics' lists them",
      }),
    ],
    [
      "of a run of another workspace",
      async ({ home }) => {
        const elsewhere = temporaryDirectory("elsewhere");
        await new Hmz({ workspace: elsewhere, home }).run(counting, "x", { budget }).wait();
        const here = new Hmz({ workspace: temporaryDirectory("here"), home });
        return {
          run: here.run(counting, "x", { budget, resume: true }),
          said: "counting has no run to resume here: none saved any progress",
        };
      },
    ],
    [
      "of a journal of a newer version",
      async ({ hmz }) => {
        const first = hmz.run(counting, "x", { budget });
        await first.wait();
        const path = join(first.epic as string, "resume.jsonl");
        writeFileSync(path, readFileSync(path, "utf8").replace('"v":1', '"v":2'));
        return {
          run: hmz.run(counting, "x", { budget, resume: true }),
          said: `the journal ${path} is of version 2, and this hmz reads version 1: resume it with the hmz that wrote it`,
        };
      },
    ],
  ] as const satisfies readonly Row[]) {
    it(what, async () => {
      const { run, said } = await refused(workspace());
      await assert.rejects(run.wait(), (error: unknown) => {
        assert.ok(error instanceof Refused);
        assert.equal(error.message, said);
        return true;
      });
      assert.equal(run.epic, undefined);
    });
  }
});

type Row = readonly [what: string, refused: (at: Workspace) => Promise<{ readonly run: Run; readonly said: string }>];
