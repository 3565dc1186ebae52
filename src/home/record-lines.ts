/**
 * The objects of a file of JSON lines, a part at a time: the record of a night is larger than what may be held at once.
 * Whatever a crash left in it is passed over and counted.
 */

import { closeSync, openSync, readSync } from "node:fs";

export type RecordLine = Readonly<Record<string, unknown>>;

/** One part of a file: the objects of so many of its lines. */
export interface RecordPart {
  readonly records: readonly RecordLine[];
  /** Lines of this part that hold no object: torn by a crash, or somebody else's. */
  readonly bad: number;
}

/** Bytes that are read at once. */
const PART = 1024 * 1024;
/** A longer line is no record of ours. It is passed over without being held. */
const MOST_LINE = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * A file's objects, in order, part by part. A file that is not there is an empty one.
 *
 * @throws Error where it is there and cannot be read.
 */
export function* recordParts(path: string): Generator<RecordPart> {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  try {
    for (const lines of lineParts(file)) yield partOf(lines);
  } finally {
    closeSync(file);
  }
}

function partOf(lines: readonly (string | undefined)[]): RecordPart {
  const records: RecordLine[] = [];
  let bad = 0;
  for (const line of lines) {
    const record = line === undefined ? undefined : recordOf(line);
    if (record === "blank") continue;
    if (record) records.push(record);
    else bad += 1;
  }
  return { records, bad };
}

/** A file's objects, in order. @throws as `recordParts`. */
export function* recordLines(path: string, bad: () => void = () => {}): Generator<RecordLine> {
  for (const part of recordParts(path)) {
    for (let count = 0; count < part.bad; count += 1) bad();
    yield* part.records;
  }
}

/**
 * The lines of an open file, without their newlines, part by part; `undefined` stands for one that is too long to be
 * held.
 */
export function* lineParts(file: number, mostLine = MOST_LINE): Generator<(string | undefined)[]> {
  const buffer = Buffer.allocUnsafe(PART);
  let held: Buffer[] = [];
  let size = 0;
  let tooLong = false;
  const end = (rest: Uint8Array): string | undefined => {
    const line = tooLong || size + rest.length > mostLine ? undefined : Buffer.concat([...held, rest]).toString("utf8");
    held = [];
    size = 0;
    tooLong = false;
    return line;
  };
  for (;;) {
    const got = readSync(file, buffer, 0, buffer.length, null);
    if (got === 0) break;
    const lines: (string | undefined)[] = [];
    let from = 0;
    for (let at = buffer.indexOf(NEWLINE); at !== -1 && at < got; at = buffer.indexOf(NEWLINE, from)) {
      lines.push(end(buffer.subarray(from, at)));
      from = at + 1;
    }
    size += got - from;
    if (size > mostLine) {
      tooLong = true;
      held = [];
    } else if (from < got) held.push(Buffer.from(buffer.subarray(from, got)));
    yield lines;
  }
  if (size > 0) yield [end(Buffer.alloc(0))];
}

function recordOf(line: string): RecordLine | "blank" | undefined {
  // A power loss leaves a run of NULs, with or without a good record after it.
  const text = line.replaceAll("\u0000", "").trim();
  if (text === "") return line === "" ? "blank" : undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as RecordLine) : undefined;
  } catch {
    return undefined;
  }
}
