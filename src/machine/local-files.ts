/** Files of this machine. */

import { randomBytes } from "node:crypto";
import { access, chmod, chown, constants, mkdir, open, readlink, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { EnvError, EnvFileNotFound, EnvPermissionDenied } from "../flows/errors.ts";

/** @throws EnvFileNotFound @throws EnvPermissionDenied @throws EnvError */
export async function readLocalFile(path: string): Promise<Uint8Array> {
  try {
    const data = await readRegular(path);
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  } catch (error) {
    throw fileError("read", path, error);
  }
}

/**
 * Replaces a file whole: whoever reads it sees all of the old or all of the new. Keeps its mode, and a link to it.
 *
 * @throws EnvPermissionDenied @throws EnvError
 */
export async function writeLocalFile(path: string, data: Uint8Array): Promise<void> {
  try {
    const target = await followLinks(path);
    const there = await statOf(target);
    if (there === undefined) await mkdir(dirname(target), { recursive: true });
    // A rename would replace what may not be written to.
    else await access(target, constants.W_OK);
    // A directory refuses; a device or a pipe is written to as it stands.
    if (there !== undefined && !there.isFile()) return await writeFile(target, data);
    await replace(target, data, there);
  } catch (error) {
    throw fileError("write", path, error);
  }
}

/** @throws EnvPermissionDenied @throws EnvError */
export async function makeLocalDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw fileError("make the directory", path, error);
  }
}

/** A pipe that nobody writes to would be waited for without end, and a device read until memory is full. */
async function readRegular(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const there = await file.stat();
    if (!there.isFile() && !there.isDirectory()) throw new EnvError(`${path} is not a regular file, and is not read`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

type Stat = Awaited<ReturnType<typeof stat>>;

async function replace(target: string, data: Uint8Array, there: Stat | undefined): Promise<void> {
  const draft = join(dirname(target), `.${basename(target).slice(0, 100)}.${randomBytes(6).toString("hex")}.hmz`);
  try {
    await writeFile(draft, data, { flag: "wx" });
  } catch (error) {
    // A file that may be written in a directory that may not: there is no other way than in place.
    if (there !== undefined && ["EACCES", "EPERM", "EROFS"].includes(codeOf(error))) return writeFile(target, data);
    await rm(draft, { force: true });
    throw error;
  }
  try {
    if (there !== undefined) {
      // Another's file stays the other's, where we may give it away.
      await chown(draft, Number(there.uid), Number(there.gid)).catch(() => {});
      await chmod(draft, Number(there.mode) & 0o7777);
    }
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** The file that a path means, its last links followed, whether or not the file is there yet. */
async function followLinks(path: string): Promise<string> {
  let target = path;
  for (let links = 0; links < 40; links += 1) {
    const link = await readlink(target).catch(() => undefined);
    if (link === undefined) return target;
    target = resolve(dirname(target), link);
  }
  throw Object.assign(new Error("links without end"), { code: "ELOOP" });
}

async function statOf(path: string): Promise<Stat | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

function fileError(what: string, path: string, cause: unknown): EnvError {
  if (cause instanceof EnvError) return cause;
  const code = codeOf(cause);
  switch (code) {
    case "ENOENT":
      return new EnvFileNotFound(`cannot ${what} ${path}: there is no such file`, { cause });
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new EnvPermissionDenied(`cannot ${what} ${path}: permission denied`, { cause });
    case "EISDIR":
      return new EnvError(`cannot ${what} ${path}: it is a directory`, { cause });
    case "ENOTDIR":
    case "EEXIST":
      return what === "read"
        ? new EnvFileNotFound(`cannot ${what} ${path}: there is no such file`, { cause })
        : new EnvError(`cannot ${what} ${path}: a part of the path is a file`, { cause });
    default:
      return new EnvError(`cannot ${what} ${path}: ${code || String(cause)}`, { cause });
  }
}
