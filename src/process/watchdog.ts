/** Notices that somebody has fallen silent. */

import { after } from "./timer.ts";

export interface WatchdogOptions {
  /** Milliseconds of silence that are too long. */
  readonly limit: number;
  /** The same while something that may be silent for longer is under way, a tool. `limit` where not given. */
  readonly busyLimit?: number;
  /** Called once, with the silence in milliseconds. */
  readonly onSilence: (ms: number) => void;
}

export class Watchdog {
  readonly #limit: number;
  readonly #busyLimit: number;
  readonly #onSilence: (ms: number) => void;
  #last = performance.now();
  #busy = 0;
  #callOff: () => void = () => {};
  #over = false;

  constructor(options: WatchdogOptions) {
    this.#limit = options.limit;
    this.#busyLimit = options.busyLimit ?? options.limit;
    this.#onSilence = options.onSilence;
    this.#arm();
  }

  /** A sign of life. Costs nothing worth counting: no timer is touched. */
  beat(): void {
    this.#last = performance.now();
  }

  /** Something that may take long starts. What starts twice must end twice. */
  busy(): void {
    this.#busy += 1;
    this.beat();
    if (this.#busy === 1) this.#arm();
  }

  /** It ends. One end too many is let pass: the events of a CLI are not ours to trust. */
  idle(): void {
    this.#busy = Math.max(0, this.#busy - 1);
    this.beat();
    if (this.#busy === 0) this.#arm();
  }

  /** Ends the watch. */
  stop(): void {
    this.#over = true;
    this.#callOff();
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  #arm(): void {
    this.#callOff();
    if (this.#over) return;
    const limit = this.#busy > 0 ? this.#busyLimit : this.#limit;
    const silence = performance.now() - this.#last;
    this.#callOff = after(Math.max(1, limit - silence), () => {
      const silence = performance.now() - this.#last;
      if (silence < limit) return this.#arm();
      this.stop();
      this.#onSilence(silence);
    });
  }
}
