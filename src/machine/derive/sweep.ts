/** What runs that were killed have left of derived directories: found by the locks that nobody living holds. */

import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Host, lockOf, type Note } from "./host.ts";
import { removeCopy } from "./temp-clone.ts";

/** What lies under the place of a workdir. A worktree has a lock only while it is being made. */
const KINDS = ["clones", "scratch", "worktrees"] as const;

/**
 * Removes what runs that were killed had made and nobody is to pick up. Never throws.
 *
 * @param isHeld Whether a living process holds a lock.
 */
export async function sweepDerived(host: Host, isHeld: (lock: string) => boolean): Promise<void> {
  for (const name of await namesIn(host.envs)) {
    const place = join(host.envs, name);
    // The lock of a repository: it locks nothing once nobody has it.
    if (await sweepDraft(place, name)) continue;
    if (name.endsWith(".lock")) {
      if (!isHeld(place)) freed(host, place);
      continue;
    }
    for (const kind of KINDS) await sweepKind(host, join(place, kind), isHeld);
  }
}

async function sweepKind(host: Host, directory: string, isHeld: (lock: string) => boolean): Promise<void> {
  for (const name of await namesIn(directory)) {
    const path = join(directory, name);
    try {
      if (await sweepDraft(path, name)) continue;
      const pid = /^\.part\.(\d+)\./.exec(name)?.[1];
      if (pid !== undefined) {
        if (!isGoing(Number(pid))) await removeCopy(host, "/", path);
      } else if (name.endsWith(".lock") && !isHeld(path)) {
        await sweepLocked(host, path.slice(0, -".lock".length));
      }
    } catch {
      // In use, or not ours to remove: the next run looks again.
    }
  }
}

/** Removes a lock that was being taken, or put aside, by a process that is gone. Returns whether it is such a file. */
async function sweepDraft(path: string, name: string): Promise<boolean> {
  const pid = /\.lock\.(\d+)-[0-9a-f]+(?:\.gone)?$/.exec(name)?.[1];
  if (pid === undefined) return false;
  if (!isGoing(Number(pid))) await rm(path, { force: true }).catch(() => {});
  return true;
}

function freed(host: Host, lock: string): void {
  try {
    if (host.locks.take(lock, {})) host.locks.drop(lock);
  } catch {
    // Not ours to write.
  }
}

function isGoing(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: there, and somebody else's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function sweepLocked(host: Host, path: string): Promise<void> {
  const lock = lockOf(path);
  const note = noteOf(await readFile(lock, "utf8"));
  // Taken first: whoever derives it at this moment would lose it otherwise.
  if (!host.locks.take(lock, note)) return;
  // Where that fails, the lock stays, and is this process's: a run after it finds it again.
  if (!note.outlives) await removeCopy(host, note.workdir, path);
  host.locks.drop(lock);
}

function noteOf(text: string): Note {
  const value: unknown = JSON.parse(text);
  const { outlives, workdir } = value as Readonly<Record<string, unknown>>;
  // One that cannot be read says nothing about what may be lost: it is kept.
  return { outlives: outlives !== false, workdir: typeof workdir === "string" ? workdir : "/" };
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}
