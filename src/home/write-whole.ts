/** Writing a file whole: who reads it finds the old content or the new, never a part, whenever the power goes. */

import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { locked } from "./lock.ts";
import { makeDirectory } from "./make-directory.ts";

/** Replaces a file. One that is there keeps its mode, and a symbolic link to it stays a link. */
export function writeWhole(path: string, data: string | Uint8Array, newMode = 0o600): void {
  makeDirectory(dirname(path));
  const target = followed(path);
  const mode = modeOf(target) ?? newMode;
  const beside = join(dirname(target), `.${basename(target)}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`);
  try {
    const file = openSync(beside, "wx", mode);
    try {
      // The umask holds at open, and must not narrow what the file had.
      fchmodSync(file, mode);
      writeFileSync(file, data);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(beside, target);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
  syncDirectory(dirname(target));
}

/**
 * Changes a file under its lock (`.<name>.lock` beside it): reads it, asks for the new content, writes that whole.
 *
 * @param change Given the content, `undefined` where there is no file. What it throws leaves the file as it was;
 * `undefined` does too.
 */
export async function changeWhole(
  path: string,
  change: (content: string | undefined) => string | undefined,
): Promise<void> {
  makeDirectory(dirname(path));
  await locked(join(dirname(path), `.${basename(path)}.lock`), () => {
    const changed = change(contentOf(path));
    if (changed !== undefined) writeWhole(path, changed);
  });
}

function followed(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function modeOf(path: string): number | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && found.mode & 0o7777;
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function syncDirectory(path: string): void {
  try {
    const directory = openSync(path, "r");
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  } catch {
    // Not every file system lets a directory be synced. The content is whole either way.
  }
}
