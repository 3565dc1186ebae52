/**
 * A lock file: one holder at a time, across processes. Node has no flock, so the file says who holds it, and the lock
 * of a process that is gone is taken over.
 */

import { randomBytes } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as later } from "node:timers/promises";
import { isAlive, parseOwner, thisOwner } from "./owner.ts";

/** Milliseconds between two tries. */
const STEP = 20;

/**
 * Runs a function while this process holds a lock.
 *
 * @throws Error where another process held it for the whole wait.
 */
export async function locked<T>(path: string, run: () => T | Promise<T>, wait = 30_000): Promise<T> {
  const until = Date.now() + wait;
  while (!taken(path)) {
    if (Date.now() >= until) {
      throw new Error(`${path} is held by another hmz: wait for it to finish, or remove the file if none is running`);
    }
    await later(STEP);
  }
  try {
    return await run();
  } finally {
    rmSync(path, { force: true });
  }
}

/** Locks by their paths, for what is held longer than one function runs. */
export const locks = {
  /** Whether it was taken. A lock that this process has already is not free. @param note Kept in the file. */
  take: (path: string, note: object): boolean => taken(path, note) || taken(path, note),
  drop: (path: string): void => rmSync(path, { force: true }),
  locked: <T>(path: string, run: () => Promise<T>): Promise<T> => locked(path, run),
};

function taken(path: string, note: object = {}): boolean {
  const mine = `${path}.${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    writeFileSync(mine, JSON.stringify({ ...note, ...thisOwner() }), { flag: "wx", mode: 0o600 });
    // A link appears whole, with its content: nobody reads a lock that does not yet say whose it is.
    linkSync(mine, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(mine, { force: true });
  }
  putAside(path);
  return false;
}

/** Takes away the lock of a process that is gone, so that the next try finds none. */
function putAside(path: string): void {
  if (isHeld(path)) return;
  const aside = `${path}.${process.pid}-${randomBytes(4).toString("hex")}.gone`;
  try {
    renameSync(path, aside);
  } catch {
    // Another process was faster.
    return;
  }
  try {
    // Between the look and the rename, another may have put it aside and taken the lock: give that one back.
    if (isHeld(aside)) linkSync(aside, path);
  } catch {
    // Taken again already.
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Whether the process that a lock file names is still there. A file that names none is held by nobody. */
export function isHeld(path: string): boolean {
  try {
    const owner = parseOwner(readFileSync(path, "utf8"));
    return owner !== undefined && isAlive(owner);
  } catch (error) {
    // A lock that may not be read is somebody's.
    return (error as NodeJS.ErrnoException).code === "EACCES";
  }
}
