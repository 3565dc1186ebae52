/**
 * Lines of a byte stream. A line ends at the byte 0x0A and nowhere else: the bytes are split first and a whole line is
 * decoded once, so that neither a chunk's edge nor U+2028, U+2029 or a lone `\r` cuts a message in two.
 */

import { Batches } from "./batches.ts";
import type { Splitter } from "./batches.ts";
import { lastWhole } from "./bounded-tail.ts";

export type Line =
  | { readonly kind: "line"; readonly text: string }
  /** A line over the limit. It was left out; the lines after it are not touched. */
  | {
      readonly kind: "too-long";
      /** Its true size in bytes, without the newline. */
      readonly bytes: number;
      /** How it starts, at most 4 KiB. */
      readonly head: string;
    };

export interface LineOptions {
  /** The longest line that is kept, in bytes; 64 MiB where not given. */
  readonly limit?: number;
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const HEAD = 4096;

/** Takes chunks, gives lines. Looks at each byte once, however long a line grows. */
export class LineSplitter implements Splitter<Line> {
  readonly #limit: number;
  /** The chunks of the line that has not ended yet; they are joined once, at its end. */
  #parts: Uint8Array[] = [];
  /** The line's bytes so far, those that are over the limit and were let go included. */
  #size = 0;

  constructor(options: LineOptions = {}) {
    this.#limit = options.limit ?? 64 * 1024 * 1024;
  }

  /** The lines that this chunk ends. The chunk may be kept until the line it starts has ended. */
  push(chunk: Uint8Array): Line[] {
    const lines: Line[] = [];
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      if (this.#size === 0) {
        lines.push(lineOf(bytes, from, end, this.#limit));
      } else {
        this.#add(chunk, from, end);
        lines.push(this.#end());
      }
      from = end + 1;
    }
    if (from < chunk.length) this.#add(chunk, from, chunk.length);
    return lines;
  }

  /** The last line, where the stream ended without a newline. */
  flush(): Line[] {
    return this.#size > 0 ? [this.#end()] : [];
  }

  #add(chunk: Uint8Array, from: number, to: number): void {
    if (to === from) return;
    // One byte over the limit may still be the `\r` that is trimmed.
    const fit = this.#size <= this.#limit + 1;
    this.#size += to - from;
    if (this.#size <= this.#limit + 1) this.#parts.push(chunk.subarray(from, to));
    else if (fit) this.#parts = [headOf([...this.#parts, chunk.subarray(from, to)])];
  }

  #end(): Line {
    const joined = Buffer.concat(this.#parts);
    const size = this.#size;
    this.#parts = [];
    this.#size = 0;
    return size === joined.length ? lineOf(joined, 0, size, this.#limit) : tooLong(joined, size);
  }
}

function lineOf(bytes: Buffer, from: number, to: number, limit: number): Line {
  const end = to > from && bytes[to - 1] === RETURN ? to - 1 : to;
  if (end - from > limit) return tooLong(bytes.subarray(from, to), end - from);
  return { kind: "line", text: bytes.toString("utf8", from + markLength(bytes, from, end), end) };
}

function tooLong(bytes: Buffer, size: number): Line {
  const head = bytes.subarray(markLength(bytes, 0, bytes.length), HEAD);
  return { kind: "too-long", bytes: size, head: head.toString("utf8", 0, lastWhole(head)) };
}

/** The lines of a stream of chunks. */
export function readLines(chunks: AsyncIterable<Uint8Array>, options: LineOptions = {}): AsyncIterableIterator<Line> {
  return new Batches(chunks, new LineSplitter(options));
}

/** A copy of how the parts start, so that the head of an overlong line does not hold the memory of its chunks. */
function headOf(parts: readonly Uint8Array[]): Uint8Array {
  const head = Buffer.alloc(HEAD);
  let at = 0;
  for (const part of parts) {
    if (at === HEAD) break;
    const taken = part.subarray(0, HEAD - at);
    head.set(taken, at);
    at += taken.length;
  }
  return head.subarray(0, at);
}

/** The size of the byte order mark that some programs put before a line. */
function markLength(bytes: Uint8Array, from: number, to: number): number {
  return to - from >= 3 && bytes[from] === 0xef && bytes[from + 1] === 0xbb && bytes[from + 2] === 0xbf ? 3 : 0;
}
