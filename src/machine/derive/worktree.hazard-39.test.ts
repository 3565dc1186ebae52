/** Many worktrees at once, those that fail, and those that a killed run was making. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { WorktreeError } from "../../flows/errors.ts";
import { isHeld, locks } from "../../home/lock.ts";
import { git, put } from "../../../test/support/git.ts";
import { temporaryDirectory } from "../../../test/support/temporary.ts";
import { localMachine, sweepLocal } from "../local.ts";
import { deriving } from "./index.ts";

function repository() {
  const root = temporaryDirectory("hazard-39");
  const repo = join(root, "repo");
  const envs = join(root, "envs");
  put(repo, { "a.txt": "a\n" });
  git(repo, "init", "-q", "-b", "main");
  git(repo, "add", "-A");
  git(repo, "commit", "-qm", "one");
  const machine = localMachine({ derive: { envs, locks } });
  assert.ok(machine.derive);
  return { root, repo, envs, machine, derive: machine.derive };
}

const worktrees = (repo: string): number => git(repo, "worktree", "list").trim().split("\n").length;

test("two at one directory: one is made, and the other leaves it alone", async () => {
  const { root, repo, derive } = repository();
  const dir = join(root, "there");
  const made = await Promise.allSettled([derive.worktree(repo, { dir }), derive.worktree(repo, { dir })]);
  assert.deepEqual(made.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  assert.equal(git(dir, "status", "--porcelain"), "");
  assert.equal(worktrees(repo), 2);
});

test("what git notes of another worktree stays, whatever is refused", async () => {
  const { root, repo, derive } = repository();
  const away = join(root, "away");
  git(repo, "worktree", "add", "-q", "--detach", away);
  git(repo, "worktree", "lock", away);
  // On a drive that is not there at the moment.
  rmSync(away, { recursive: true });
  await assert.rejects(derive.worktree(repo, { dir: away }), WorktreeError);
  assert.equal(worktrees(repo), 2);
  assert.ok(existsSync(join(repo, ".git/worktrees/away/HEAD")));
});

test("git is asked again while another git has a lock, and not for ever", async (t) => {
  const { repo, envs, machine } = repository();
  let left = 3;
  let asked = 0;
  const derive = deriving({
    envs,
    locks,
    run: async (argv, cwd) => {
      if (!argv.some((word) => word.includes("git worktree add"))) return machine.exec(argv, { cwd, timeout: 0 });
      asked++;
      if (left-- > 0) {
        return { status: 128, stdout: "", stderr: `fatal: Unable to create '${repo}/.git/x.lock': File exists.\n` };
      }
      return machine.exec(argv, { cwd, timeout: 0 });
    },
  });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const ticking = async <T>(work: Promise<T>): Promise<T> => {
    const state = { over: false };
    const end = work.finally(() => (state.over = true));
    end.catch(() => {});
    while (!state.over) {
      t.mock.timers.tick(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return end;
  };
  assert.ok(existsSync(join(await ticking(derive.worktree(repo, {})), "a.txt")));
  assert.equal(asked, 4);
  left = Infinity;
  await assert.rejects(ticking(derive.worktree(repo, {})), { name: "WorktreeError", message: /x\.lock': File exists/ });
});

test("a hook that fails leaves nothing, an empty directory stays", async () => {
  const { root, repo, derive } = repository();
  writeFileSync(join(repo, ".git/hooks/post-checkout"), "#!/bin/sh\necho no >&2\nexit 1\n", { mode: 0o755 });
  mkdirSync(join(root, "empty"));
  await assert.rejects(derive.worktree(repo, { dir: join(root, "empty") }), { name: "WorktreeError", message: /no$/ });
  assert.deepEqual(readdirSync(join(root, "empty")), []);
  assert.equal(worktrees(repo), 1);
});

test("of a bare repository, and of none: before its first commit, of a directory that is not there", async () => {
  const { root, repo, derive } = repository();
  git(root, "clone", "-q", "--bare", repo, "bare.git");
  assert.equal(readFileSync(join(await derive.worktree(join(root, "bare.git"), {}), "a.txt"), "utf8"), "a\n");
  git(root, "init", "-q", "unborn");
  await assert.rejects(derive.worktree(join(root, "unborn"), {}), WorktreeError);
  await assert.rejects(derive.worktree(join(root, "nowhere"), {}), WorktreeError);
});

test("processes wait for one another, and one that is killed in the middle leaves nothing after a sweep", async () => {
  const { root, repo, envs, derive } = repository();
  // The checkout waits in a filter for as long as the file is there.
  writeFileSync(join(repo, ".git/info/attributes"), "a.txt filter=slow\n");
  git(repo, "config", "filter.slow.smudge", `touch ${root}/begun; while [ -e ${root}/wait ]; do sleep 0.05; done; cat`);
  writeFileSync(join(root, "wait"), "");
  const script = `
    import { localMachine } from ${JSON.stringify(new URL("../local.ts", import.meta.url).href)};
    import { locks } from ${JSON.stringify(new URL("../../home/lock.ts", import.meta.url).href)};
    const { derive } = localMachine({ derive: { envs: ${JSON.stringify(envs)}, locks } });
    await derive.worktree(${JSON.stringify(repo)}, {});
  `;
  const child = spawn(process.execPath, ["--conditions=hmz-source", "--input-type=module", "-e", script], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  while (!existsSync(join(root, "begun"))) await new Promise((resolve) => setTimeout(resolve, 20));
  const waiting = derive.worktree(repo, {});
  await sweepLocal({ envs, locks }, isHeld);
  child.kill("SIGKILL");
  await once(child, "exit");
  rmSync(join(root, "wait"));
  assert.ok(existsSync(join(await waiting, "a.txt")));
  await sweepLocal({ envs, locks }, isHeld);
  assert.equal(worktrees(repo), 2);
  const left = readdirSync(envs, { recursive: true, encoding: "utf8" }).filter((name) => /\.lock/.test(name));
  assert.deepEqual(left, []);
  assert.equal(readdirSync(join(envs, readdirSync(envs)[0] ?? "", "worktrees")).length, 1);
});
