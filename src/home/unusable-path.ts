/** A path that hmz cannot use as it must, said in one sentence. */

import { statSync } from "node:fs";

/** Raised where a file or directory cannot be made, read or written. Its message is whole, and for people. */
export class UnusablePath extends Error {
  /** The system's own code, as `ENOTDIR`. */
  readonly code: string;

  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "UnusablePath";
    this.code = code;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EROFS: "it is on a file system that is read-only",
  ENAMETOOLONG: "its name is too long",
  ENOTDIR: "something above it is a file, not a directory",
  EISDIR: "it is a directory, not a file",
  EEXIST: "something else is there",
  ENOENT: "nothing can be made there",
  ENOSPC: "no space is left on the disk",
  EDQUOT: "no space is left for you on the disk",
  ELOOP: "its symbolic links lead round in a circle",
};

/** Why the system refused something, as the end of a sentence. */
export function reasonOf(error: unknown): string {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return REASONS[code] ?? message;
}

/** @throws UnusablePath where something is at the path that is not a directory, or it cannot be looked at. */
export function refuseNoDirectory(path: string): void {
  let found;
  try {
    // Undefined too where something above it is a file: whoever asks looks at that first.
    found = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    throw new UnusablePath(`${path} cannot be read: ${reasonOf(error)}`, code, { cause: error });
  }
  if (found && !found.isDirectory()) throw new UnusablePath(`${path} is a file, not a directory`, "ENOTDIR");
}
