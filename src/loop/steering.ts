/** What was said to a session during its turn, and the way to interrupt the step that the turn is in. */

/** The reason of a step that was interrupted for a steer: the turn goes on. */
const STEERED = new Error("interrupted by what its user said");

export class Steering {
  readonly #pending: string[] = [];
  #step: AbortController | undefined;
  #over = false;

  /** Accepts a line for the next step boundary, and interrupts the step under way where not `queued`. */
  steer(text: string, queued: boolean): boolean {
    if (this.#over) return false;
    this.#pending.push(text);
    if (!queued) this.#step?.abort(STEERED);
    return true;
  }

  /** The lines that wait, taken out. */
  take(): readonly string[] {
    return this.#pending.splice(0);
  }

  /** Begins a step; its signal is aborted by a steer that does not wait, and by `interrupt`. */
  step(): AbortSignal {
    this.#step = new AbortController();
    return this.#step.signal;
  }

  interrupt(reason: unknown): void {
    this.#step?.abort(reason);
  }

  /** Whether the turn may end: no line waits. From then on none is accepted. */
  end(): boolean {
    this.#over = this.#pending.length === 0;
    return this.#over;
  }

  /** Ends it whatever waits: the turn failed. */
  close(): void {
    this.#over = true;
  }
}

/** Whether a step was interrupted for a steer, and for nothing else. */
export function wasSteered(signal: AbortSignal): boolean {
  return signal.reason === STEERED;
}
