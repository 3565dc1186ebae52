/** A file that somebody asked for: whole or not at all, and in nobody else's place. */

import { randomBytes } from "node:crypto";
import { link, open, rename, rm, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { reasonOf, UnusablePath } from "./unusable-path.ts";

/**
 * Makes a file, 0600. What is written is beside it until it is whole.
 *
 * @param path Absolute. @param force Whether a file that is there is replaced.
 * @throws UnusablePath where something is there already, or it cannot be written. What `write` throws passes.
 */
export async function newFile<T>(path: string, force: boolean, write: (file: FileHandle) => Promise<T>): Promise<T> {
  await refuseTaken(path, force);
  const beside = join(
    dirname(path),
    `.${basename(path).slice(0, 100)}.${process.pid}-${randomBytes(4).toString("hex")}.tmp`,
  );
  const file = await open(beside, "wx", 0o600).catch((error: unknown) => {
    throw unwritable(path, error);
  });
  try {
    let made: T;
    try {
      made = await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await place(beside, path, force);
    return made;
  } catch (error) {
    // A disk that is full, a file system that takes no more: the rest has a sentence of its own.
    throw isSystemError(error) ? unwritable(path, error) : error;
  } finally {
    await rm(beside, { force: true });
  }
}

/** @throws UnusablePath where a file cannot be made at a path, before the work that it takes to fill it. */
export async function refuseTaken(path: string, force: boolean): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw unwritable(path, error);
  });
  if (!found) return;
  if (!found.isFile()) {
    const what = found.isDirectory() ? "a directory" : "no plain file";
    throw new UnusablePath(`${path} is ${what}: name a file to be written`, "EEXIST");
  }
  if (!force) throw new UnusablePath(`${path} is there already: name another file, or give --force`, "EEXIST");
}

async function place(beside: string, path: string, force: boolean): Promise<void> {
  if (force) return rename(beside, path);
  try {
    // A rename would replace what was made there meanwhile.
    await link(beside, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return refuseTaken(path, false);
    // Not every file system knows links.
    await refuseTaken(path, false);
    await rename(beside, path);
  }
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}

function unwritable(path: string, error: unknown): UnusablePath {
  const { code = "" } = error as NodeJS.ErrnoException;
  const where = code === "ENOENT" ? `${dirname(path)} is not there` : reasonOf(error);
  return new UnusablePath(`${path} cannot be written: ${where}`, code, { cause: error });
}
