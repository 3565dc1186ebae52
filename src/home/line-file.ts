/** A file that lines are appended to: alone, or held back for a moment and written together. */

import { closeSync, fstatSync, ftruncateSync, writeSync } from "node:fs";

/** Milliseconds that a line is held back at most. */
const LONGEST_HELD = 100;
/** Characters held back before they are written. */
const MOST_HELD = 64 * 1024;
/** Characters kept for a disk that is full, in case it gets room again. */
const MOST_KEPT = 256 * 1024;

export class LineFile {
  readonly #file: number;
  readonly #trouble: (error: Error) => void;
  /** Bytes that hold whole lines. */
  #size: number;
  #held = "";
  /** How much is held when it is written next. */
  #due = MOST_HELD;
  #timer: NodeJS.Timeout | undefined;
  /** Whether the file ends in the middle of a line: the next begins on a line of its own. */
  #torn = false;
  #told = false;

  /**
   * @param file A file opened to append to, that nobody else writes to.
   * @param trouble Told of the first held line that could not be written, and of no other.
   */
  constructor(file: number, trouble: (error: Error) => void) {
    this.#file = file;
    this.#trouble = trouble;
    this.#size = fstatSync(file).size;
  }

  /**
   * Writes a line, with every one held back before it, in one write.
   *
   * @throws Error where it could not be written: nothing of it is in the file then. What was held back stays so.
   */
  write(line: string): void {
    this.#append(`${this.#held}${line}\n`);
  }

  /** Holds a line back, a tenth of a second at most. Never throws. */
  hold(line: string): void {
    this.#held += `${line}\n`;
    if (this.#held.length >= this.#due) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), LONGEST_HELD).unref();
  }

  /** Writes what is held back. @throws Error where it could not be written. */
  flushed(): void {
    if (this.#held !== "") this.#append(this.#held);
  }

  /** The same, but never throws. */
  flush(): void {
    try {
      this.flushed();
    } catch (error) {
      this.tell(error);
    }
  }

  /** Tells of the first trouble. Never throws: whoever is told has its own, and the run goes on. */
  tell(error: unknown): void {
    if (this.#told) return;
    this.#told = true;
    try {
      this.#trouble(error instanceof Error ? error : new Error(String(error)));
    } catch {
      // Told all the same.
    }
  }

  /** Closes the file. What is held back is lost. Never throws. */
  close(): void {
    clearTimeout(this.#timer);
    this.#held = "";
    try {
      closeSync(this.#file);
    } catch (error) {
      this.tell(error);
    }
  }

  #append(lines: string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.#torn ? `\n${lines}` : lines;
    try {
      this.#size += writeWhole(this.#file, text);
    } catch (error) {
      this.#takeBack();
      throw error;
    }
    this.#torn = false;
    this.#held = "";
    this.#due = MOST_HELD;
  }

  /**
   * Cuts off what a write that failed half-way left: the line would be read later, though whoever wrote it was told that
   * it could not be written.
   */
  #takeBack(): void {
    try {
      ftruncateSync(this.#file, this.#size);
      this.#due = this.#held.length + MOST_HELD;
      if (this.#held.length <= MOST_KEPT) return;
    } catch {
      this.#torn = true;
    }
    this.#held = "";
    this.#due = MOST_HELD;
  }
}

/** Writes text and returns its bytes: one write, where the kernel takes it whole; as many as it asks for otherwise. */
export function writeWhole(file: number, text: string): number {
  const bytes = Buffer.byteLength(text);
  const written = writeSync(file, text);
  if (written === bytes) return bytes;
  const rest = Buffer.from(text);
  for (let at = written; at < bytes;) at += writeSync(file, rest, at);
  return bytes;
}
