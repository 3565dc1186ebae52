/** Git worktrees of the repository that a workdir is in. */

import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as later } from "node:timers/promises";
import { WorktreeError } from "../../flows/errors.ts";
import { git } from "./git.ts";
import { type Host, saidBy } from "./host.ts";
import { placeOf } from "./place.ts";

/** How often an add is tried again that found one of git's own locks taken, and how long each waits. */
const TRIES = 40;
const PAUSE_MS = 100;

/**
 * Adds a worktree, detached.
 *
 * @throws WorktreeError where the workdir is in no repository, the ref is none, or the directory is taken.
 */
export async function addWorktree(
  host: Host,
  workdir: string,
  { ref = "HEAD", dir }: { readonly ref?: string; readonly dir?: string },
): Promise<string> {
  const refuse = (why: string): WorktreeError => new WorktreeError(`no worktree of ${workdir} can be made: ${why}`);
  const common = await git(host, workdir, ["rev-parse", "--path-format=absolute", "--git-common-dir"]);
  if (common.status !== 0) throw refuse(saidBy(common));
  const found = await git(host, workdir, ["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`]);
  if (found.status !== 0) throw refuse(`git knows no ref '${ref}'`);
  const repository = common.stdout.trim();
  const target = dir ?? join(placeOf(host.envs, workdir), "worktrees", randomBytes(6).toString("hex"));
  const before = await entriesOf(target);
  if (before === "a file" || (before !== undefined && before.length > 0)) throw refuse(`${target} is taken`);
  await mkdir(host.envs, { recursive: true, mode: 0o700 });
  // Two at once trip over each other's locks, and over what each has half written.
  await oneAtATime(repository, () =>
    host.locks.locked(join(host.envs, `${placeOf("", repository)}.lock`), async () => {
      for (let tries = 1; ; tries++) {
        const added = await git(host, workdir, [
          "worktree",
          "add",
          "--quiet",
          "--detach",
          "--",
          target,
          found.stdout.trim(),
        ]);
        if (added.status === 0) return;
        await undone(host, workdir, target, before === undefined);
        if (tries === TRIES || !isLocked(added.stderr)) throw refuse(saidBy(added));
        await later(PAUSE_MS);
      }
    }),
  );
  return target;
}

/** Whether git found a lock of somebody else's git, which will be gone in a moment. */
function isLocked(stderr: string): boolean {
  return /\.lock'?: File exists|Unable to create .*\.lock|could not lock/i.test(stderr);
}

/** Leaves neither a directory nor git's own note of one. */
async function undone(host: Host, workdir: string, target: string, made: boolean): Promise<void> {
  await git(host, workdir, ["worktree", "remove", "--force", "--force", "--", target]);
  if (made) await rm(target, { recursive: true, force: true });
  await git(host, workdir, ["worktree", "prune"]);
}

async function entriesOf(path: string): Promise<readonly string[] | "a file" | undefined> {
  try {
    return await readdir(path);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? undefined : "a file";
  }
}

const going = new Map<string, Promise<unknown>>();

async function oneAtATime<T>(key: string, work: () => Promise<T>): Promise<T> {
  const before = going.get(key) ?? Promise.resolve();
  const mine = before.catch(() => {}).then(work);
  going.set(key, mine);
  try {
    return await mine;
  } finally {
    if (going.get(key) === mine) going.delete(key);
  }
}
