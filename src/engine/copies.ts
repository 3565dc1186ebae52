/**
 * The temporary copies and scratch directories of a run. One environment has one of an id, whoever asks for it; it is
 * removed when the last call that has it ends, or kept, where the run has a journal, for the run that picks it up.
 */

import type { Call } from "./call.ts";
import { within } from "./deadline.ts";
import type { EnvRecord } from "./environment.ts";
import type { CopyKind } from "./journal.ts";
import type { Derive, Place } from "./ports.ts";

/** How long the end of a call waits for its copies to be removed. */
const CLEANUP_MS = 30_000;

interface Copy {
  readonly derive: Derive;
  readonly kind: CopyKind;
  /** The workdir that it is of. */
  readonly of: string;
  readonly id: string;
  readonly role: string;
  readonly holder: object;
  /** Where it lies. */
  readonly made: Promise<string>;
  /** The calls that have it. */
  readonly calls: Set<Call>;
}

export class Copies {
  readonly #copies = new Map<string, Copy>();
  /** Environments by the place that they were derived from and how: their identity towards their machine. */
  readonly #holders = new Map<Place, Map<string, Holder>>();
  #held = 0;

  /** The directory that an id names: made once. @throws TempCloneBusy @throws EnvError @throws ScratchError */
  async derive(env: EnvRecord, derive: Derive, kind: CopyKind, id: string): Promise<string> {
    const { call, place, chain, role } = env;
    const holder = this.#holder(env);
    const key = keyOf(kind, holder, id);
    let copy = this.#copies.get(key);
    if (!copy) {
      const made = this.#made(env, derive, kind, id, holder);
      copy = { derive, kind, of: place.workdir, id, role, holder, made, calls: new Set() };
      this.#copies.set(key, copy);
      // One that could not be made is tried again by whoever asks next.
      made.catch(() => this.#copies.delete(key));
    }
    copy.calls.add(call);
    const workdir = await copy.made;
    if (call.journaled && call.journaled.copy(kind, chain, id) !== workdir) {
      call.journaled.copied({ env: role, kind, name: id, chain, workdir });
    }
    return workdir;
  }

  async #made({ call, place, chain }: EnvRecord, derive: Derive, kind: CopyKind, id: string, holder: object) {
    const { journaled } = call;
    const kept = journaled?.copy(kind, chain, id);
    const earlier = kept !== undefined && (await place.machine.isDirectory(kept)) ? kept : undefined;
    const holding = { holder, outlives: journaled !== undefined, ...(earlier === undefined ? {} : { earlier }) };
    return kind === "temp_clone"
      ? derive.tempClone(place.workdir, id, holding)
      : derive.scratch(place.workdir, id, holding);
  }

  /** Removes it now, whoever has it; nothing where there is none. @throws EnvError @throws ScratchError */
  async destroy(env: EnvRecord, derive: Derive, kind: CopyKind, id: string): Promise<void> {
    const holder = this.#holder(env);
    const key = keyOf(kind, holder, id);
    const copy = this.#copies.get(key);
    if (copy) {
      this.#copies.delete(key);
      await copy.made.catch(() => {});
    } else if (env.call.journaled?.copy(kind, env.chain, id) !== undefined) {
      // Of an earlier run: taken up, to be removed as this run's own.
      await this.#made(env, derive, kind, id, holder);
    }
    await destroyed({ derive, kind, of: env.place.workdir, id, holder });
  }

  /**
   * Removes what a call that ends was the last one to have; `undefined` where there is nothing to wait for. Never
   * throws: what the call did stands by itself.
   */
  endOf(call: Call): Promise<void> | undefined {
    return this.#copies.size === 0 || call.journaled ? undefined : this.#removeOf(call);
  }

  async #removeOf(call: Call): Promise<void> {
    const removed: Promise<void>[] = [];
    for (const [key, copy] of this.#copies) {
      if (!copy.calls.delete(call) || copy.calls.size > 0) continue;
      this.#copies.delete(key);
      removed.push(
        copy.made
          .then(
            () => destroyed(copy),
            () => {},
          )
          .catch((error: unknown) =>
            call.run.remark(call, copy.role, `what was made for '${copy.id}' is left: ${saidBy(error)}`),
          ),
      );
    }
    if (removed.length === 0) return;
    await within(
      Promise.all(removed).then(() => {}),
      CLEANUP_MS,
      () => {
        call.run.remark(call, "", `removing its copies took longer than ${CLEANUP_MS / 1_000} s; nothing waits for it`);
      },
    );
  }

  /** Lets go of what is kept. Never throws. */
  async close(): Promise<void> {
    const kept = [...this.#copies.values()];
    this.#copies.clear();
    await Promise.all(
      kept.map(async ({ made, derive, holder }) => {
        await made.catch(() => {});
        await derive.release(holder).catch(() => {});
      }),
    );
  }

  #holder({ root, chain }: EnvRecord): Holder {
    const known = this.#holders.get(root) ?? new Map<string, Holder>();
    this.#holders.set(root, known);
    const holder = known.get(chain) ?? { number: ++this.#held };
    known.set(chain, holder);
    return holder;
  }
}

interface Holder {
  readonly number: number;
}

function keyOf(kind: CopyKind, { number }: Holder, id: string): string {
  return `${kind}\0${number}\0${id}`;
}

function destroyed({
  derive,
  kind,
  of,
  id,
  holder,
}: Pick<Copy, "derive" | "kind" | "of" | "id" | "holder">): Promise<void> {
  return kind === "temp_clone" ? derive.destroyTempClone(of, id, holder) : derive.destroyScratch(of, id, holder);
}

function saidBy(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
