/** Git worktrees of the repository that a workdir is in. */

import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import timers from "node:timers/promises";
import type { ExecOutcome } from "../../engine/ports.ts";
import { WorktreeError } from "../../flows/errors.ts";
import { script } from "./git.ts";
import { type Host, lockOf, type Note, saidBy } from "./host.ts";
import { placeOf } from "./place.ts";

/** How often an add is tried again that found one of git's own locks taken, and how long each waits. */
const TRIES = 40;
const PAUSE_MS = 100;

/** Statuses of the scripts below that are none of git's. */
const NO_REF = 91;
const TAKEN = 92;

/** `$1` the ref. Prints the directory that all worktrees of the repository share, and the commit. */
const FIND = `
git rev-parse --path-format=absolute --git-common-dir || exit
git rev-parse --verify --quiet --end-of-options "$1^{commit}" || exit ${NO_REF}
`;

/**
 * `$1` the directory, `$2` the commit, and more options of git's. What is there already is looked at with the lock
 * held, and only what this add itself has made is removed where it fails: another's worktree may be at its place.
 */
const ADD = `
at=$1 commit=$2
shift 2
was=
if [ -e "$at" ] || [ -L "$at" ]; then
  [ -d "$at" ] && [ -z "$(ls -A -- "$at")" ] || exit ${TAKEN}
  was=empty
elif git worktree list --porcelain | grep -q -x -F -e "worktree $at"; then
  exit ${TAKEN}
fi
said=$(git worktree add --quiet --detach "$@" -- "$at" "$commit" 2>&1) && exit
status=$?
printf '%s\\n' "$said" >&2
case $said in
  *"already exists"* | *"already registered"* | *"missing but locked"*) exit $status ;;
esac
git worktree remove --force --force -- "$at" >/dev/null 2>&1
rm -rf -- "$at"
git worktree prune
[ -z "$was" ] || mkdir -p -- "$at"
exit $status
`;

/** `$1` the worktree's directory. */
const REMOVE = `
git worktree remove --force --force -- "$1" 2>/dev/null
git worktree prune
`;

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
  const refuse = (why: string, cause?: unknown): WorktreeError =>
    new WorktreeError(`no worktree of ${workdir} can be made: ${why}`, { cause });
  const target = dir ?? join(placeOf(host.envs, workdir), "worktrees", randomBytes(6).toString("hex"));
  try {
    const found = await script(host, workdir, FIND, [ref]);
    if (found.status === NO_REF) throw refuse(`git knows no ref '${ref}'`);
    if (found.status !== 0) throw refuse(saidBy(found));
    const [repository = "", commit = ""] = found.stdout.split("\n");
    // What a killed run had half made of its own is found by its lock.
    const lock = dir === undefined ? lockOf(target) : undefined;
    if (lock !== undefined) {
      await mkdir(dirname(lock), { recursive: true, mode: 0o700 });
      host.locks.take(lock, { outlives: false, workdir } satisfies Note);
    }
    try {
      const added = await addDetached(host, workdir, repository, [target, commit]);
      if (added.status === TAKEN) throw refuse(`${target} is taken`);
      if (added.status !== 0) throw refuse(saidBy(added));
    } finally {
      if (lock !== undefined) host.locks.drop(lock);
    }
    return target;
  } catch (error) {
    throw error instanceof WorktreeError
      ? error
      : refuse(error instanceof Error ? error.message : String(error), error);
  }
}

/** Adds a worktree of a repository: one at a time, and again where git finds a lock of another git. */
export async function addDetached(
  host: Host,
  workdir: string,
  repository: string,
  args: readonly string[],
): Promise<ExecOutcome> {
  return alone(host, repository, async () => {
    for (let tries = 1; ; tries++) {
      const added = await script(host, workdir, ADD, args);
      if (added.status === 0 || added.status === TAKEN) return added;
      if (tries === TRIES || !isLocked(added.stderr)) return added;
      await timers.setTimeout(PAUSE_MS);
    }
  });
}

/** Takes a worktree away from its repository, and its directory with it where git can. */
export async function removeWorktree(host: Host, workdir: string, target: string): Promise<void> {
  const found = await script(host, workdir, FIND, ["HEAD"]);
  const [repository = ""] = found.stdout.split("\n");
  if (repository !== "") await alone(host, repository, () => script(host, workdir, REMOVE, [target]));
}

/** Whether git found what another git has half written: a lock, or the notes of a worktree that is being added. */
function isLocked(stderr: string): boolean {
  return /\.lock'?: File exists|could not lock|failed to read .*(?:commondir|gitdir|HEAD)/i.test(stderr);
}

/** Two at once trip over each other's locks, and over what each has half written: in this process, and in others. */
async function alone<T>(host: Host, repository: string, work: () => Promise<T>): Promise<T> {
  await mkdir(host.envs, { recursive: true, mode: 0o700 });
  return oneAtATime(repository, () => host.locks.locked(lockOf(placeOf(host.envs, repository)), work));
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
