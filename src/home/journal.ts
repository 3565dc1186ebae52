/**
 * The file of a journal: JSON lines, appended to, never rewritten in place. Whatever a crash left in it is read as far
 * as it goes.
 */

import { isUtf8 } from "node:buffer";
import { randomBytes } from "node:crypto";
import { closeSync, fdatasync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { JournalStore } from "../engine/ports.ts";
import { flushedAtExit } from "./exit-flush.ts";
import { LineFile, writeWhole } from "./line-file.ts";

/** The newest version of the format that is read. */
const VERSION = 1;

/** A journal that this release cannot read. Its message says why, and what to do. */
export class UnreadableJournal extends Error {
  override readonly name = "UnreadableJournal";
}

/** What a journal holds. */
export interface ReadJournal {
  /** The objects of its lines, in order, the first one that only says what the file is left out. */
  readonly records: readonly unknown[];
  /** The numbers, from 1, of the lines that are not one object and no more: torn by a crash, or somebody else's. */
  readonly bad: readonly number[];
}

/**
 * A journal, read whole.
 *
 * @throws UnreadableJournal where it is of a newer version, or cannot be read.
 */
export function readJournal(path: string): ReadJournal {
  const records: unknown[] = [];
  const bad: number[] = [];
  let number = 0;
  const read = (line: string): void => {
    number += 1;
    if (line === "") return;
    const record = objectOf(line);
    if (record) take(record);
    else {
      bad.push(number);
      for (const rescued of besideNuls(line)) take(rescued);
    }
  };
  const take = (record: Fields): void => {
    if (record["t"] !== "journal") records.push(record);
    else refuseNewer(path, record["v"]);
  };
  for (const part of partsOf(path)) {
    if (isUtf8(part)) {
      const text = part.toString("utf8");
      for (let from = 0, end = 0; from < text.length; from = end + 1) {
        end = text.indexOf("\n", from);
        if (end === -1) end = text.length;
        read(text.slice(from, end));
      }
      continue;
    }
    // Decoding would put another character in place of what is none, and a value that nobody set in place of one.
    for (let from = 0, end = 0; from < part.length; from = end + 1) {
      end = part.indexOf(NEWLINE, from);
      if (end === -1) end = part.length;
      const line = part.subarray(from, end);
      read(isUtf8(line) ? line.toString("utf8") : NO_TEXT);
    }
  }
  return { records, bad };
}

type Fields = Readonly<Record<string, unknown>>;

/** Bytes that are read and written at once. */
const PART = 4 * 1024 * 1024;
const NEWLINE = 0x0a;
/** Stands for a line that is no text. */
const NO_TEXT = "\uFFFD";

/** A file in parts that end where a line does: a whole journal may be longer than a string can be. */
function* partsOf(path: string): Generator<Buffer> {
  let file: number | undefined;
  try {
    // Opening a pipe would wait for whoever writes to it.
    if (!statSync(path).isFile()) throw new Error("it is no file");
    file = openSync(path, "r");
    // What is left of the part before, in pieces: a line may be longer than many parts.
    let begun: Buffer[] = [];
    for (;;) {
      const buffer = Buffer.allocUnsafe(PART);
      const got = readSync(file, buffer, 0, PART, null);
      if (got === 0) break;
      const last = buffer.subarray(0, got).lastIndexOf(NEWLINE);
      if (last === -1) begun.push(buffer.subarray(0, got));
      else {
        const rest = buffer.subarray(last + 1, got);
        yield Buffer.concat([...begun, buffer.subarray(0, last + 1)]);
        begun = [rest];
      }
    }
    const rest = Buffer.concat(begun);
    if (rest.length > 0) yield rest;
  } catch (error) {
    throw new UnreadableJournal(`the journal ${path} cannot be read: ${(error as Error).message}`, { cause: error });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function objectOf(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * What stands whole before and after the NULs that a power loss left in a line. What stands between two runs of them may
 * be a piece of something larger.
 */
function besideNuls(line: string): readonly Fields[] {
  const from = line.indexOf("\0");
  if (from === -1) return [];
  const around = [line.slice(0, from), line.slice(line.lastIndexOf("\0") + 1)];
  return around.map(objectOf).filter((record) => record !== undefined);
}

function refuseNewer(path: string, version: unknown): void {
  if (version === VERSION) return;
  throw new UnreadableJournal(
    `the journal ${path} is of version ${JSON.stringify(version)}, and this hmz reads version ${VERSION}: resume it with the hmz that wrote it`,
  );
}

/**
 * A journal to write to.
 *
 * @param options.earlier What the run that is picked up left.
 * @param options.durable Whether what a state holds is to be on disk before anything leaves the process.
 * @param options.trouble Told once of a line that was held back and could not be written.
 */
export function openJournal(options: {
  readonly path: string;
  readonly earlier?: readonly unknown[] | undefined;
  readonly durable?: boolean | undefined;
  readonly trouble: (error: Error) => void;
}): JournalStore {
  return new JournalFile(options);
}

class JournalFile implements JournalStore {
  readonly earlier: readonly unknown[] | undefined;
  readonly durable: boolean;
  readonly #path: string;
  readonly #trouble: (error: Error) => void;
  #open: { readonly file: number; readonly lines: LineFile; readonly unlisten: () => void } | undefined;
  /** The sync under way, and the one that whoever comes meanwhile waits for. */
  #syncing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  /** What a sync failed with. The kernel forgets what it could not write: a later sync would succeed without it. */
  #lost: Error | undefined;

  constructor({ path, earlier, durable = false, trouble }: Parameters<typeof openJournal>[0]) {
    this.#path = path;
    this.earlier = earlier;
    this.durable = durable;
    this.#trouble = trouble;
  }

  begin(lines: Iterable<string>): void {
    // Beside, then renamed: a run that is killed here leaves the whole of the one before, or the whole of this.
    const beside = `${this.#path}.${process.pid}-${randomBytes(4).toString("hex")}`;
    const file = openSync(beside, "ax", 0o600);
    try {
      let text = "";
      for (const line of lines) {
        text += `${line}\n`;
        if (text.length < PART) continue;
        writeWhole(file, text);
        text = "";
      }
      writeWhole(file, text);
      fsyncSync(file);
      renameSync(beside, this.#path);
      syncDirectory(dirname(this.#path));
    } catch (error) {
      closeSync(file);
      rmSync(beside, { force: true });
      throw error;
    }
    const opened = new LineFile(file, this.#trouble);
    this.#open = { file, lines: opened, unlisten: flushedAtExit(() => opened.flush()) };
  }

  append(line: string, flushed: boolean): void {
    if (!this.#open || this.#closing) {
      if (flushed) throw new Error("the journal is closed");
      return;
    }
    const { lines } = this.#open;
    if (flushed) lines.write(line);
    else lines.hold(line);
  }

  synced(): Promise<void> {
    // What is written while a sync runs may have missed it: it waits for the next, with all who come meanwhile.
    return (this.#next ??= this.#syncedNext());
  }

  async #syncedNext(): Promise<void> {
    await this.#syncing?.catch(() => {});
    // Those who waited for the last one write again first: else one of them has the next to itself.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    return this.#sync();
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    if (!this.#open) return;
    const { lines, unlisten } = this.#open;
    await this.synced().catch((error: unknown) => lines.tell(error));
    // Others may have asked for one meanwhile: it is not to find its file closed, or another one in its place.
    while (this.#next ?? this.#syncing) await (this.#next ?? this.#syncing)?.catch(() => {});
    unlisten();
    this.#open = undefined;
    lines.close();
  }

  #sync(): Promise<void> {
    this.#next = undefined;
    if (this.#lost) return Promise.reject(this.#lost);
    if (!this.#open) return Promise.resolve();
    const { file, lines } = this.#open;
    try {
      lines.flushed();
    } catch (error) {
      return Promise.reject(error);
    }
    return (this.#syncing = new Promise<void>((resolve, reject) => {
      fdatasync(file, (error) => {
        this.#syncing = undefined;
        if (!error) return resolve();
        this.#lost = error;
        reject(error);
      });
    }));
  }
}

/** A rename is on disk once its directory is. */
function syncDirectory(path: string): void {
  let directory: number;
  try {
    directory = openSync(path, "r");
  } catch {
    return;
  }
  try {
    fsyncSync(directory);
  } catch {
    // Not every file system syncs directories.
  } finally {
    closeSync(directory);
  }
}
