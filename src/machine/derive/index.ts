/** What a machine makes of a workdir, and who holds it. */

import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Derive, Holding } from "../../engine/ports.ts";
import { ScratchError, TempCloneBusy } from "../../flows/errors.ts";
import type { Host, Locks } from "./host.ts";
import { nameOf, placeOf } from "./place.ts";
import { listSnapshots, rewindTo, takeSnapshot } from "./snapshot.ts";
import { copyWorkdir, removeCopy } from "./temp-clone.ts";
import { addWorktree } from "./worktree.ts";

export type { Host, Locks } from "./host.ts";

type Kind = "clones" | "scratch";

interface Held {
  readonly kind: Kind;
  readonly workdir: string;
  readonly id: string;
  readonly path: string;
  readonly holder: object;
}

/** What a lock file notes beside its owner. */
interface Note {
  /** Whether it outlives a run that is killed. */
  readonly outlives: boolean;
  /** What it is of, so that whoever sweeps can remove it properly. */
  readonly workdir: string;
}

export function deriving(host: Host): Derive {
  return new Deriving(host);
}

class Deriving implements Derive {
  readonly #host: Host;
  readonly #held = new Map<string, Held>();

  constructor(host: Host) {
    this.#host = host;
  }

  worktree(workdir: string, options: { readonly ref?: string; readonly dir?: string }): Promise<string> {
    return addWorktree(this.#host, workdir, options);
  }

  async tempClone(workdir: string, id: string, holding: Holding): Promise<string> {
    const path = holding.earlier ?? join(placeOf(this.#host.envs, workdir), "clones", nameOf(id));
    const known = this.#held.get(path);
    if (known?.holder === holding.holder) return path;
    if (!(await this.#take(path, workdir, holding))) {
      throw new TempCloneBusy(`the copy '${id}' of ${workdir} is held by another environment`);
    }
    try {
      if (holding.earlier === undefined) {
        await removeCopy(this.#host, workdir, path);
        await copyWorkdir(this.#host, workdir, path);
      }
    } catch (error) {
      this.#host.locks.drop(lockOf(path));
      throw error;
    }
    this.#held.set(path, { kind: "clones", workdir, id, path, holder: holding.holder });
    return path;
  }

  async destroyTempClone(workdir: string, id: string, holder: object): Promise<void> {
    await this.#destroy("clones", workdir, id, holder, (path) => removeCopy(this.#host, workdir, path));
  }

  async scratch(workdir: string, id: string, holding: Holding): Promise<string> {
    const base = join(placeOf(this.#host.envs, workdir), "scratch", nameOf(id));
    try {
      let path = holding.earlier ?? base;
      // Two runs in one workspace may ask for one id: each has its own.
      for (let other = 2; this.#held.get(path)?.holder !== holding.holder; other++) {
        if (await this.#take(path, workdir, holding)) break;
        path = `${base}~${other}`;
      }
      if (this.#held.has(path)) return path;
      if (path !== holding.earlier) {
        await rm(path, { recursive: true, force: true });
        await mkdir(path, { recursive: true, mode: 0o700 });
      }
      this.#held.set(path, { kind: "scratch", workdir, id, path, holder: holding.holder });
      return path;
    } catch (error) {
      throw scratchFault(`a scratch directory for '${id}' of ${workdir} cannot be made`, error);
    }
  }

  async destroyScratch(workdir: string, id: string, holder: object): Promise<void> {
    try {
      await this.#destroy("scratch", workdir, id, holder, (path) => rm(path, { recursive: true, force: true }));
    } catch (error) {
      throw scratchFault(`the scratch directory for '${id}' of ${workdir} cannot be removed`, error);
    }
  }

  async #destroy(
    kind: Kind,
    workdir: string,
    id: string,
    holder: object,
    remove: (path: string) => Promise<void>,
  ): Promise<void> {
    for (const held of this.#held.values()) {
      if (held.kind !== kind || held.workdir !== workdir || held.id !== id || held.holder !== holder) continue;
      await remove(held.path);
      this.#held.delete(held.path);
      this.#host.locks.drop(lockOf(held.path));
    }
  }

  async release(holder: object): Promise<void> {
    for (const held of this.#held.values()) {
      if (held.holder !== holder) continue;
      this.#held.delete(held.path);
      this.#host.locks.drop(lockOf(held.path));
    }
  }

  snapshot(workdir: string, name: string | undefined): Promise<string> {
    return takeSnapshot(this.#host, workdir, name);
  }

  rewind(workdir: string, ref: string): Promise<void> {
    return rewindTo(this.#host, workdir, ref);
  }

  snapshots(workdir: string): Promise<string[]> {
    return listSnapshots(this.#host, workdir);
  }

  async #take(path: string, workdir: string, { outlives }: Holding): Promise<boolean> {
    await mkdir(join(path, ".."), { recursive: true, mode: 0o700 });
    return this.#host.locks.take(lockOf(path), { outlives, workdir } satisfies Note);
  }
}

function lockOf(path: string): string {
  return `${path}.lock`;
}

function scratchFault(what: string, cause: unknown): ScratchError {
  return new ScratchError(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
}

/**
 * Removes what runs that were killed had made and nobody is to pick up: it is found by the lock that nobody living
 * holds. Never throws.
 *
 * @param isHeld Whether a living process holds a lock.
 */
export async function sweepDerived(
  host: Host & { readonly locks: Locks },
  isHeld: (lock: string) => boolean,
): Promise<void> {
  for (const place of await namesIn(host.envs)) {
    for (const kind of ["clones", "scratch"] as const) {
      const directory = join(host.envs, place, kind);
      for (const name of await namesIn(directory)) {
        const path = join(directory, name);
        try {
          if (name.startsWith(".part.")) await sweepPart(path, name);
          else if (name.endsWith(".lock") && !isHeld(path)) await sweepLocked(host, path, kind);
        } catch {
          // In use, or not ours to remove: the next run looks again.
        }
      }
    }
  }
}

/** A copy that was never finished. */
async function sweepPart(path: string, name: string): Promise<void> {
  const pid = Number(/^\.part\.(\d+)\./.exec(name)?.[1]);
  if (!Number.isSafeInteger(pid) || pid <= 0 || isGoing(pid)) return;
  await rm(path, { recursive: true, force: true });
}

function isGoing(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: there, and somebody else's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function sweepLocked(host: Host, lock: string, kind: Kind): Promise<void> {
  const note = noteOf(await readFile(lock, "utf8"));
  const path = lock.slice(0, -".lock".length);
  // Taken first: whoever derives it at this moment would lose it otherwise.
  if (!host.locks.take(lock, { outlives: note.outlives, workdir: note.workdir })) return;
  try {
    if (note.outlives) return;
    if (kind === "clones" && (await isThere(note.workdir))) await removeCopy(host, note.workdir, path);
    else await rm(path, { recursive: true, force: true });
  } finally {
    host.locks.drop(lock);
  }
}

function noteOf(text: string): Note {
  const value: unknown = JSON.parse(text);
  const { outlives, workdir } = value as Readonly<Record<string, unknown>>;
  // One that cannot be read says nothing about what may be lost: it is kept.
  return { outlives: outlives !== false, workdir: typeof workdir === "string" ? workdir : "" };
}

async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
