/** A cancellation that costs nothing until somebody listens: a call has one, a turn, a group. */

type Listener = () => void;

export class Cancellation {
  #cancelled = false;
  #reason: unknown;
  #why: (() => unknown) | undefined;
  /** A turn's has one listener most of the time, and there may be thousands of turns at once. */
  #only: Listener | undefined;
  #listeners: Set<Listener> | undefined;
  #controller: AbortController | undefined;

  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** Why; `undefined` until it is cancelled. */
  get reason(): unknown {
    if (this.#why) {
      this.#reason = this.#why();
      this.#why = undefined;
    }
    return this.#reason;
  }

  /** The same as a signal, made on its first read: one for each call and turn would cost more than either. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#cancelled) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  /** The first reason stands. */
  cancel(reason: unknown): void {
    this.#cancel(reason, undefined);
  }

  /**
   * The same, the reason made once somebody wants to know it: every call ends cancelled, and an error made for each,
   * with its stack, would cost as much as all the rest of the call.
   */
  cancelBecause(why: () => unknown): void {
    this.#cancel(undefined, why);
  }

  #cancel(reason: unknown, why: (() => unknown) | undefined): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#reason = reason;
    this.#why = why;
    const only = this.#only;
    const listeners = this.#listeners;
    this.#only = undefined;
    this.#listeners = undefined;
    only?.();
    if (listeners) for (const listener of listeners) listener();
    this.#controller?.abort(this.reason);
  }

  /** Calls `listener` once cancelled, at once where it is already. Returns what takes it back. */
  on(listener: Listener): () => void {
    if (this.#cancelled) {
      listener();
      return nothing;
    }
    if (!this.#only && !this.#listeners) this.#only = listener;
    else (this.#listeners ??= new Set()).add(listener);
    return () => {
      if (this.#only === listener) this.#only = undefined;
      else this.#listeners?.delete(listener);
    };
  }

  /** Is cancelled when another is. Returns what takes it back. */
  follow(other: Cancellation): () => void {
    return other.on(() => this.cancelBecause(() => other.reason));
  }

  /** Is cancelled when a signal is aborted. Returns what takes it back. */
  followSignal(signal: AbortSignal): () => void {
    const abort = (): void => this.cancel(signal.reason);
    if (signal.aborted) {
      abort();
      return nothing;
    }
    signal.addEventListener("abort", abort, { once: true });
    return () => signal.removeEventListener("abort", abort);
  }

  throwIfCancelled(): void {
    if (this.#cancelled) throw this.reason;
  }
}

function nothing(): void {}
