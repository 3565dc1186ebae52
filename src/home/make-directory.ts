/**
 * Making directories one at a time. Node's own recursive `mkdir` never ends where a file system answers ENOENT for a
 * directory that cannot be made, as /proc does, and no signal ends it then.
 */

import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { reasonOf, UnusablePath } from "./unusable-path.ts";

/**
 * Makes a directory and those above it that are not there.
 *
 * @returns What was made, the uppermost first; nothing where it is there.
 * @throws UnusablePath
 */
export function makeDirectory(path: string, mode = 0o777): readonly string[] {
  const whole = resolve(path);
  const missing: string[] = [];
  let there = whole;
  while (!isThere(there, whole)) {
    missing.unshift(there);
    const above = dirname(there);
    if (above === there) throw new UnusablePath(`${whole} cannot be made: ${there} is not there`, "ENOENT");
    there = above;
  }
  return missing.filter((directory) => made(directory, whole, mode));
}

function isThere(path: string, whole: string): boolean {
  let found;
  try {
    found = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw refused(whole, path, error);
  }
  if (found && !found.isDirectory()) {
    const what = path === whole ? "it" : path;
    throw new UnusablePath(`${whole} cannot be made: ${what} is a file, not a directory`, "ENOTDIR");
  }
  return found !== undefined;
}

/** Whether this call made it: another process may have been faster. */
function made(directory: string, whole: string, mode: number): boolean {
  try {
    mkdirSync(directory, { mode });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return false;
    throw refused(whole, code === "ENOENT" || code === "EACCES" ? dirname(directory) : directory, error);
  }
}

function refused(whole: string, at: string, error: unknown): UnusablePath {
  const { code = "" } = error as NodeJS.ErrnoException;
  const where = code === "ENOENT" ? `no directory can be made in ${at}` : `${at}: ${reasonOf(error)}`;
  return new UnusablePath(`${whole} cannot be made: ${where}`, code, { cause: error });
}
