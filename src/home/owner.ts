/** Which process holds something: its id and its start, for an id alone is given to another process in time. */

import { readFileSync } from "node:fs";

export interface Owner {
  readonly pid: number;
  /** When it started, in ticks since the machine's own start; absent where the system does not tell. */
  readonly start?: number;
}

/** This process. */
export function thisOwner(): Owner {
  const start = startOf(process.pid);
  return { pid: process.pid, ...(start === undefined ? {} : { start }) };
}

/** Whether the process that an owner names is still there. */
export function isAlive(owner: Owner): boolean {
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    // EPERM: there, and somebody else's.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  const start = startOf(owner.pid);
  return owner.start === undefined || start === undefined || start === owner.start;
}

/** An owner as a lock file holds it; `undefined` for text that is none. */
export function parseOwner(text: string): Owner | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { pid, start } = value as Record<string, unknown>;
  // kill(0) and kill(-1) ask about groups.
  if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return { pid, ...(typeof start === "number" ? { start } : {}) };
}

function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name in parentheses, and may hold spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie is over.
    if (fields[0] === "Z") return -1;
    const start = Number(fields[19]);
    return Number.isSafeInteger(start) ? start : undefined;
  } catch {
    return undefined;
  }
}
