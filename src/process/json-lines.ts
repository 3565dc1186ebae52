/** JSON messages, one a line, among whatever else a program prints. */

import { Batches } from "./batches.ts";
import { lastWhole } from "./bounded-tail.ts";
import { LineSplitter } from "./lines.ts";
import type { Line, LineOptions } from "./lines.ts";

export type JsonLine =
  | { readonly kind: "json"; readonly value: unknown }
  /** A line that is no JSON value of its own: a log line, an update notice, two messages glued. At most 4 KiB of it. */
  | { readonly kind: "note"; readonly text: string };

const NOTE = 4096;

/** What a line holds; `undefined` for an empty one. Never throws: a bad line is a note, and the stream goes on. */
export function parseJsonLine(line: Line): JsonLine | undefined {
  if (line.kind === "too-long")
    return { kind: "note", text: `(a line of ${line.bytes} bytes, too long to read) ${bounded(line.head)}` };
  const { text } = line;
  if (opensJson(text)) {
    try {
      return { kind: "json", value: JSON.parse(text) as unknown };
    } catch {
      return { kind: "note", text: bounded(text) };
    }
  }
  return text.trim() === "" ? undefined : { kind: "note", text: bounded(text) };
}

/** The messages of a stream of chunks, and what else is on it. */
export function readJsonLines(
  chunks: AsyncIterable<Uint8Array>,
  options: LineOptions = {},
): AsyncIterableIterator<JsonLine> {
  const lines = new LineSplitter(options);
  return new Batches(chunks, {
    push: (chunk) => parsed(lines.push(chunk)),
    flush: () => parsed(lines.flush()),
  });
}

function parsed(lines: readonly Line[]): readonly JsonLine[] {
  const messages: JsonLine[] = [];
  for (const line of lines) {
    const message = parseJsonLine(line);
    if (message !== undefined) messages.push(message);
  }
  return messages;
}

/**
 * Whether a line starts as an object or an array. A message is one of the two; a bare word or number that happens to
 * be JSON is what a program prints for people.
 */
function opensJson(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x7b || code === 0x5b) return true;
    if (code !== 0x20 && code !== 0x09 && code !== 0x0d) return false;
  }
  return false;
}

function bounded(text: string): string {
  if (text.length <= NOTE) {
    const size = Buffer.byteLength(text);
    if (size <= NOTE) return text;
  }
  const bytes = Buffer.from(text.slice(0, NOTE));
  const head = bytes.subarray(0, NOTE);
  const left = Buffer.byteLength(text) - head.length;
  return `${head.toString("utf8", 0, lastWhole(head))}… (${left} more bytes)`;
}
