/** What a repository may be set to, what its person has in it, and what stops a rewind. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Derive } from "../../engine/ports.ts";
import { RewindError } from "../../flows/errors.ts";
import { locks } from "../../home/lock.ts";
import { git, put } from "../../../test/support/git.ts";
import { temporaryDirectory } from "../../../test/support/temporary.ts";
import { localMachine } from "../local.ts";

function repository(files: Readonly<Record<string, string>> = {}): { root: string; repo: string; derive: Derive } {
  const root = temporaryDirectory("snapshot");
  const repo = join(root, "repo");
  put(repo, { "a.txt": "a\n", "lib/b.txt": "b\n", ...files });
  git(repo, "init", "-q", "-b", "main");
  git(repo, "add", "-A");
  git(repo, "commit", "-qm", "one");
  const { derive } = localMachine({ derive: { envs: join(root, "envs"), locks } });
  assert.ok(derive);
  return { root, repo, derive };
}

const read = (repo: string, path: string): string => readFileSync(join(repo, path), "utf8");

test("files that were ignored are kept, though the rules that ignored them went or changed since", async () => {
  const { repo, derive } = repository({ ".gitignore": ".env\n", "lib/.gitignore": "out/\n" });
  put(repo, { ".env": "SECRET", "lib/out/x": "built" });
  const ref = await derive.snapshot(repo, "x");
  rmSync(join(repo, ".gitignore"));
  put(repo, { "lib/.gitignore": "nothing\n", "new.txt": "new" });
  git(repo, "add", "lib/.gitignore");
  await derive.rewind(repo, ref);
  assert.equal(read(repo, ".env"), "SECRET");
  assert.equal(read(repo, "lib/out/x"), "built");
  assert.equal(git(repo, "status", "--porcelain"), "");
});

test(".hmz and .humanize are the person's own, committed, ignored or neither", async () => {
  for (const ignored of ["", ".hmz/\n.humanize/\n"]) {
    const { repo, derive } = repository({ ".gitignore": ignored });
    put(repo, { ".hmz/f.ts": "1", ".humanize/g": "1" });
    const ref = await derive.snapshot(repo, "x");
    assert.ok(!git(repo, "ls-tree", "-r", "--name-only", ref).includes(".h"));
    put(repo, { ".hmz/f.ts": "2", ".hmz/later.ts": "2" });
    rmSync(join(repo, ".humanize"), { recursive: true });
    await derive.rewind(repo, ref);
    assert.equal(read(repo, ".hmz/f.ts"), "2");
    assert.ok(existsSync(join(repo, ".hmz/later.ts")));
    assert.ok(!existsSync(join(repo, ".humanize")));
  }
  const { repo, derive } = repository({ ".hmz/f.ts": "1", ".hmz/other.ts": "1" });
  put(repo, { ".hmz/f.ts": "2", "a.txt": "two\n" });
  git(repo, "commit", "-qam", "two");
  put(repo, { ".hmz/f.ts": "3" });
  const ref = await derive.snapshot(repo, "x");
  assert.ok(!git(repo, "ls-tree", "-r", "--name-only", ref).includes(".hmz"));
  put(repo, { ".hmz/f.ts": "4", "a.txt": "ruined" });
  await derive.rewind(repo, ref);
  assert.equal(read(repo, ".hmz/f.ts"), "4");
  assert.equal(read(repo, "a.txt"), "two\n");
  // Another commit's files come, but over none that is there.
  rmSync(join(repo, ".hmz/other.ts"));
  await derive.rewind(repo, "HEAD~1");
  assert.equal(read(repo, ".hmz/f.ts"), "4");
  assert.equal(read(repo, ".hmz/other.ts"), "1");
  assert.equal(git(repo, "status", "--porcelain"), " M .hmz/f.ts\n");
});

test("line ends that git would refuse, submodules that it would enter, variables that name another repository", async () => {
  const { root, repo, derive } = repository();
  const other = repository();
  git(repo, "config", "core.autocrlf", "input");
  git(repo, "config", "core.safecrlf", "true");
  git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.repo, "sub");
  git(repo, "commit", "-qm", "sub");
  git(repo, "config", "submodule.recurse", "true");
  put(repo, { "crlf.txt": "one\r\ntwo\r\n", "sub/dirty.txt": "dirty" });
  const ref = await derive.snapshot(repo, "x");
  put(repo, { "later.txt": "later" });
  await derive.rewind(repo, ref);
  assert.ok(!existsSync(join(repo, "later.txt")));
  assert.equal(read(repo, "crlf.txt"), "one\r\ntwo\r\n");
  assert.equal(read(repo, "sub/dirty.txt"), "dirty");
  assert.equal(git(join(repo, "sub"), "rev-parse", "HEAD"), git(other.repo, "rev-parse", "HEAD"));
  assert.ok(!existsSync(join(root, "envs")));
});

test("names that git refuses, names that stand in the way of each other, a bare repository", async () => {
  const { root, repo, derive } = repository();
  await derive.snapshot(repo, "a");
  await assert.rejects(derive.snapshot(repo, "a/b"), {
    name: "RewindError",
    message: /^could not snapshot .*: cannot lock ref 'refs\/hmz\/snapshots\/a\/b'/,
  });
  await assert.rejects(derive.snapshot(repo, "../../heads/main"), RewindError);
  await assert.rejects(derive.snapshot(repo, "a\0b"), RewindError);
  git(root, "clone", "-q", "--bare", repo, "bare.git");
  await assert.rejects(derive.snapshot(join(root, "bare.git"), "x"), {
    message: `could not snapshot ${join(root, "bare.git")}: this operation must be run in a work tree`,
  });
  await assert.rejects(derive.snapshots(join(root, "nowhere")), RewindError);
});

test("ordered by second, then by name; one that is replaced is where it was replaced", async () => {
  const { repo, derive } = repository();
  for (const [name, when] of [
    ["b", 100],
    ["c", 50],
    ["a", 100],
  ] as const) {
    const ref = await derive.snapshot(repo, name);
    const date = `@${when + 1_000_000_000} +0000`;
    process.env["GIT_COMMITTER_DATE"] = date;
    await derive.snapshot(repo, name);
    delete process.env["GIT_COMMITTER_DATE"];
    assert.equal(ref, `refs/hmz/snapshots/${name}`);
  }
  assert.deepEqual(
    await derive.snapshots(repo),
    ["c", "a", "b"].map((name) => `refs/hmz/snapshots/${name}`),
  );
});

test("a lock of another git is waited for before a file is touched", async () => {
  const { repo, derive } = repository();
  const ref = await derive.snapshot(repo, "x");
  put(repo, { "a.txt": "changed" });
  const lock = join(repo, ".git/index.lock");
  writeFileSync(lock, "");
  const rewound = derive.rewind(repo, ref);
  setTimeout(() => rmSync(lock), 150);
  await rewound;
  assert.equal(read(repo, "a.txt"), "a\n");
});

test("what a killed run left of its index goes after a day, and a fresh one stays", async () => {
  const { repo, derive } = repository();
  put(join(repo, ".git"), { "hmz-old.index": "", "hmz-old.index.lock": "", "hmz-new.index": "" });
  for (const name of ["hmz-old.index", "hmz-old.index.lock"]) utimesSync(join(repo, ".git", name), 1, 1);
  await derive.snapshot(repo, "x");
  assert.deepEqual(
    readdirSync(join(repo, ".git")).filter((name) => name.startsWith("hmz-")),
    ["hmz-new.index"],
  );
});

test("a rewind that is killed in the middle is done again by the next", async () => {
  const { root, repo, derive } = repository({ "b.txt": "b\n", "z.txt": "z\n" });
  const ref = await derive.snapshot(repo, "x");
  git(repo, "rm", "-q", "-r", "a.txt", "z.txt");
  put(repo, { "lib/b.txt": "two\n", "later.txt": "later" });
  git(repo, "add", "-A");
  git(repo, "commit", "-qm", "two");
  const head = git(repo, "rev-parse", "HEAD");
  // The files come back through a filter that waits.
  writeFileSync(join(repo, ".git/info/attributes"), "*.txt filter=slow\n");
  git(repo, "config", "filter.slow.smudge", `if [ -e ${root}/wait ]; then touch ${root}/begun; sleep 60; fi; cat`);
  writeFileSync(join(root, "wait"), "");
  const script = `
    import { localMachine } from ${JSON.stringify(new URL("../local.ts", import.meta.url).href)};
    import { locks } from ${JSON.stringify(new URL("../../home/lock.ts", import.meta.url).href)};
    const { derive } = localMachine({ derive: { envs: ${JSON.stringify(join(root, "envs"))}, locks } });
    await derive.rewind(${JSON.stringify(repo)}, ${JSON.stringify(ref)});
  `;
  const child = spawn(process.execPath, ["--conditions=hmz-source", "--input-type=module", "-e", script]);
  while (!existsSync(join(root, "begun"))) await new Promise((resolve) => setTimeout(resolve, 20));
  child.kill("SIGKILL");
  await once(child, "exit");
  rmSync(join(root, "wait"));
  assert.equal(git(repo, "rev-parse", "HEAD"), head);
  await derive.rewind(repo, ref);
  assert.equal(git(repo, "status", "--porcelain"), "");
  assert.equal(read(repo, "z.txt"), "z\n");
  assert.ok(!existsSync(join(repo, "later.txt")));
  assert.deepEqual(await derive.snapshots(repo), [ref]);
});
