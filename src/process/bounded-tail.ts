/** The last bytes of a stream: what a program said before it failed, in memory that does not grow. */
export class BoundedTail {
  readonly #limit: number;
  #chunks: Uint8Array[] = [];
  #held = 0;
  #total = 0;

  /** @param limit Bytes kept at most; 64 KiB where not given. */
  constructor(limit = 64 * 1024) {
    this.#limit = limit;
  }

  /** Every byte that came by, kept or not. */
  get total(): number {
    return this.#total;
  }

  get truncated(): boolean {
    return this.#total > this.#limit;
  }

  push(chunk: Uint8Array): void {
    this.#total += chunk.length;
    // A copy, so that the tail of a chunk does not hold the memory of the whole.
    const kept = chunk.length > this.#limit ? chunk.slice(chunk.length - this.#limit) : chunk;
    this.#chunks.push(kept);
    this.#held += kept.length;
    // Twice the limit before it is cut: one copy for every `limit` bytes, however small the chunks are.
    if (this.#held > 2 * this.#limit) this.#cut();
  }

  /** At most `limit` bytes. */
  bytes(): Buffer {
    this.#cut();
    const [only] = this.#chunks;
    return only === undefined ? Buffer.alloc(0) : Buffer.from(only);
  }

  /** The text, decoded as a whole; starts at a whole character. */
  text(): string {
    const bytes = this.bytes();
    return (this.truncated ? bytes.subarray(firstWhole(bytes)) : bytes).toString("utf8");
  }

  toString(): string {
    return this.text();
  }

  #cut(): void {
    const joined = Buffer.concat(this.#chunks);
    const kept = joined.subarray(Math.max(0, joined.length - this.#limit));
    this.#chunks = kept.length > 0 ? [kept] : [];
    this.#held = kept.length;
  }
}

/** Where the first whole UTF-8 character of a cut piece starts: past the continuation bytes of the one that was cut. */
export function firstWhole(bytes: Uint8Array): number {
  let at = 0;
  while (at < 3 && at < bytes.length && ((bytes[at] ?? 0) & 0xc0) === 0x80) at += 1;
  return at;
}

/** Where the last whole UTF-8 character of a cut piece ends. */
export function lastWhole(bytes: Uint8Array): number {
  let at = bytes.length - 1;
  for (let back = 0; back < 3 && at >= 0 && ((bytes[at] ?? 0) & 0xc0) === 0x80; back += 1) at -= 1;
  const lead = bytes[at];
  if (lead === undefined) return bytes.length;
  const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return at + size > bytes.length ? at : bytes.length;
}
