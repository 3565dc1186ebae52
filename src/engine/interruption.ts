/** Waiting inside a turn, where the turn may be cancelled meanwhile. */

import type { Cancellation } from "./cancellation.ts";

/** How long a harness is waited for once its turn was interrupted. */
const INTERRUPT_MS = 30_000;

/** A turn's waiting. One for each turn: a promise and a listener for each wait would cost more than the turn. */
export class Interruption {
  readonly #cancellation: Cancellation;
  readonly #release: () => void;
  #gone: Promise<never> | undefined;
  #giveUp: (reason: unknown) => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  readonly #stuck = new Promise<never>((_resolve, reject) => {
    this.#giveUp = reject;
  });

  /** @param abandoned Cancelled where nothing that unwinds is waited for any more. */
  constructor(cancellation: Cancellation, abandoned: Cancellation) {
    this.#cancellation = cancellation;
    // A turn that comes to its end leaves these to nobody.
    this.#stuck.catch(() => {});
    const unlisten = cancellation.on(() => {
      this.#timer = setTimeout(() => this.#giveUp(cancellation.reason), INTERRUPT_MS);
    });
    const unabandon = abandoned.on(() => this.#giveUp(cancellation.reason));
    this.#release = () => {
      clearTimeout(this.#timer);
      unlisten();
      unabandon();
    };
  }

  /** What a harness's work comes to. Once the turn is cancelled the harness is waited for, but not for ever. */
  async comesToRest<T>(work: Promise<T>): Promise<T> {
    const done = await Promise.race([work, this.#stuck]);
    this.#cancellation.throwIfCancelled();
    return done;
  }

  /** What work comes to, unless the turn is cancelled first: a hook that never answers holds no turn up. */
  unlessCancelled<T>(work: Promise<T>): Promise<T> {
    if (!this.#gone) {
      const cancelled = this.#cancellation;
      this.#gone = new Promise<never>((_resolve, reject) => {
        cancelled.on(() => reject(cancelled.reason));
      });
      this.#gone.catch(() => {});
    }
    return Promise.race([work, this.#gone]);
  }

  /** Listens no more. */
  end(): void {
    this.#release();
  }
}
