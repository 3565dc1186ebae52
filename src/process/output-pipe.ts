/** One output of a child as a stream of chunks that ends, whoever holds its other end. */

import type { Readable } from "node:stream";

/** How much is read ahead of whoever reads before the program has to wait. */
const AHEAD = 256 * 1024;

export class OutputPipe implements AsyncIterableIterator<Uint8Array> {
  readonly #stream: Readable;
  readonly #chunks: Uint8Array[] = [];
  #ahead = 0;
  #ended = false;
  #lastByte = performance.now();
  #quietLimit: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #wakers: (() => void)[] = [];
  #flowing = false;

  constructor(stream: Readable) {
    this.#stream = stream;
    // A pipe that breaks has ended: what was read before it stands.
    for (const end of ["end", "close", "error"]) stream.on(end, () => this.#end());
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Reads all that comes and gives it to `take`, rather than to whoever iterates. */
  drainInto(take: (chunk: Uint8Array) => void): void {
    this.#flowing = true;
    this.#stream.on("data", (chunk: Uint8Array) => {
      this.#lastByte = performance.now();
      take(chunk);
    });
  }

  /** Milliseconds without a byte since then; 0 while it is the reader who lets the program wait. */
  quietSince(start: number): number {
    return this.#ahead >= AHEAD ? 0 : performance.now() - Math.max(start, this.#lastByte);
  }

  /**
   * From now on, so much quiet is its end: the program has ended, and whoever holds the pipe still is not known to us.
   * What is in it already is read first, and nothing counts while nobody reads.
   */
  endWhenQuiet(ms: number): void {
    this.#quietLimit = ms;
    if (this.#flowing) this.#watch();
  }

  /** Closes it where nobody has begun to read it: nobody will, and an open pipe is a file descriptor. */
  closeUnread(): void {
    if (!this.#flowing) this.#stream.destroy();
  }

  /** Resolves once it has ended. */
  async finished(): Promise<void> {
    while (!this.#ended) await this.#wait();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#flowing) this.#flow();
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#ahead -= chunk.length;
        if (this.#ahead < AHEAD && this.#stream.isPaused()) {
          this.#lastByte = performance.now();
          this.#stream.resume();
        }
        return { done: false, value: chunk };
      }
      if (this.#ended) return { done: true, value: undefined };
      await this.#wait();
    }
  }

  /** Whoever iterated has enough. The rest is read and let go, so that the program never waits for a reader. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#ended) return { done: true, value: undefined };
    this.#chunks.length = 0;
    this.#ahead = 0;
    this.#stream.removeAllListeners("data");
    this.drainInto(() => {});
    this.#stream.resume();
    return { done: true, value: undefined };
  }

  #flow(): void {
    this.#flowing = true;
    this.#stream.on("data", (chunk: Uint8Array) => {
      this.#lastByte = performance.now();
      this.#chunks.push(chunk);
      this.#ahead += chunk.length;
      if (this.#ahead >= AHEAD) this.#stream.pause();
      this.#wake();
    });
    this.#watch();
  }

  #watch(): void {
    if (this.#ended || this.#quietLimit === undefined) return;
    const limit = this.#quietLimit;
    const start = performance.now();
    const look = (): void => {
      const left = limit - this.quietSince(start);
      if (left > 0) {
        this.#timer = setTimeout(look, Math.max(1, left)).unref();
        return;
      }
      this.#stream.destroy();
      this.#end();
    };
    look();
  }

  async #wait(): Promise<void> {
    await new Promise<void>((wake) => this.#wakers.push(wake));
  }

  #wake(): void {
    if (this.#wakers.length === 0) return;
    for (const wake of this.#wakers.splice(0)) wake();
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#ended = true;
    this.#wake();
  }
}

/** Resolves once each has ended, or no byte came on any for so long. */
export async function drained(pipes: readonly OutputPipe[], quietMs: number): Promise<void> {
  const start = performance.now();
  for (;;) {
    const open = pipes.filter((pipe) => !pipe.ended);
    if (open.length === 0) return;
    const left = quietMs - Math.min(...open.map((pipe) => pipe.quietSince(start)));
    if (left <= 0) return;
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      Promise.all(open.map((pipe) => pipe.finished())),
      new Promise<void>((wake) => {
        timer = setTimeout(wake, Math.max(1, left));
      }),
    ]);
    clearTimeout(timer);
  }
}
