/** Waiting inside a turn, where the turn may be cancelled meanwhile. */

import type { Cancellation } from "./cancellation.ts";

/** How long a harness is waited for once its turn was interrupted. */
const INTERRUPT_MS = 30_000;

type Reject = (reason: unknown) => void;

/** A turn's waiting. One for each turn, and next to nothing until it is cancelled: there may be thousands at once. */
export class Interruption {
  readonly #cancellation: Cancellation;
  readonly #abandoned: Cancellation;
  readonly #unlisten: () => void;
  /** Rejects the wait for the harness; a turn has one at a time. */
  #harness: Reject | undefined;
  /** Rejects what is waited for no longer than until the turn is cancelled. */
  #others: Set<Reject> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #unabandon: (() => void) | undefined;

  /** @param abandoned Cancelled, after the turn, where nothing that unwinds is waited for any more. */
  constructor(cancellation: Cancellation, abandoned: Cancellation) {
    this.#cancellation = cancellation;
    this.#abandoned = abandoned;
    this.#unlisten = cancellation.on(() => this.#cancelled());
  }

  #cancelled(): void {
    const { reason } = this.#cancellation;
    for (const reject of this.#others ?? []) reject(reason);
    const giveUp = (): void => this.#harness?.(reason);
    this.#timer = setTimeout(giveUp, INTERRUPT_MS);
    this.#unabandon = this.#abandoned.on(giveUp);
  }

  /** What a harness's work comes to. Once the turn is cancelled the harness is waited for, but not for ever. */
  async comesToRest<T>(work: Promise<T>): Promise<T> {
    const done = await new Promise<T>((resolve, reject) => {
      this.#harness = reject;
      work.then(resolve, reject);
      if (this.#abandoned.cancelled) reject(this.#cancellation.reason);
    });
    this.#harness = undefined;
    this.#cancellation.throwIfCancelled();
    return done;
  }

  /** What work comes to, unless the turn is cancelled first: a hook that never answers holds no turn up. */
  unlessCancelled<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#cancellation.cancelled) {
        work.catch(() => {});
        reject(this.#cancellation.reason);
        return;
      }
      const others = (this.#others ??= new Set());
      others.add(reject);
      work.then(
        (done) => {
          others.delete(reject);
          resolve(done);
        },
        (error: unknown) => {
          others.delete(reject);
          reject(error);
        },
      );
    });
  }

  /** Listens no more. */
  end(): void {
    this.#unlisten();
    this.#unabandon?.();
    clearTimeout(this.#timer);
  }
}
