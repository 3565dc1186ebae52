/** Copies of what is not a plain directory. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import type { Derive } from "../../engine/ports.ts";
import { EnvError, TempCloneBusy } from "../../flows/errors.ts";
import { locks } from "../../home/lock.ts";
import { holding } from "../../../test/conformance/derive.ts";
import { git, put } from "../../../test/support/git.ts";
import { temporaryDirectory } from "../../../test/support/temporary.ts";
import { localMachine } from "../local.ts";

function made(envs?: string): { root: string; work: string; derive: Derive } {
  const root = temporaryDirectory("temp-clone");
  const work = join(root, "work");
  put(work, { "a.txt": "a\n", "lib/b.txt": "b\n" });
  const { derive } = localMachine({ derive: { envs: envs ?? join(root, "envs"), locks } });
  assert.ok(derive);
  return { root, work, derive };
}

function committed(work: string): void {
  git(work, "init", "-q", "-b", "main");
  git(work, "add", "-A");
  git(work, "commit", "-qm", "one");
}

test("lie where the workdir and the id say, in directories that are one's own", async () => {
  const { root, work, derive } = made();
  const long = join(root, "a workdir ü of more than thirty-two characters");
  put(long, { a: "a" });
  const copy = await derive.tempClone(long, "an/id", holding());
  assert.match(copy.slice(join(root, "envs").length), /^\/[\w.-]{1,32}-[0-9a-f]{12}\/clones\/an-id-[0-9a-f]{12}$/);
  assert.equal(statSync(join(root, "envs")).mode & 0o777, 0o700);
  const scratch = await derive.scratch(work, "x", holding());
  assert.match(scratch.slice(join(root, "envs").length), /^\/work-[0-9a-f]{12}\/scratch\/x$/);
  // An id that looks like what another id is written as.
  const mine = holding();
  const one = await derive.tempClone(work, "A", mine);
  assert.notEqual(await derive.tempClone(work, one.slice(one.lastIndexOf("/") + 1), mine), one);
});

test("of a link to a directory are of the directory", async () => {
  const { root, work, derive } = made();
  symlinkSync(work, join(root, "link"));
  const copy = await derive.tempClone(join(root, "link"), "x", holding());
  assert.ok(!lstatSync(copy).isSymbolicLink());
  put(copy, { "a.txt": "changed" });
  assert.equal(readFileSync(join(work, "a.txt"), "utf8"), "a\n");
});

test("hold sockets, and what does not let itself be removed goes all the same", async (t) => {
  const { work, derive } = made();
  const server = createServer().listen(join(work, "socket"));
  t.after(() => server.close());
  mkdirSync(join(work, "cache/deep"), { recursive: true });
  put(work, { "cache/deep/module.go": "x" });
  chmodSync(join(work, "cache/deep"), 0o555);
  chmodSync(work, 0o711);
  const mine = holding();
  const copy = await derive.tempClone(work, "x", mine);
  assert.equal(statSync(copy).mode & 0o777, 0o711);
  assert.equal(statSync(join(copy, "cache/deep")).mode & 0o777, 0o555);
  await derive.destroyTempClone(work, "x", mine.holder);
  assert.ok(!existsSync(copy));
  chmodSync(join(work, "cache/deep"), 0o755);
});

test("asked for twice at once by who holds it are one, and another's is refused meanwhile", async () => {
  const { work, derive } = made();
  const mine = holding();
  const first = derive.tempClone(work, "x", mine);
  const again = derive.tempClone(work, "x", mine);
  await assert.rejects(derive.tempClone(work, "x", holding()), TempCloneBusy);
  assert.equal(await first, await again);
  const scratch = [
    derive.scratch(work, "x", mine),
    derive.scratch(work, "x", mine),
    derive.scratch(work, "x", holding()),
  ];
  const [one, two, three] = await Promise.all(scratch);
  assert.equal(one, two);
  assert.notEqual(one, three);
});

test("are an EnvError where what holds them cannot be made", async () => {
  const root = temporaryDirectory("temp-clone");
  put(root, { envs: "a file", "work/a": "a" });
  const { derive } = localMachine({ derive: { envs: join(root, "envs"), locks } });
  assert.ok(derive);
  await assert.rejects(derive.tempClone(join(root, "work"), "x", holding()), EnvError);
  await assert.rejects(derive.scratch(join(root, "work"), "x", holding()), { name: "ScratchError" });
  await assert.rejects(derive.worktree(join(root, "work"), {}), { name: "WorktreeError" });
});

test("of a workdir that holds hmz's home by way of a link do not hold themselves", async () => {
  const root = temporaryDirectory("temp-clone");
  put(root, { "work/a.txt": "a", "work/.git/HEAD": "x", "work/.home/x y/envs/old": "old", "work/.home/x y/b": "b" });
  symlinkSync(join(root, "work/.home"), join(root, "home"));
  const { derive } = localMachine({ derive: { envs: join(root, "home/x y/envs"), locks } });
  assert.ok(derive);
  const copy = await derive.tempClone(join(root, "work"), "x", holding());
  for (const path of ["a.txt", ".git/HEAD", ".home/x y/b"]) assert.ok(existsSync(join(copy, path)), path);
  assert.ok(!existsSync(join(copy, ".home/x y/envs")));
});

test("of a repository forget its worktrees, and have those within it as their own", async () => {
  const { root, work, derive } = made();
  committed(work);
  git(work, "worktree", "add", "-q", "-b", "away", join(root, "away"));
  git(work, "worktree", "add", "-q", "-b", "within", join(work, "trees/within"));
  const copy = await derive.tempClone(work, "x", holding());
  assert.deepEqual(
    git(copy, "worktree", "list", "--porcelain").match(/^worktree .*$/gm),
    [copy, join(copy, "trees/within")].map((path) => `worktree ${path}`),
  );
  git(join(copy, "trees/within"), "checkout", "-q", "-b", "moved");
  assert.equal(git(join(work, "trees/within"), "symbolic-ref", "HEAD").trim(), "refs/heads/within");
  assert.equal(git(join(root, "away"), "symbolic-ref", "HEAD").trim(), "refs/heads/away");
  assert.equal(git(work, "worktree", "list").trim().split("\n").length, 3);
});

test("of a linked worktree: many at once, its index split, and of a directory within it", async () => {
  const { root, work, derive } = made();
  committed(work);
  const linked = join(root, "linked");
  git(work, "worktree", "add", "-q", "--detach", linked);
  git(linked, "update-index", "--split-index");
  put(linked, { "a.txt": "staged\n", "lib/b.txt": "changed\n" });
  git(linked, "add", "a.txt");
  const copies = await Promise.all(Array.from({ length: 8 }, (_, at) => derive.tempClone(linked, `${at}`, holding())));
  for (const copy of copies) assert.equal(git(copy, "status", "--porcelain"), "M  a.txt\n M lib/b.txt\n");
  const within = await derive.tempClone(join(linked, "lib"), "x", holding());
  assert.equal(readFileSync(join(within, "b.txt"), "utf8"), "changed\n");
  assert.equal(git(work, "worktree", "list").trim().split("\n").length, 10);
});

test("need no git but for a linked worktree", async (t) => {
  const { root, work, derive } = made();
  committed(work);
  const bin = join(root, "bin");
  mkdirSync(bin);
  for (const program of ["env", "sh", "cp", "rm", "mv", "mkdir", "uname"]) {
    symlinkSync(execFileSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim(), join(bin, program));
  }
  const path = process.env["PATH"];
  process.env["PATH"] = bin;
  t.after(() => (process.env["PATH"] = path));
  const machine = localMachine({ derive: { envs: join(root, "envs"), locks } });
  assert.deepEqual([...machine.serves].sort(), ["files", "scratch", "shell", "temp_clone"]);
  assert.equal(machine.lacks?.("git"), "git needs git on the machine's PATH, and it has none");
  assert.equal(machine.lacks?.("worktree"), "worktree needs git on the machine's PATH, and it has none");
  assert.equal(machine.lacks?.("bash"), "bash needs bash on the machine's PATH, and it has none");
  assert.equal(machine.lacks?.("scratch"), undefined);
  const copy = await derive.tempClone(work, "x", holding());
  assert.ok(existsSync(join(copy, ".git/HEAD")));
  await assert.rejects(derive.snapshot(work, "x"), { name: "RewindError", message: /^could not snapshot .*: .*git/ });
  rmSync(copy, { recursive: true });
});
