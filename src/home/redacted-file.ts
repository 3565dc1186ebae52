/** Copying a file without its secrets, a part at a time: a secret that lies across two parts is one all the same. */

import { readFile } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { LONGEST_SECRET, type Redaction, type Span, without } from "./redaction.ts";
import { lineParts } from "./record-lines.ts";

/** What came of a copy: the bytes that were written; why it was not made. */
export type Copied = { readonly bytes: number } | { readonly left: string };

/** A JSON document up to this size is read whole, so that it stays one. */
const MOST_WHOLE = 16 * 1024 * 1024;
const PART = 1024 * 1024;

/**
 * Copies the lines of a file of JSON lines.
 *
 * @throws Error where either cannot be read or written.
 */
export async function copyLines(from: FileHandle, to: FileHandle, redaction: Redaction): Promise<Copied> {
  let bytes = 0;
  for (const lines of lineParts(from.fd)) {
    let text = "";
    for (const line of lines) text += `${line === undefined ? TOO_LONG : redaction.line(line)}\n`;
    bytes += await write(to, text);
  }
  return { bytes };
}

const TOO_LONG = JSON.stringify({ event: "left out", why: "the line was too long" });

/**
 * Copies any other file, where it is text: what cannot be read cannot be redacted.
 *
 * @throws Error where either cannot be read or written.
 */
export async function copyText(from: FileHandle, to: FileHandle, redaction: Redaction, json: boolean): Promise<Copied> {
  const { size } = await from.stat();
  if (json && size <= MOST_WHOLE) return copyDocument(from, to, redaction);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const stream = new RedactionStream(redaction);
  const buffer = Buffer.allocUnsafe(PART);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await from.read(buffer, 0, buffer.length);
    let text: string;
    try {
      text = decoder.decode(buffer.subarray(0, bytesRead), { stream: bytesRead > 0 });
    } catch {
      return BINARY;
    }
    if (text.includes("\0")) return BINARY;
    bytes += await write(to, stream.push(text));
    if (bytesRead === 0) break;
  }
  return { bytes: bytes + (await write(to, stream.end())) };
}

const BINARY: Copied = { left: "it is not text, so nothing can be taken out of it" };

async function copyDocument(from: FileHandle, to: FileHandle, redaction: Redaction): Promise<Copied> {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(from));
  } catch {
    return BINARY;
  }
  return text.includes("\0") ? BINARY : { bytes: await write(to, redaction.line(text)) };
}

async function write(to: FileHandle, text: string): Promise<number> {
  if (text === "") return 0;
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += (await to.write(bytes, at)).bytesWritten;
  return bytes.length;
}

/** Characters before a part that say what its first ones are: the name that a value is given. */
const CONTEXT = 1024;
/** Characters that wait for what follows them: as many as one secret has. */
const HELD = LONGEST_SECRET + CONTEXT;

/** A text without its secrets, wherever it is cut into parts. */
export class RedactionStream {
  readonly #redaction: Redaction;
  #before = "";
  #held = "";

  constructor(redaction: Redaction) {
    this.#redaction = redaction;
  }

  /** What can be said of the text so far, without its secrets. */
  push(text: string): string {
    this.#held += text;
    // Looked at anew each time: as much again is worth it.
    return this.#held.length < 4 * HELD ? "" : this.#take(this.#held.length - HELD);
  }

  /** The rest. */
  end(): string {
    return this.#take(this.#held.length);
  }

  #take(most: number): string {
    const context = this.#before.length;
    const spans = this.#redaction
      .spans(this.#before + this.#held)
      .map(([from, to]): Span => [Math.max(0, from - context), to - context])
      .filter(([, to]) => to > 0);
    let cut = most;
    const across = spans.find(([from, to]) => from < cut && to > cut);
    // One that begins the text is longer than any secret: it goes as far as it can be seen.
    if (across) cut = across[0] > 0 ? across[0] : Math.min(across[1], this.#held.length);
    const text = this.#held.slice(0, cut);
    this.#before = (this.#before + text).slice(-CONTEXT);
    this.#held = this.#held.slice(cut);
    return without(
      text,
      spans.filter(([, to]) => to <= cut),
    );
  }
}
