/** A run's events for one reader at its own pace. */

/** Holds what its reader has not read yet; nothing is dropped for a slow one. */
export class EventQueue<T> implements AsyncIterableIterator<T> {
  readonly #waiting: T[] = [];
  #next = 0;
  #readers: ((result: IteratorResult<T>) => void)[] = [];
  #ended = false;
  readonly #left: () => void;

  /** @param left Called when the reader leaves before the end. */
  constructor(left: () => void) {
    this.#left = left;
  }

  push(event: T): void {
    if (this.#ended) return;
    const reader = this.#readers.shift();
    if (reader) reader({ value: event, done: false });
    else this.#waiting.push(event);
  }

  end(): void {
    this.#ended = true;
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true });
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#next < this.#waiting.length) {
      const value = this.#waiting[this.#next++] as T;
      // Not one by one: shifting a long array is as long as the array.
      if (this.#next >= 1_024 || this.#next === this.#waiting.length) {
        this.#waiting.splice(0, this.#next);
        this.#next = 0;
      }
      return Promise.resolve({ value, done: false });
    }
    if (this.#ended) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  return(): Promise<IteratorResult<T>> {
    this.#waiting.length = 0;
    this.#next = 0;
    this.end();
    this.#left();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
