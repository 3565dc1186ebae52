/**
 * The file of a journal: JSON lines, appended to, never rewritten in place. Whatever a crash left in it is read as far
 * as it goes.
 */

import { closeSync, fdatasync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import type { JournalStore } from "../engine/ports.ts";
import { flushedAtExit } from "./exit-flush.ts";

/** The newest version of the format that is read. */
const VERSION = 1;

/** Milliseconds that a line is held back at most. */
const LONGEST_HELD = 100;
/** Characters held back at most. */
const MOST_HELD = 64 * 1024;

/** A journal that this release cannot read. Its message says why, and what to do. */
export class UnreadableJournal extends Error {
  override readonly name = "UnreadableJournal";
}

/** What a journal holds. */
export interface ReadJournal {
  /** The objects of its lines, in order, the first one that only says what the file is left out. */
  readonly records: readonly unknown[];
  /** The numbers, from 1, of the lines that hold no object: torn by a crash, or somebody else's. */
  readonly bad: readonly number[];
}

/**
 * A journal, read whole.
 *
 * @throws UnreadableJournal where it is of a newer version, or cannot be read.
 */
export function readJournal(path: string): ReadJournal {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UnreadableJournal(`the journal ${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  const records: unknown[] = [];
  const bad: number[] = [];
  let number = 0;
  for (let from = 0; from < text.length;) {
    const newline = text.indexOf("\n", from);
    const end = newline === -1 ? text.length : newline;
    number += 1;
    if (end > from) {
      const record = objectOf(text.slice(from, end));
      if (!record) bad.push(number);
      else if (record["t"] !== "journal") records.push(record);
      else refuseNewer(path, record["v"]);
    }
    from = end + 1;
  }
  return { records, bad };
}

function objectOf(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    // A power loss leaves a run of NULs, with or without a good record after it.
    return line.includes("\u0000") && line.replaceAll("\u0000", "").trim() !== ""
      ? objectOf(line.replaceAll("\u0000", "").trim())
      : undefined;
  }
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
  #file: number | undefined;
  #held = "";
  #timer: NodeJS.Timeout | undefined;
  /** Whether the last write ended in the middle of a line: the next begins on a line of its own. */
  #torn = false;
  #told = false;
  #syncing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #unlisten = (): void => {};

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
        if (text.length < MOST_HELD) continue;
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
    this.#file = file;
    this.#unlisten = flushedAtExit(() => this.#flushHeld());
  }

  append(line: string, flushed: boolean): void {
    if (this.#file === undefined) {
      if (flushed) throw new Error("the journal is closed");
      return;
    }
    if (flushed) {
      this.#write(`${this.#held}${line}\n`);
      return;
    }
    this.#held += `${line}\n`;
    if (this.#held.length >= MOST_HELD) this.#flushHeld();
    else this.#timer ??= setTimeout(() => this.#flushHeld(), LONGEST_HELD).unref();
  }

  synced(): Promise<void> {
    if (this.#held !== "") {
      try {
        this.#write(this.#held);
      } catch (error) {
        return Promise.reject(error);
      }
    }
    // What is written while a sync runs may have missed it: it waits for the next, with all who come meanwhile.
    if (this.#syncing) return (this.#next ??= this.#syncing.catch(() => {}).then(() => this.#startSync()));
    return this.#startSync();
  }

  async close(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    this.#flushHeld();
    this.#unlisten();
    this.#file = undefined;
    await this.#next?.catch(() => {});
    await this.#syncing?.catch(() => {});
    try {
      fsyncSync(file);
    } catch (error) {
      this.#tell(error);
    }
    closeSync(file);
  }

  #startSync(): Promise<void> {
    this.#next = undefined;
    const file = this.#file;
    if (file === undefined) return Promise.resolve();
    const syncing = new Promise<void>((resolve, reject) => {
      fdatasync(file, (error) => {
        this.#syncing = undefined;
        if (error) reject(error);
        else resolve();
      });
    });
    this.#syncing = syncing;
    return syncing;
  }

  /** @throws Error where it could not be written whole. */
  #write(text: string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#held = "";
    const file = this.#file as number;
    try {
      if (this.#torn) {
        writeWhole(file, `\n${text}`);
        this.#torn = false;
      } else writeWhole(file, text);
    } catch (error) {
      this.#torn = true;
      throw error;
    }
  }

  #flushHeld(): void {
    if (this.#held === "" || this.#file === undefined) return;
    try {
      this.#write(this.#held);
    } catch (error) {
      this.#tell(error);
    }
  }

  #tell(error: unknown): void {
    if (this.#told) return;
    this.#told = true;
    this.#trouble(error as Error);
  }
}

/** One write, where the kernel takes it whole; as many as it asks for otherwise. */
function writeWhole(file: number, text: string): void {
  const written = writeSync(file, text);
  const bytes = Buffer.byteLength(text);
  if (written === bytes) return;
  const rest = Buffer.from(text);
  for (let at = written; at < rest.length;) at += writeSync(file, rest, at);
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
