import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { FakeEnv, runFake } from "../fakes/index.ts";
import { env, type EnvNeed, flow, ScratchError } from "../flows/index.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

const needs = ["files", "temp_clone", "scratch", "worktree", "git"] as const satisfies readonly EnvNeed[];
const repo = () => env({ needs });

function freshJournal(): string {
  return join(temporaryDirectory("copies"), "resume.jsonl");
}

const said = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "nothing was refused",
    (error: unknown) => `${(error as Error).name}: ${(error as Error).message}`,
  );

describe("a copy", () => {
  it("has what the workdir has, and a change in one is none in the other; the same id is the same copy", async () => {
    const e = new FakeEnv({ files: { "a.txt": "a", "lib/b.txt": "b" } });
    const top = flow({ name: "top", envs: { e: repo() } }, async (_task, { envs }) => {
      const copy = await envs.e.deriveTempClone("x");
      assert.equal(await copy.readText("lib/b.txt"), "b");
      assert.equal(copy.role, "e");
      assert.notEqual(copy.workdir, envs.e.workdir);
      await copy.write("a.txt", "changed");
      assert.equal(await envs.e.readText("a.txt"), "a");
      const again = await envs.e.deriveTempClone("x");
      assert.equal(again.workdir, copy.workdir);
      assert.equal(await again.readText("a.txt"), "changed");
      const other = await envs.e.deriveTempClone("y");
      assert.equal(await other.readText("a.txt"), "a");
      assert.deepEqual(e.clones, ["x", "y"]);
      const inside = await copy.deriveTempClone("x");
      assert.equal(await inside.readText("a.txt"), "changed");
      assert.notEqual(inside.workdir, copy.workdir);
    });
    await runFake(top, "", { envs: { e } });
    assert.deepEqual(e.clones, []);
    assert.deepEqual(Object.keys(e.files), ["a.txt", "lib/b.txt"]);
    assert.equal([...e.machine.keys()].filter((path) => path.startsWith("/envs/")).length, 0);
  });

  it("is made once, however many ask at once", async () => {
    const e = new FakeEnv({ files: { "a.txt": "a" } });
    const top = flow({ name: "top", envs: { e: repo() } }, async (_task, { envs }) => {
      const all = await Promise.all(Array.from({ length: 10 }, () => envs.e.deriveTempClone("x")));
      assert.equal(new Set(all.map(({ workdir }) => workdir)).size, 1);
    });
    await runFake(top, "", { envs: { e } });
  });

  it("is removed when the last call that has it ends, and no sooner", async () => {
    const e = new FakeEnv({ files: { "a.txt": "a" } });
    const callee = flow({ name: "callee", envs: { e: repo() } }, async (id, { envs }) => {
      await (await envs.e.deriveTempClone(id)).write("mark", "callee");
    });
    const top = flow({ name: "top", envs: { e: repo() } }, async (_task, { envs }) => {
      const mine = await envs.e.deriveTempClone("mine");
      await callee("mine", { envs });
      assert.equal(await mine.readText("mark"), "callee");
      await callee("its", { envs });
      assert.deepEqual(e.clones, ["mine"]);
      const anew = await envs.e.deriveTempClone("its");
      assert.equal(await said(anew.readText("mark")), `EnvFileNotFound: ${anew.workdir}/mark: no such file`);
    });
    await runFake(top, "", { envs: { e } });
    assert.deepEqual(e.clones, []);
  });

  it("is removed from a call that fails, and at once where it is destroyed", async () => {
    const e = new FakeEnv();
    const callee = flow({ name: "callee", envs: { e: repo() } }, async (_task, { envs }) => {
      await envs.e.deriveTempClone("x");
      await envs.e.deriveScratch("s");
      throw new Error("no");
    });
    const top = flow({ name: "top", envs: { e: repo() } }, async (_task, { envs }) => {
      assert.equal(await said(callee("", { envs })), "Error: no");
      assert.deepEqual([e.clones, e.scratches], [[], []]);
      await envs.e.deriveTempClone("y");
      await envs.e.deriveScratch("y");
      await envs.e.destroyTempClone("y");
      assert.deepEqual([e.clones, e.scratches], [[], ["y"]]);
      await envs.e.destroyScratch("y");
      assert.deepEqual([e.clones, e.scratches], [[], []]);
      // Nothing where there is none.
      await envs.e.destroyTempClone("y");
      await envs.e.destroyScratch("never");
    });
    await runFake(top, "", { envs: { e } });
  });

  it("of an id that another environment holds is refused", async () => {
    const e = new FakeEnv();
    const top = flow({ name: "top", envs: { a: repo(), b: repo() } }, async (_task, { envs }) => {
      await envs.a.deriveTempClone("x");
      // One fake that fills both roles is one environment; the same directory reached another way is another.
      await envs.b.deriveTempClone("x");
      const lib = await envs.a.deriveSubdir("lib");
      await lib.deriveTempClone("x");
      const up = await (await lib.deriveSubdir("deep")).deriveSubdir("er");
      await up.deriveTempClone("x");
      const same = await lib.deriveSubdir("deep/er");
      return said(same.deriveTempClone("x"));
    });
    assert.match(
      await runFake(top, "", { envs: { a: e, b: e } }),
      /^TempCloneBusy: the copy 'x' of \/work\/lib\/deep\/er/,
    );
    assert.deepEqual(e.clones, []);
  });

  it("is recorded, kept, and found again by the run that picks it up, where there is a journal", async () => {
    const journal = freshJournal();
    const e = new FakeEnv({ files: { "a.txt": "a" } });
    const top = flow({ name: "top", envs: { e: repo() }, resumable: true }, async (_task, { envs, ctx }) => {
      const copy = await envs.e.deriveTempClone("x");
      const scratch = await envs.e.deriveScratch("s");
      if (!ctx.resumed) {
        await copy.write("mark", "one");
        await scratch.write("mark", "two");
        throw new Error("no");
      }
      return [copy.workdir, await copy.readText("mark"), scratch.workdir, await scratch.readText("mark")];
    });
    await assert.rejects(runFake(top, "", { journal, envs: { e } }));
    assert.deepEqual([e.clones, e.scratches], [["x"], ["s"]]);
    const [copy, one, scratch, two] = await runFake(top, "", { journal, resume: true, envs: { e } });
    assert.deepEqual([one, two], ["one", "two"]);
    assert.match(copy as string, /\/clones\/x$/);
    assert.match(scratch as string, /\/scratch\/s$/);
    // A run from the beginning has nothing to do with what that one kept.
    const fresh = flow({ name: "top", envs: { e: repo() }, resumable: true }, async (_task, { envs }) =>
      said((await envs.e.deriveTempClone("x")).readText("mark")),
    );
    assert.match(await runFake(fresh, "", { journal: freshJournal(), envs: { e } }), /^EnvFileNotFound/);
  });

  it("that a resumed call destroys is gone, though it was another run's", async () => {
    const journal = freshJournal();
    const e = new FakeEnv();
    const top = flow({ name: "top", envs: { e: repo() }, resumable: true }, async (_task, { envs, ctx }) => {
      if (ctx.resumed) await envs.e.destroyTempClone("x");
      else await envs.e.deriveTempClone("x");
    });
    await runFake(top, "", { journal, envs: { e } });
    assert.deepEqual(e.clones, ["x"]);
    await runFake(top, "", { journal, resume: true, envs: { e } });
    assert.deepEqual(e.clones, []);
  });

  it("that cannot be removed leaves the call's own outcome as it is, and is told", async () => {
    const e = new FakeEnv();
    e.derive.destroyScratch = () => Promise.reject(new ScratchError("in use"));
    const notices: string[] = [];
    const top = flow({ name: "top", envs: { e: repo() } }, async (_task, { envs }) => {
      await envs.e.deriveScratch("x");
      return "done";
    });
    const recorder = {
      record: (event: { readonly kind: string; readonly text?: string }) => {
        if (event.kind === "notice") notices.push(event.text ?? "");
      },
    };
    assert.equal(await runFake(top, "", { envs: { e }, recorder }), "done");
    assert.deepEqual(notices, ["what was made for 'x' is left: in use"]);
  });

  it("that could not be made is tried again", async () => {
    const e = new FakeEnv();
    const { derive } = e;
    const make = derive.tempClone.bind(derive);
    let failing = true;
    derive.tempClone = (...given) => (failing ? Promise.reject(new Error("once")) : make(...given));
    const top = flow({ name: "top", envs: { e: repo() } }, async (_task, { envs }) => {
      assert.equal(await said(envs.e.deriveTempClone("x")), "Error: once");
      failing = false;
      return (await envs.e.deriveTempClone("x")).workdir;
    });
    assert.match(await runFake(top, "", { envs: { e } }), /clones\/x$/);
  });
});

describe("what a role's grant does not have", () => {
  for (const [what, need, use] of [
    ["deriveWorktree", "worktree", (e) => e["deriveWorktree"]?.()],
    ["deriveTempClone", "temp_clone", (e) => e["deriveTempClone"]?.("x")],
    ["destroyTempClone", "temp_clone", (e) => e["destroyTempClone"]?.("x")],
    ["deriveScratch", "scratch", (e) => e["deriveScratch"]?.("x")],
    ["destroyScratch", "scratch", (e) => e["destroyScratch"]?.("x")],
    ["snapshot", "git", (e) => e["snapshot"]?.()],
    ["rewind", "git", (e) => e["rewind"]?.("HEAD")],
    ["snapshots", "git", (e) => e["snapshots"]?.()],
  ] as const satisfies readonly (readonly [string, EnvNeed, (e: Untyped) => unknown])[]) {
    for (const declared of [[], ["rewind"]] as const satisfies readonly (readonly EnvNeed[])[]) {
      it(`${what} of a role that needs ${declared.join(", ") || "nothing"} is refused`, async () => {
        const top = flow({ name: "top", envs: { e: env({ needs: declared }) } }, async (_task, { envs }) =>
          said(Promise.resolve(use(envs.e as unknown as Untyped))),
        );
        assert.equal(await runFake(top), `CapabilityNotGranted: e: ${what} needs ${need} on the role`);
      });
    }
  }

  for (const id of ["", 5, undefined]) {
    it(`an id that is ${JSON.stringify(id) ?? "left out"} is refused`, async () => {
      const top = flow({ name: "top", envs: { e: repo() } }, async (_task, { envs }) =>
        said(envs.e.deriveTempClone(id as string)),
      );
      assert.equal(await runFake(top), "TypeError: deriveTempClone takes an id: a string that is not empty");
    });
  }
});

describe("a derived environment's chain", () => {
  it("says how it was derived, and never where it landed", async () => {
    const journal = freshJournal();
    const resumed: boolean[] = [];
    const callee = flow({ name: "callee", envs: { e: repo() }, resumable: true }, async (_task, { ctx }) => {
      resumed.push(ctx.resumed);
    });
    const top = flow({ name: "top", envs: { e: repo() }, resumable: true }, async (_task, { envs: { e } }) => {
      for (const derived of [
        await e.deriveWorktree(),
        await e.deriveWorktree({ ref: "main" }),
        await e.deriveTempClone("x"),
        await e.deriveScratch("x"),
        await e.deriveSubdir("x"),
      ]) {
        await callee("same", { envs: { e: derived } });
      }
    });
    const e = new FakeEnv();
    await runFake(top, "", { journal, envs: { e } });
    assert.deepEqual(resumed, [false, false, false, false, false]);
    await runFake(top, "", { journal, resume: true, envs: { e } });
    // The worktrees lie elsewhere now, and are the same to the journal.
    assert.deepEqual(resumed.slice(5), [true, true, true, true, true]);
  });
});

type Untyped = Readonly<Record<string, ((...given: unknown[]) => unknown) | undefined>>;
