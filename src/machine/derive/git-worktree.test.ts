/** What only real repositories show: linked worktrees, merges, nested repositories, many at once. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Derive } from "../../engine/ports.ts";
import { EnvError, RewindError, WorktreeError } from "../../flows/errors.ts";
import { locks } from "../../home/lock.ts";
import { holding } from "../../../test/conformance/derive.ts";
import { git, put } from "../../../test/support/git.ts";
import { temporaryDirectory } from "../../../test/support/temporary.ts";
import { localMachine } from "../local.ts";

interface Repository {
  readonly root: string;
  readonly repo: string;
  readonly derive: Derive;
}

function repository(options: { readonly files?: number; readonly envs?: string } = {}): Repository {
  const root = temporaryDirectory("worktree");
  const repo = join(root, "repo");
  const many = Object.fromEntries(
    Array.from({ length: options.files ?? 0 }, (_, index) => [`src/${index % 40}/f${index}.txt`, `${index}\n`]),
  );
  put(repo, { "a.txt": "a\n", "lib/b.txt": "b\n", ".gitignore": "ignored/\n*.log\n", ...many });
  git(repo, "init", "-q", "-b", "main");
  git(repo, "add", "-A");
  git(repo, "commit", "-qm", "one");
  const { derive } = localMachine({ derive: { envs: options.envs ?? join(root, "envs"), locks } });
  assert.ok(derive);
  return { root, repo, derive };
}

/** What git says of a worktree: HEAD, its branch, the index and the files. */
function standing(repo: string): Readonly<Record<string, string>> {
  const tried = (...args: readonly string[]): string => {
    try {
      return git(repo, ...args);
    } catch (error) {
      return String((error as { status: unknown }).status);
    }
  };
  return {
    head: tried("rev-parse", "HEAD"),
    branch: tried("symbolic-ref", "HEAD"),
    staged: tried("ls-files", "-s"),
    status: tried("status", "--porcelain=v1", "--ignored", "--untracked-files=all"),
  };
}

describe("worktrees", () => {
  it("16 at once in a repository of 2,000 files: all there, none left over (hazard 39)", async () => {
    const { repo, derive } = repository({ files: 2_000 });
    const made = await Promise.all(Array.from({ length: 16 }, () => derive.worktree(repo, {})));
    assert.equal(new Set(made).size, 16);
    for (const at of made) {
      assert.equal(git(at, "status", "--porcelain"), "");
      assert.equal(readFileSync(join(at, "src/7/f7.txt"), "utf8"), "7\n");
      assert.throws(() => git(at, "symbolic-ref", "-q", "HEAD"));
    }
    assert.equal(git(repo, "branch", "--list").trim(), "* main");
    assert.equal(git(repo, "worktree", "list").trim().split("\n").length, 17);
  });

  it("leaves no directory, no branch and no note of git's where one cannot be made", async () => {
    const { root, repo, derive } = repository();
    // A checkout that fails in the middle: the object of a file is not there.
    const [, , object = ""] = git(repo, "ls-tree", "HEAD", "a.txt").split(/\s+/);
    rmSync(join(repo, ".git", "objects", object.slice(0, 2), object.slice(2)));
    await assert.rejects(derive.worktree(repo, {}), WorktreeError);
    await assert.rejects(derive.worktree(repo, { dir: join(root, "there") }), WorktreeError);
    assert.ok(!existsSync(join(root, "there")));
    assert.equal(git(repo, "worktree", "list").trim().split("\n").length, 1);
    assert.deepEqual(
      readdirSync(join(root, "envs")).flatMap((name) => left(join(root, "envs", name))),
      [],
    );
  });

  it("of a directory within the repository, and of a worktree of it, is of the same repository", async () => {
    const { repo, derive } = repository();
    const one = await derive.worktree(join(repo, "lib"), {});
    assert.ok(existsSync(join(one, "a.txt")));
    const two = await derive.worktree(one, {});
    assert.equal(git(two, "rev-parse", "HEAD"), git(repo, "rev-parse", "HEAD"));
    assert.equal(git(repo, "worktree", "list").trim().split("\n").length, 3);
  });

  it("is of the workdir's repository, whatever git's variables in hmz's own environment name", async () => {
    const { repo, derive } = repository();
    const other = repository();
    process.env["GIT_DIR"] = join(other.repo, ".git");
    process.env["GIT_INDEX_FILE"] = join(other.repo, ".git", "elsewhere");
    try {
      await derive.worktree(repo, {});
      await derive.snapshot(repo, "x");
    } finally {
      delete process.env["GIT_DIR"];
      delete process.env["GIT_INDEX_FILE"];
    }
    assert.equal(git(other.repo, "worktree", "list").trim().split("\n").length, 1);
    assert.equal(git(repo, "worktree", "list").trim().split("\n").length, 2);
  });
});

function left(directory: string): readonly string[] {
  return statSync(directory).isDirectory() ? readdirSync(join(directory, "worktrees")) : [];
}

describe("copies", () => {
  it("keep modes, links, times and what git ignores", async () => {
    const { repo, derive } = repository();
    put(repo, {
      "ignored/build.o": "built",
      "run.sh": "#!/bin/sh\n",
      broken: { link: "nowhere" },
      "to-a": { link: "a.txt" },
    });
    execFileSync("chmod", ["750", join(repo, "run.sh")]);
    execFileSync("mkfifo", [join(repo, "pipe")]);
    symlinkSync("/etc", join(repo, "etc"));
    utimesSync(join(repo, "a.txt"), 1_000_000, 1_000_000);
    const copy = await derive.tempClone(repo, "x", holding());
    assert.equal(readFileSync(join(copy, "ignored/build.o"), "utf8"), "built");
    assert.equal(statSync(join(copy, "run.sh")).mode & 0o777, 0o750);
    assert.ok(lstatSync(join(copy, "broken")).isSymbolicLink());
    assert.ok(lstatSync(join(copy, "etc")).isSymbolicLink());
    assert.ok(lstatSync(join(copy, "pipe")).isFIFO());
    assert.equal(statSync(join(copy, "a.txt")).mtimeMs, 1_000_000_000);
    assert.equal(standing(copy)["staged"], standing(repo)["staged"]);
    git(copy, "checkout", "-q", "-b", "elsewhere");
    assert.equal(git(repo, "branch", "--list").trim(), "* main");
  });

  it("of a linked worktree are worktrees of their own, as it stands: git in one leaves the other alone", async () => {
    const { root, repo, derive } = repository();
    const linked = join(root, "linked");
    git(repo, "worktree", "add", "-q", "-b", "side", linked);
    put(linked, { "staged.txt": "staged\n", "a.txt": "staged too\n" });
    git(linked, "add", "-A");
    put(linked, { "a.txt": "and changed again\n", "untracked.txt": "untracked\n", "ignored/x": "ignored" });
    rmSync(join(linked, "lib/b.txt"));
    const before = standing(linked);
    const mine = holding();
    const copy = await derive.tempClone(linked, "x", mine);
    assert.deepEqual(standing(linked), before);
    const stands = standing(copy);
    assert.equal(stands["head"], before["head"]);
    assert.equal(stands["staged"], before["staged"]);
    assert.equal(stands["status"], before["status"]);
    git(copy, "checkout", "-q", "--detach");
    git(copy, "commit", "-qam", "in the copy");
    git(copy, "checkout", "-q", "-b", "copied");
    assert.deepEqual({ ...standing(linked), branch: "" }, { ...before, branch: "" });
    assert.equal(git(linked, "symbolic-ref", "HEAD").trim(), "refs/heads/side");
    await derive.destroyTempClone(linked, "x", mine.holder);
    assert.ok(!existsSync(copy));
    assert.equal(git(repo, "worktree", "list").trim().split("\n").length, 2);
  });

  it("of a workdir that holds what is derived do not hold themselves", async () => {
    const root = temporaryDirectory("holds");
    put(root, { "work/a.txt": "a", "work/.home/settings": "s", "work/.home/envs/other/x": "x" });
    const { derive } = localMachine({ derive: { envs: join(root, "work/.home/envs"), locks } });
    assert.ok(derive);
    const copy = await derive.tempClone(join(root, "work"), "x", holding());
    assert.equal(readFileSync(join(copy, "a.txt"), "utf8"), "a");
    assert.equal(readFileSync(join(copy, ".home/settings"), "utf8"), "s");
    assert.ok(!existsSync(join(copy, ".home/envs")));
  });

  it("leave nothing where one cannot be made", async () => {
    const { root, derive } = repository();
    await assert.rejects(derive.tempClone(join(root, "nowhere"), "x", holding()), EnvError);
    const files = execFileSync("find", [join(root, "envs"), "-type", "f"], { encoding: "utf8" });
    assert.equal(files, "");
    // And the id is free again.
    put(root, { "nowhere/a": "a" });
    assert.ok(await derive.tempClone(join(root, "nowhere"), "x", holding()));
  });
});

describe("snapshots", () => {
  /** Takes a snapshot, lets `ruin` do its worst, and rewinds to it. */
  const restored = async (repo: string, derive: Derive, ruin: () => void): Promise<void> => {
    const before = standing(repo);
    const ref = await derive.snapshot(repo, "it");
    assert.deepEqual(standing(repo), before);
    ruin();
    await derive.rewind(repo, ref);
    assert.deepEqual(standing(repo), before);
  };

  it("hold HEAD, the index and the files, each on its own", async () => {
    const { repo, derive } = repository();
    put(repo, { "a.txt": "staged\n", "new.txt": "added\n" });
    git(repo, "add", "-A");
    put(repo, { "a.txt": "changed since\n", "untracked/deep.txt": "untracked\n", "ignored/x": "1", "x.log": "2" });
    await restored(repo, derive, () => {
      git(repo, "commit", "-qam", "two");
      git(repo, "rm", "-q", "-r", "lib");
      put(repo, { "later/file.txt": "later", "a.txt": "ruined", "ignored/x": "3" });
      rmSync(join(repo, "untracked"), { recursive: true });
    });
    assert.equal(readFileSync(join(repo, "a.txt"), "utf8"), "changed since\n");
    assert.equal(readFileSync(join(repo, "ignored/x"), "utf8"), "3");
    assert.ok(!existsSync(join(repo, "later")));
  });

  it("move the branch that is checked out, and no other", async () => {
    const { repo, derive } = repository();
    await restored(repo, derive, () => git(repo, "commit", "-q", "--allow-empty", "-m", "two"));
    const ref = await derive.snapshot(repo, "main");
    git(repo, "checkout", "-q", "-b", "side");
    git(repo, "commit", "-q", "--allow-empty", "-m", "three");
    const main = git(repo, "rev-parse", "main");
    await derive.rewind(repo, ref);
    assert.equal(git(repo, "symbolic-ref", "HEAD").trim(), "refs/heads/side");
    assert.equal(git(repo, "rev-parse", "side"), main);
  });

  it("work on a detached HEAD, in a linked worktree, from a directory within", async () => {
    const { root, repo, derive } = repository();
    const linked = join(root, "linked");
    git(repo, "worktree", "add", "-q", "--detach", linked);
    put(linked, { "lib/b.txt": "changed\n" });
    const ref = await derive.snapshot(join(linked, "lib"), "x");
    git(linked, "commit", "-qam", "two");
    await derive.rewind(join(linked, "lib"), ref);
    assert.equal(git(linked, "status", "--porcelain").trim(), "M lib/b.txt");
    assert.equal(git(linked, "rev-parse", "HEAD"), git(repo, "rev-parse", "HEAD"));
    // Shared by every worktree of the repository.
    assert.deepEqual(await derive.snapshots(repo), [ref]);
  });

  it("work before the first commit, and go back to before it", async () => {
    const root = temporaryDirectory("unborn");
    const repo = join(root, "repo");
    put(repo, { "a.txt": "a\n" });
    git(repo, "init", "-q", "-b", "main");
    const { derive } = localMachine({ derive: { envs: join(root, "envs"), locks } });
    assert.ok(derive);
    const ref = await derive.snapshot(repo, "x");
    git(repo, "add", "-A");
    git(repo, "commit", "-qm", "one");
    await derive.rewind(repo, ref);
    assert.equal(git(repo, "status", "--porcelain").trim(), "?? a.txt");
    assert.throws(() => git(repo, "rev-parse", "--verify", "-q", "HEAD"));
    git(repo, "add", "-A");
    git(repo, "commit", "-qm", "one again");
    git(repo, "checkout", "-q", "--detach");
    const before = standing(repo);
    await assert.rejects(derive.rewind(repo, ref), RewindError);
    assert.deepEqual(standing(repo), before);
  });

  it("abandon a merge, a cherry-pick and a revert that are under way", async () => {
    for (const start of ["merge", "cherry-pick", "revert"]) {
      const { repo, derive } = repository();
      git(repo, "checkout", "-q", "-b", "side");
      put(repo, { "a.txt": "side\n" });
      git(repo, "commit", "-qam", "side");
      git(repo, "checkout", "-q", "main");
      put(repo, { "a.txt": "main\n" });
      git(repo, "commit", "-qam", "main");
      put(repo, { "a.txt": "main too\n" });
      git(repo, "commit", "-qam", "main too");
      const ref = await derive.snapshot(repo, "x");
      const before = standing(repo);
      assert.throws(() => git(repo, start, start === "revert" ? "HEAD~1" : "side"), start);
      // One may be taken in the middle of it, too.
      await derive.snapshot(repo, "middle");
      await derive.rewind(repo, ref);
      assert.deepEqual(standing(repo), before, start);
      assert.ok(!existsSync(join(repo, ".git", "MERGE_HEAD")), start);
      git(repo, "commit", "-q", "--allow-empty", "-m", "goes on");
      await derive.rewind(repo, "refs/hmz/snapshots/middle");
      assert.match(readFileSync(join(repo, "a.txt"), "utf8"), /<<<<<<</, start);
    }
  });

  it("remove repositories that came into the worktree since, and keep those that were there", async () => {
    const { repo, derive } = repository();
    const nested = (name: string, commits: boolean): void => {
      put(repo, { [`${name}/n.txt`]: name });
      git(join(repo, name), "init", "-q");
      if (!commits) return;
      git(join(repo, name), "add", "-A");
      git(join(repo, name), "commit", "-qm", name);
    };
    nested("was", true);
    const ref = await derive.snapshot(repo, "x");
    nested("came", true);
    nested("bare", false);
    await derive.snapshot(repo, "y");
    await derive.rewind(repo, ref);
    assert.ok(existsSync(join(repo, "was/n.txt")));
    assert.ok(!existsSync(join(repo, "came")));
    assert.ok(!existsSync(join(repo, "bare")));
  });

  it("rewind to any commit, with its files and a matching index", async () => {
    const { repo, derive } = repository();
    put(repo, { "a.txt": "two\n", "two.txt": "2" });
    git(repo, "add", "-A");
    git(repo, "commit", "-qm", "two");
    git(repo, "tag", "two");
    put(repo, { "a.txt": "dirty\n", "untracked.txt": "u" });
    await derive.rewind(repo, "HEAD~1");
    assert.equal(git(repo, "status", "--porcelain"), "");
    assert.ok(!existsSync(join(repo, "two.txt")));
    assert.ok(!existsSync(join(repo, "untracked.txt")));
    await derive.rewind(repo, "two");
    assert.equal(readFileSync(join(repo, "a.txt"), "utf8"), "two\n");
    assert.equal(git(repo, "symbolic-ref", "HEAD").trim(), "refs/heads/main");
  });

  it("run no hook of the repository's, and leave no file of their own", async () => {
    const { root, repo, derive } = repository();
    for (const hook of ["post-checkout", "reference-transaction", "pre-commit", "post-index-change"]) {
      const path = join(repo, ".git/hooks", hook);
      writeFileSync(path, `#!/bin/sh\necho ${hook} >> ${root}/ran\n`, { mode: 0o755 });
    }
    const before = readdirSync(join(repo, ".git")).sort();
    const ref = await derive.snapshot(repo, "x");
    put(repo, { "a.txt": "ruined" });
    await derive.rewind(repo, ref);
    assert.ok(!existsSync(join(root, "ran")));
    const after = readdirSync(join(repo, ".git")).sort();
    assert.deepEqual(
      after.filter((name) => !["ORIG_HEAD", "logs"].includes(name)),
      before.filter((name) => name !== "logs"),
    );
  });

  it("do not break an index that is split, or a checkout that is sparse", async () => {
    const { repo, derive } = repository({ files: 50 });
    git(repo, "update-index", "--split-index");
    put(repo, { "a.txt": "changed\n" });
    await restored(repo, derive, () => git(repo, "commit", "-qam", "two"));
    const sparse = repository({ files: 50 });
    git(sparse.repo, "sparse-checkout", "set", "lib");
    put(sparse.repo, { "lib/b.txt": "changed\n" });
    await restored(sparse.repo, sparse.derive, () => git(sparse.repo, "commit", "-qam", "two"));
    assert.ok(!existsSync(join(sparse.repo, "src")));
  });
});
