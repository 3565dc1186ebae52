/**
 * Appends JSON lines to a file for as long as a run goes, and never stands in its way: a record is never waited for,
 * and a disk that is full or gone loses records, not the run.
 */

import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";

/** Characters held back at most before they are written. */
const MOST_HELD = 64 * 1024;
/** Milliseconds that a record is held back at most. */
const LONGEST_HELD = 100;

export interface Appender {
  /** Never throws. */
  readonly append: (record: object) => void;
  /** Hands what is held back to the kernel. */
  readonly flush: () => void;
  /** Flushes, syncs, closes. Once. */
  readonly close: () => void;
}

/**
 * Opens a file to append to.
 *
 * @param held Whether records may be held back for a tenth of a second and written together.
 * @param trouble Told of the first record that could not be written, and of no other.
 * @throws Error where the file cannot be opened.
 */
export function appender(path: string, held: boolean, trouble: (error: Error) => void): Appender {
  const file = openSync(path, "a", 0o600);
  let waiting = "";
  let timer: NodeJS.Timeout | undefined;
  let open = true;
  let troubled = false;
  // A write that failed half-way leaves a torn line: the next record begins on a line of its own.
  let torn = false;

  const note = (error: unknown): void => {
    if (troubled) return;
    troubled = true;
    try {
      trouble(error instanceof Error ? error : new Error(String(error)));
    } catch {
      // Whoever is told has its own troubles; the run goes on.
    }
  };
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting === "") return;
    const bytes = Buffer.from(torn ? `\n${waiting}` : waiting);
    waiting = "";
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(file, bytes, written);
      torn = false;
    } catch (error) {
      if (written > 0) torn = bytes[written - 1] !== 0x0a;
      note(error);
    }
  };

  return {
    append(record) {
      if (!open) return;
      try {
        waiting += `${JSON.stringify(record)}\n`;
      } catch (error) {
        note(error);
        return;
      }
      if (!held || waiting.length >= MOST_HELD) flush();
      else timer ??= setTimeout(flush, LONGEST_HELD).unref();
    },
    flush,
    close() {
      if (!open) return;
      open = false;
      flush();
      try {
        fsyncSync(file);
      } catch (error) {
        note(error);
      }
      closeSync(file);
    },
  };
}
