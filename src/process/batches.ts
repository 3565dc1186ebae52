/** A stream of chunks as a stream of what each chunk holds, given one by one. */

/** Turns chunks into items. Neither throws. */
export interface Splitter<T> {
  push(chunk: Uint8Array): readonly T[];
  flush(): readonly T[];
}

/**
 * The items of a stream of chunks. By hand rather than as an async generator: an item that is there already costs one
 * promise, and a stream has millions.
 */
export class Batches<T> implements AsyncIterableIterator<T> {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #splitter: Splitter<T>;
  #batch: readonly T[] = [];
  #at = 0;
  #ended = false;

  constructor(chunks: AsyncIterable<Uint8Array>, splitter: Splitter<T>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#splitter = splitter;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  // oxlint-disable-next-line typescript/promise-function-async -- an async function would cost a second promise
  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#at < this.#batch.length) {
      const value = this.#batch[this.#at++] as T;
      return Promise.resolve({ done: false, value });
    }
    return this.#more();
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#batch = [];
    this.#ended = true;
    await this.#chunks.return?.();
    return { done: true, value: undefined };
  }

  async #more(): Promise<IteratorResult<T, undefined>> {
    while (!this.#ended) {
      const next = await this.#chunks.next();
      if (next.done === true) this.#ended = true;
      this.#batch = next.done === true ? this.#splitter.flush() : this.#splitter.push(next.value);
      this.#at = 0;
      if (this.#batch.length > 0) return { done: false, value: this.#batch[this.#at++] as T };
    }
    return { done: true, value: undefined };
  }
}
