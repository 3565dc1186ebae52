/**
 * Appends JSON lines to a file for as long as a run goes, and never stands in its way: a record is never waited for,
 * and a disk that is full or gone loses records, not the run.
 */

import { fsyncSync, openSync } from "node:fs";
import { LineFile } from "./line-file.ts";

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
  const lines = new LineFile(file, trouble);
  let open = true;
  return {
    append(record) {
      if (!open) return;
      try {
        const line = JSON.stringify(record);
        if (held) lines.hold(line);
        else lines.write(line);
      } catch (error) {
        lines.tell(error);
      }
    },
    flush: () => {
      if (open) lines.flush();
    },
    close() {
      if (!open) return;
      open = false;
      lines.flush();
      try {
        fsyncSync(file);
      } catch (error) {
        lines.tell(error);
      }
      lines.close();
    },
  };
}
