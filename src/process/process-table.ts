/**
 * The processes of this machine, as its kernel tells them: /proc on Linux, `ps` elsewhere. A pid alone names nobody,
 * since it is given again; a pid with the time at which it started does.
 */

import { spawnSync } from "node:child_process";
import { closeSync, openSync, readSync, readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** A process that lives. A zombie does not. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** When it started, in the kernel's own words: compared, never read. */
  readonly start: string;
}

/** Every living process, with the marks that each carries. */
export interface ProcessTable {
  readonly entries: ReadonlyMap<number, ProcessEntry>;
  /** By pid; nothing for a process without marks. */
  readonly marks: ReadonlyMap<number, readonly string[]>;
}

/** The variable that carries the marks of a tree to everything that it starts. */
export const MARK_VARIABLE = "HMZ_MARK";

/** The pid of the kernel's own parent of all its threads, on Linux. */
const KERNEL = 2;

const LINUX = process.platform === "linux";

/** Whether the system shows the marks of a process. Without, a tree is its group and what descends from it. */
export const SHOWS_MARKS = LINUX;

let last: { readonly table: ProcessTable; readonly begun: number; readonly cost: number } | undefined;

/** The processes as they are now. */
export function processTable(): ProcessTable {
  const begun = performance.now();
  const entries = LINUX ? readProc() : readPs();
  const marks = new Map<number, readonly string[]>();
  for (const { pid, parent } of entries.values()) {
    // What the kernel runs itself has no environment.
    if (parent === KERNEL) continue;
    const carried = marksOf(pid);
    if (carried.length > 0) marks.set(pid, carried);
  }
  const table = { entries, marks };
  last = { table, begun, cost: performance.now() - begun };
  return table;
}

/**
 * The processes as they were at that time (of `performance.now`) or later. One reading serves all who ask, and readings
 * take a fifth of the time at most: a thousand trees that end at once do not read /proc a thousand times.
 */
export async function processTableSince(time: number): Promise<ProcessTable> {
  for (;;) {
    if (last === undefined) return processTable();
    if (last.begun >= time) return last.table;
    const wait = last.begun + 5 * last.cost - performance.now();
    if (wait <= 0) return processTable();
    await delay(wait);
  }
}

/** One process, read now; `undefined` where no such one lives. */
export function processEntry(pid: number): ProcessEntry | undefined {
  if (!LINUX) return readPs(pid).get(pid);
  const stat = readSmall(`/proc/${pid}/stat`);
  return stat === undefined ? undefined : parseStat(stat.toString("latin1"));
}

/**
 * The marks that a process carries in the environment that it was started with, outermost first. Empty where it has
 * none, where it is another user's, and where the system does not show it.
 */
export function marksOf(pid: number): readonly string[] {
  if (!LINUX) return [];
  const environ = readSmall(`/proc/${pid}/environ`);
  return environ === undefined ? [] : marksIn(environ);
}

function marksIn(environ: Buffer): readonly string[] {
  const name = `${MARK_VARIABLE}=`;
  let at = environ.indexOf(name);
  // Only at the start of an entry: the same words inside another variable's value are no mark.
  while (at > 0 && environ[at - 1] !== 0) at = environ.indexOf(name, at + 1);
  if (at === -1) return [];
  const end = environ.indexOf(0, at);
  return environ.toString("latin1", at + name.length, end === -1 ? environ.length : end).split(":");
}

/** The pid that was given last, on Linux: what was started after a process lies between its pid and this one. */
export function lastPid(): number | undefined {
  if (!LINUX) return undefined;
  const load = readSmall("/proc/loadavg");
  const given = Number(load?.toString("latin1").trim().split(" ").at(-1));
  return Number.isSafeInteger(given) && given > 0 ? given : undefined;
}

function readProc(): ReadonlyMap<number, ProcessEntry> {
  const entries = new Map<number, ProcessEntry>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isSafeInteger(pid) || pid <= 0) continue;
    const entry = processEntry(pid);
    if (entry !== undefined) entries.set(pid, entry);
  }
  return entries;
}

function parseStat(stat: string): ProcessEntry | undefined {
  // The name stands in parentheses and may hold spaces and parentheses itself: the fields start after the last one.
  const open = stat.indexOf(" (");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent, group, session] = fields;
  const start = fields[19];
  if (open === -1 || start === undefined || state === "Z" || state === "X") return undefined;
  return {
    pid: Number(stat.slice(0, open)),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    start,
  };
}

// ── what a profile asks of one process ──────────────────────────────────────────────────────────────────────────────

/** Whether the kernel says what a process does while it does it: the profile of a run reads it. */
export const SHOWS_THREADS = LINUX;

/** A thread of a process, with the seconds of a processor that it has used. */
export interface ThreadEntry {
  readonly tid: number;
  /** As in `ProcessEntry`. */
  readonly start: string;
  readonly cpu: number;
}

/** The kernel's ticks in a second, wherever Linux runs today. */
const TICKS = 100;

/** When a process with a start began: Unix seconds, as good as a hundredth. Linux alone. */
export function beganAt(start: string): number {
  bootedAt ??= Date.now() / 1_000 - Number(readSmall("/proc/uptime")?.toString("latin1").split(" ")[0] ?? "0");
  return Math.round((bootedAt + Number(start) / TICKS) * 1_000) / 1_000;
}

let bootedAt: number | undefined;

/** The ids of a process's threads; none where it is gone. Linux alone. */
export function threadsOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

/** The processes that one thread started and that live. Linux alone. */
export function startedBy(pid: number, tid: number): readonly number[] {
  const children = readSmall(`/proc/${pid}/task/${tid}/children`);
  return children === undefined || children.length === 0
    ? []
    : children.toString("latin1").trim().split(" ").map(Number);
}

/** Linux alone. */
export function threadEntry(pid: number, tid: number): ThreadEntry | undefined {
  const stat = readSmall(`/proc/${pid}/task/${tid}/stat`)?.toString("latin1");
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system, start] = [fields?.[11], fields?.[12], fields?.[19]];
  if (start === undefined) return undefined;
  return { tid, start, cpu: (Number(user) + Number(system)) / TICKS };
}

/** What a process was started with, or calls itself; empty for one without. Linux alone. */
export function argvOf(pid: number): readonly string[] {
  const text = readSmall(`/proc/${pid}/cmdline`)?.toString("utf8") ?? "";
  return text === "" ? [] : text.replace(/\0$/, "").split("\0");
}

let small = Buffer.allocUnsafe(64 * 1024);

/** A file of /proc, whole; `undefined` where the process is gone or not ours to read. Valid until the next call. */
function readSmall(path: string): Buffer | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    let size = 0;
    for (;;) {
      const got = readSync(file, small, size, small.length - size, null);
      size += got;
      if (got === 0) return small.subarray(0, size);
      if (size === small.length) small = Buffer.concat([small], 2 * small.length);
    }
  } catch {
    return undefined;
  } finally {
    closeSync(file);
  }
}

function readPs(pid?: number): ReadonlyMap<number, ProcessEntry> {
  const entries = new Map<number, ProcessEntry>();
  const which = pid === undefined ? ["-A"] : ["-p", String(pid)];
  const ps = spawnSync("/bin/ps", [...which, "-o", "pid=,ppid=,pgid=,stat=,lstart="], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: { LC_ALL: "C" },
  });
  for (const line of (ps.stdout ?? "").split("\n")) {
    const [pid, parent, group, state, ...start] = line.trim().split(/\s+/);
    if (pid === undefined || state === undefined || state.startsWith("Z")) continue;
    // macOS tells a session by an address. The group says enough: whoever leads a session leads a group.
    entries.set(Number(pid), {
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      session: Number(group),
      start: start.join(" "),
    });
  }
  return entries;
}
