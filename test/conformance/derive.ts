/** What every machine that derives directories does alike: `deriveConformance(name, make)` in a test file of its own. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Derive, Holding, Machine } from "../../src/engine/ports.ts";
import { RewindError, TempCloneBusy, WorktreeError } from "../../src/flows/errors.ts";

export interface DeriveUnderTest {
  readonly machine: Machine & { readonly derive?: Derive };
  /** A git worktree with one commit of `a.txt` ("a\n") and `lib/b.txt` ("b\n"), whose branch is `main`; clean. */
  readonly workdir: string;
  /** A directory that is in no repository, with the file `c.txt`. */
  readonly bare: { readonly machine: Machine & { readonly derive?: Derive }; readonly workdir: string };
}

/** Somebody who holds what is derived; each call is another one. */
export const holding = (more: Partial<Holding> = {}): Holding => ({ holder: {}, outlives: false, ...more });

export function deriveConformance(name: string, make: () => Promise<DeriveUnderTest>): void {
  describe(`${name} derives`, () => {
    const text = async (machine: Machine, path: string): Promise<string> =>
      new TextDecoder().decode(await machine.read(path));
    const put = (machine: Machine, path: string, said: string): Promise<void> =>
      machine.write(path, new TextEncoder().encode(said));
    const opened = async (): Promise<DeriveUnderTest & { readonly derive: Derive }> => {
      const under = await make();
      const { derive } = under.machine;
      assert.ok(derive);
      return { ...under, derive };
    };

    it("a worktree: what is committed, in a directory of its own each time", async () => {
      const { machine, workdir, derive } = await opened();
      await put(machine, `${workdir}/a.txt`, "changed\n");
      await put(machine, `${workdir}/new.txt`, "new\n");
      const one = await derive.worktree(workdir, {});
      const other = await derive.worktree(workdir, { ref: "main" });
      assert.notEqual(one, other);
      for (const at of [one, other]) {
        assert.equal(await text(machine, `${at}/a.txt`), "a\n");
        assert.equal(await text(machine, `${at}/lib/b.txt`), "b\n");
        await assert.rejects(machine.read(`${at}/new.txt`));
      }
    });

    it("a worktree at a directory that is not there, or is empty", async () => {
      const { machine, workdir, derive } = await opened();
      assert.equal(await derive.worktree(workdir, { dir: `${workdir}/../beside` }), `${workdir}/../beside`);
      await machine.makeDirectory(`${workdir}/../empty`);
      await derive.worktree(workdir, { dir: `${workdir}/../empty` });
      assert.equal(await text(machine, `${workdir}/../empty/a.txt`), "a\n");
    });

    it("no worktree of what is in no repository, of a ref that is none, at a directory that is taken", async () => {
      const { machine, workdir, derive, bare } = await opened();
      await assert.rejects(async () => bare.machine.derive?.worktree(bare.workdir, {}), WorktreeError);
      for (const ref of ["nonsense", "", "--force", "-b", "HEAD:a.txt", "main..main"]) {
        await assert.rejects(derive.worktree(workdir, { ref }), WorktreeError, ref);
      }
      await put(machine, `${workdir}/../taken/file`, "mine");
      await assert.rejects(derive.worktree(workdir, { dir: `${workdir}/../taken` }), WorktreeError);
      assert.equal(await text(machine, `${workdir}/../taken/file`), "mine");
    });

    it("a copy: everything that is there, apart from what it is a copy of", async () => {
      const { machine, workdir, derive } = await opened();
      await put(machine, `${workdir}/new.txt`, "new\n");
      const copy = await derive.tempClone(workdir, "x", holding());
      assert.equal(await text(machine, `${copy}/lib/b.txt`), "b\n");
      assert.equal(await text(machine, `${copy}/new.txt`), "new\n");
      await put(machine, `${copy}/a.txt`, "changed\n");
      assert.equal(await text(machine, `${workdir}/a.txt`), "a\n");
    });

    it("a copy of what is in no repository", async () => {
      const { bare } = await opened();
      const copy = await bare.machine.derive?.tempClone(bare.workdir, "x", holding());
      assert.ok(await bare.machine.read(`${copy}/c.txt`));
    });

    it("the same copy to whoever holds it, and refuses it to everybody else until it is let go of", async () => {
      const { machine, workdir, derive } = await opened();
      const mine = holding();
      const copy = await derive.tempClone(workdir, "x", mine);
      await put(machine, `${copy}/mark`, "1");
      assert.equal(await derive.tempClone(workdir, "x", mine), copy);
      assert.equal(await text(machine, `${copy}/mark`), "1");
      await assert.rejects(derive.tempClone(workdir, "x", holding()), TempCloneBusy);
      await derive.release(mine.holder);
      const theirs = holding();
      assert.equal(await derive.tempClone(workdir, "x", theirs), copy);
      // Made anew: what was left there was nobody's.
      await assert.rejects(machine.read(`${copy}/mark`));
      await put(machine, `${copy}/mark`, "2");
      await derive.release(theirs.holder);
      assert.equal(await derive.tempClone(workdir, "x", holding({ earlier: copy })), copy);
      assert.equal(await text(machine, `${copy}/mark`), "2");
    });

    it("copies and scratch directories that are gone once destroyed, and only by who holds them", async () => {
      const { machine, workdir, derive } = await opened();
      const mine = holding();
      const copy = await derive.tempClone(workdir, "x", mine);
      const scratch = await derive.scratch(workdir, "x", mine);
      await derive.destroyTempClone(workdir, "x", {});
      await derive.destroyScratch(workdir, "x", {});
      assert.ok(await machine.isDirectory(copy));
      assert.ok(await machine.isDirectory(scratch));
      await derive.destroyTempClone(workdir, "x", mine.holder);
      await derive.destroyScratch(workdir, "x", mine.holder);
      assert.ok(!(await machine.isDirectory(copy)));
      assert.ok(!(await machine.isDirectory(scratch)));
      await derive.destroyTempClone(workdir, "x", mine.holder);
      await derive.destroyScratch(workdir, "never", mine.holder);
    });

    it("a scratch directory: empty, the same to who holds it, another to somebody else", async () => {
      const { machine, workdir, derive } = await opened();
      const mine = holding();
      const scratch = await derive.scratch(workdir, "x", mine);
      await put(machine, `${scratch}/mark`, "1");
      assert.equal(await derive.scratch(workdir, "x", mine), scratch);
      const other = await derive.scratch(workdir, "x", holding());
      assert.notEqual(other, scratch);
      await assert.rejects(machine.read(`${other}/mark`));
      await derive.release(mine.holder);
      assert.equal(await derive.scratch(workdir, "x", holding({ earlier: scratch })), scratch);
      assert.equal(await text(machine, `${scratch}/mark`), "1");
    });

    it("for ids of any text, each its own", async () => {
      const { machine, workdir, derive } = await opened();
      const ids = [
        "a",
        "A",
        "a/b",
        "a-b",
        "..",
        ".",
        "ü",
        "x".repeat(300),
        "x".repeat(301),
        "a.lock",
        "a~2",
        " ",
        "\n",
      ];
      const mine = holding();
      const made = new Set<string>();
      for (const id of ids) {
        const scratch = await derive.scratch(workdir, id, mine);
        assert.ok(await machine.isDirectory(scratch));
        made.add(scratch.toLowerCase());
      }
      assert.equal(made.size, ids.length);
    });

    it("a snapshot, which touches nothing, and takes the worktree back to it", async () => {
      const { machine, workdir, derive } = await opened();
      await put(machine, `${workdir}/a.txt`, "changed\n");
      await put(machine, `${workdir}/new.txt`, "new\n");
      await put(machine, `${workdir}/.hmz/flows/x.ts`, "mine");
      const ref = await derive.snapshot(workdir, "one");
      assert.equal(ref, "refs/hmz/snapshots/one");
      assert.equal(await text(machine, `${workdir}/a.txt`), "changed\n");
      await put(machine, `${workdir}/a.txt`, "again\n");
      await put(machine, `${workdir}/later.txt`, "later\n");
      await put(machine, `${workdir}/.hmz/flows/x.ts`, "still mine");
      await derive.rewind(workdir, ref);
      assert.equal(await text(machine, `${workdir}/a.txt`), "changed\n");
      assert.equal(await text(machine, `${workdir}/new.txt`), "new\n");
      assert.equal(await text(machine, `${workdir}/.hmz/flows/x.ts`), "still mine");
      await assert.rejects(machine.read(`${workdir}/later.txt`));
      await derive.rewind(workdir, "main");
      assert.equal(await text(machine, `${workdir}/a.txt`), "a\n");
      await assert.rejects(machine.read(`${workdir}/new.txt`));
      await derive.rewind(workdir, ref);
      assert.equal(await text(machine, `${workdir}/new.txt`), "new\n");
    });

    it("snapshots in their order, one of a name, with a name of its own where none is given", async () => {
      const { workdir, derive } = await opened();
      assert.deepEqual(await derive.snapshots(workdir), []);
      await derive.snapshot(workdir, "b/c");
      const named = await derive.snapshot(workdir, undefined);
      assert.match(named, /^refs\/hmz\/snapshots\/\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{4}$/);
      assert.equal(await derive.snapshot(workdir, "b/c"), "refs/hmz/snapshots/b/c");
      assert.deepEqual([...(await derive.snapshots(workdir))].sort(), [named, "refs/hmz/snapshots/b/c"].sort());
    });

    it("no snapshot of what is in no repository, of a name git refuses; no rewind to a ref that is none", async () => {
      const { workdir, derive, bare } = await opened();
      const at = bare.workdir;
      const cannot = bare.machine.derive;
      assert.ok(cannot);
      await assert.rejects(cannot.snapshot(at, "x"), (error) => isSaid(error, `could not snapshot ${at}: `));
      await assert.rejects(cannot.rewind(at, "x"), (error) => isSaid(error, `could not rewind ${at}: `));
      await assert.rejects(cannot.snapshots(at), (error) => isSaid(error, `could not list the snapshots of ${at}: `));
      for (const name of ["", "a b", "a..b", "a~", ".a", "a.lock", "a/", "a//b", "@{x}", "a\nb", "a:b"]) {
        await assert.rejects(derive.snapshot(workdir, name), (error) =>
          isSaid(error, `could not snapshot ${workdir}: `),
        );
      }
      for (const ref of ["", "-", "--hard", "nonsense", "refs/hmz/snapshots/none"]) {
        await assert.rejects(derive.rewind(workdir, ref), (error) => isSaid(error, `could not rewind ${workdir}: `));
      }
    });
  });
}

function isSaid(error: unknown, beginning: string): boolean {
  assert.ok(error instanceof RewindError);
  assert.ok(error.message.startsWith(beginning), error.message);
  assert.ok(error.message.length > beginning.length);
  return true;
}
