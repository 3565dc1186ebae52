/** What a machine makes of a workdir, and who holds it. */

import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Derive, Holding } from "../../engine/ports.ts";
import { EnvError, ScratchError, TempCloneBusy } from "../../flows/errors.ts";
import { type Host, lockOf, type Note } from "./host.ts";
import { nameOf, placeOf } from "./place.ts";
import { listSnapshots, rewindTo, takeSnapshot } from "./snapshot.ts";
import { copyWorkdir, removeCopy } from "./temp-clone.ts";
import { addWorktree } from "./worktree.ts";

export type { Host, Locks } from "./host.ts";
export { sweepDerived } from "./sweep.ts";

type Kind = "clones" | "scratch";

interface Held {
  readonly kind: Kind;
  readonly workdir: string;
  readonly id: string;
  readonly path: string;
  readonly holder: object;
  /** Settles once it is there. */
  readonly made: Promise<unknown>;
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
    if (known?.holder === holding.holder) {
      await known.made;
      return path;
    }
    if (workdir === "/") throw new EnvError(`the copy '${id}' cannot be made: its workdir is /, the whole machine`);
    const busy = `the copy '${id}' of ${workdir} is held by another environment`;
    if (known) throw new TempCloneBusy(busy);
    const made = async (): Promise<void> => {
      if (!(await this.#take(path, workdir, holding))) throw new TempCloneBusy(busy);
      try {
        if (holding.earlier === undefined) await copyWorkdir(this.#host, workdir, path);
      } catch (error) {
        this.#host.locks.drop(lockOf(path));
        throw error;
      }
    };
    try {
      await this.#holds({ kind: "clones", workdir, id, path, holder: holding.holder, made: made() });
      return path;
    } catch (error) {
      if (error instanceof EnvError) throw error;
      throw new EnvError(`${workdir} cannot be copied to ${path}: ${saidOf(error)}`, { cause: error });
    }
  }

  async destroyTempClone(workdir: string, id: string, holder: object): Promise<void> {
    await this.#destroy("clones", workdir, id, holder);
  }

  async scratch(workdir: string, id: string, holding: Holding): Promise<string> {
    const { holder, earlier } = holding;
    const base = join(placeOf(this.#host.envs, workdir), "scratch", nameOf(id));
    try {
      // Two runs in one workspace may ask for one id: each has its own.
      for (let path = earlier ?? base, other = 2; ; path = `${base}~${other++}`) {
        const known = this.#held.get(path);
        if (known?.holder === holder) {
          await known.made;
          return path;
        }
        if (known) continue;
        const made = this.#madeScratch(path, workdir, holding);
        await this.#holds({ kind: "scratch", workdir, id, path, holder, made });
        if (await made) return path;
        this.#held.delete(path);
      }
    } catch (error) {
      throw scratchFault(`a scratch directory for '${id}' of ${workdir} cannot be made`, error);
    }
  }

  /** Makes a scratch directory; `false` where another process holds it. */
  async #madeScratch(path: string, workdir: string, holding: Holding): Promise<boolean> {
    if (!(await this.#take(path, workdir, holding))) return false;
    try {
      if (path !== holding.earlier) await this.#remove("scratch", workdir, path);
      await mkdir(path, { recursive: true, mode: 0o700 });
      return true;
    } catch (error) {
      this.#host.locks.drop(lockOf(path));
      throw error;
    }
  }

  async destroyScratch(workdir: string, id: string, holder: object): Promise<void> {
    try {
      await this.#destroy("scratch", workdir, id, holder);
    } catch (error) {
      throw scratchFault(`the scratch directory for '${id}' of ${workdir} cannot be removed`, error);
    }
  }

  async #destroy(kind: Kind, workdir: string, id: string, holder: object): Promise<void> {
    for (const held of this.#held.values()) {
      if (held.kind !== kind || held.workdir !== workdir || held.id !== id || held.holder !== holder) continue;
      await held.made.catch(() => {});
      await this.#remove(kind, workdir, held.path);
      this.#held.delete(held.path);
      this.#host.locks.drop(lockOf(held.path));
    }
  }

  async #remove(kind: Kind, workdir: string, path: string): Promise<void> {
    if (kind === "clones") return removeCopy(this.#host, workdir, path);
    // A directory that does not let its entries be removed takes a program more.
    await rm(path, { recursive: true, force: true }).catch(() => removeCopy(this.#host, workdir, path));
  }

  async release(holder: object): Promise<void> {
    for (const held of this.#held.values()) {
      if (held.holder !== holder) continue;
      await held.made.catch(() => {});
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

  /** Notes what is held from the moment on that it is being made: the same holder may ask again meanwhile. */
  async #holds(held: Held): Promise<void> {
    this.#held.set(held.path, held);
    try {
      await held.made;
    } catch (error) {
      this.#held.delete(held.path);
      throw error;
    }
  }

  async #take(path: string, workdir: string, { outlives }: Holding): Promise<boolean> {
    const lock = lockOf(path);
    const note: Note = { outlives, workdir };
    await mkdir(dirname(lock), { recursive: true, mode: 0o700 });
    return this.#host.locks.take(lock, note);
  }
}

function scratchFault(what: string, cause: unknown): ScratchError {
  return new ScratchError(`${what}: ${saidOf(cause)}`, { cause });
}

function saidOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
