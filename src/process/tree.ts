/**
 * The tree of a child: what it started, and what those started, wherever they went. A child leads a session of its
 * own, and its environment carries a mark; whatever is in its group, descends from it, or carries the mark is its
 * tree. Nothing else is signalled: no name is compared, and a pid counts only with the start time it was seen with.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  processTableSince,
  lastPid,
  MARK_VARIABLE,
  marksOf,
  processEntry,
  processTable,
  SHOWS_MARKS,
} from "./process-table.ts";
import type { ProcessEntry, ProcessTable } from "./process-table.ts";

/** How long something may take to go after KILL before it is given up: only a process stuck in the kernel does. */
const KILL_PATIENCE = 10_000;
/** How many pids are looked at one by one, rather than all of /proc. */
const NEAR = 256;

/** A process that is meant, and not another one that was given its pid. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly start: string;
}

/** Signals a process if it is still the one that is meant. Returns whether it was. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  // A pid of 0 or less means whole groups to the kernel, 1 is everybody's parent, and ourselves we never mean.
  if (!Number.isSafeInteger(identity.pid) || identity.pid <= 1 || identity.pid === process.pid) return false;
  if (!lives(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch {
    return false;
  }
}

function lives(identity: ProcessIdentity): boolean {
  return processEntry(identity.pid)?.start === identity.start;
}

/** A mark of a run: given to `startChild`, kept by whoever must find what the run left behind, given to `sweep`. */
export function newMark(): string {
  return randomBytes(12).toString("base64url");
}

/** The mark of whatever this process starts for no run in particular. */
export const processMark = newMark();

/** The mark of one tree: the run's, this process's where it has none, and one of its own. */
export function treeMark(runMark: string = processMark): string {
  if (!/^[\w-]+$/.test(runMark))
    throw new RangeError(`a mark is letters, digits, "-" and "_", not ${JSON.stringify(runMark)}`);
  return `${runMark}.${newMark()}`;
}

/**
 * The value of the mark's variable for a tree. It keeps the marks of the run that this process is itself a part of, so
 * that the outer one still finds everything.
 */
export function markValue(mark: string): string {
  const outer = process.env[MARK_VARIABLE];
  return outer === undefined || outer === "" ? mark : `${outer}:${mark}`;
}

const living = new Set<ProcessTree>();
/** The roots that have not been reaped: their pids are pinned, and each belongs to its own tree. */
const roots = new Set<number>();

/** The heads of the trees that live: the programs that hmz itself started, and not its flow's own code. */
export function treeHeads(): ReadonlySet<number> {
  return roots;
}

/** Kills every tree that still lives, at once and without waiting: the last thing that a process does. */
export function killTrees(): void {
  if (living.size === 0) return;
  const table = processTable();
  for (const tree of living) tree.kill(table);
}

export interface TreeOptions {
  readonly pid: number;
  readonly mark: string;
  /** Whether the root is the leash: it takes in what loses its parent, and goes only once nothing is left. */
  readonly leashed: boolean;
}

export class ProcessTree {
  readonly #pid: number;
  readonly #mark: string;
  readonly #leashed: boolean;
  /** Everything seen so far, by pid: a process stays ours when it loses its parent and leaves the group. */
  readonly #seen = new Map<number, ProcessEntry>();
  #rootEnded = false;
  /** Whether the group was seen empty: its number may be somebody else's from then on. */
  #groupEnded = false;
  /** Whether the root can have left something that only a look at every process would find. */
  #lost = true;
  #onRootEnded: (() => void)[] = [];
  #graceEnds = Infinity;
  #ending: Promise<void> | undefined;

  constructor(options: TreeOptions) {
    this.#pid = options.pid;
    this.#mark = options.mark;
    this.#leashed = options.leashed;
    if (living.size === 0) process.on("exit", killTrees);
    living.add(this);
    roots.add(this.#pid);
  }

  /** To be told in the moment in which the root was reaped: its pid is not its own any more. */
  rootEnded(signal: NodeJS.Signals | null): void {
    this.#rootEnded = true;
    roots.delete(this.#pid);
    this.#groupEnded = !groupLives(this.#pid);
    // A leash that ends by itself has seen the last of its tree go. Killed, it has not.
    this.#lost = !this.#leashed || signal === "SIGKILL";
    if (this.#groupEnded && !this.#lost) this.#over();
    for (const wake of this.#onRootEnded.splice(0)) wake();
  }

  /** Whether anything is left, once the root has ended. Cheap where nothing is. */
  async left(): Promise<boolean> {
    return !(await this.#emptied());
  }

  /** What lives of the tree, the leash not counted. */
  members(table: ProcessTable): readonly ProcessEntry[] {
    const members = new Map<number, ProcessEntry>();
    const root = this.#rootEnded ? undefined : table.entries.get(this.#pid);
    if (root !== undefined) members.set(root.pid, root);
    for (const entry of table.entries.values()) if (this.#claims(entry, table)) members.set(entry.pid, entry);
    for (const entry of descendants(members, table)) members.set(entry.pid, entry);
    members.delete(process.pid);
    this.#seen.clear();
    for (const entry of members.values()) this.#seen.set(entry.pid, entry);
    if (this.#leashed && !this.#rootEnded) members.delete(this.#pid);
    return [...members.values()];
  }

  /**
   * TERM to all of it, KILL after the grace. Resolves once nothing is left. Asked again, it says nothing twice: only
   * the grace grows shorter.
   *
   * @throws Error where something outlives KILL: it names the pids.
   */
  async end(graceMs: number): Promise<void> {
    this.#graceEnds = Math.min(this.#graceEnds, performance.now() + graceMs);
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    for (const member of await this.#membersNow()) {
      signalProcess(member, "SIGTERM");
      // A stopped process hears TERM only once it goes on.
      signalProcess(member, "SIGCONT");
    }
    for (let pause = 2; !(await this.#emptied()); pause = Math.min(2 * pause, 50)) {
      const left = this.#graceEnds - performance.now();
      if (left <= 0) break;
      await this.#pause(Math.min(pause, left));
    }
    const killed = performance.now();
    for (let pause = 2; !(await this.#emptied()); pause = Math.min(2 * pause, 50)) {
      const members = await this.#membersNow();
      for (const member of members) signalProcess(member, "SIGKILL");
      const waited = performance.now() - killed;
      // A leash that has nothing left to hold goes by itself; one that does not was stopped by somebody.
      if (members.length === 0 && !this.#rootEnded && waited > 1000) this.#killRoot();
      if (waited > KILL_PATIENCE) {
        const pids = members.map(({ pid }) => pid).join(", ") || String(this.#pid);
        throw new Error(
          `the processes ${pids} cannot be ended: they outlived SIGKILL by ${KILL_PATIENCE / 1000} seconds`,
        );
      }
      await this.#pause(pause);
    }
  }

  async #membersNow(): Promise<readonly ProcessEntry[]> {
    return this.members(await processTableSince(performance.now()));
  }

  /** KILL to all that the table shows. */
  kill(table: ProcessTable): void {
    for (const member of this.members(table)) signalProcess(member, "SIGKILL");
    if (!this.#rootEnded) this.#killRoot();
  }

  #killRoot(): void {
    try {
      process.kill(this.#pid, "SIGKILL");
    } catch {
      // It has ended in this moment.
    }
  }

  #claims(entry: ProcessEntry, table: ProcessTable): boolean {
    if (entry.group === this.#pid && entry.session === this.#pid && !this.#groupEnded) return true;
    if (this.#seen.get(entry.pid)?.start === entry.start) return true;
    return table.marks.get(entry.pid)?.includes(this.#mark) === true;
  }

  async #emptied(): Promise<boolean> {
    if (!living.has(this)) return true;
    if (!this.#rootEnded) return false;
    for (const known of this.#seen.values()) if (lives(known)) return false;
    // A process of the root's pid, after the root: the number was given again, so the group was empty before.
    this.#groupEnded ||= !groupLives(this.#pid) || processEntry(this.#pid) !== undefined;
    if (this.#groupEnded && this.#strayed() === "none") this.#over();
    else if ((await this.#membersNow()).length === 0) this.#over();
    return !living.has(this);
  }

  #over(): void {
    this.#seen.clear();
    living.delete(this);
    if (living.size === 0) process.off("exit", killTrees);
  }

  /** Whether a process that left the group, or may have, carries the mark; `unknown` where it takes a whole table. */
  #strayed(): "none" | "some" | "unknown" {
    if (!this.#lost || !SHOWS_MARKS) return "none";
    const last = lastPid();
    // Pids are given in turn: what the root started is between its own and the last one, unless they began anew.
    if (last === undefined || last < this.#pid || last - this.#pid > NEAR) return "unknown";
    for (let pid = this.#pid + 1; pid <= last; pid += 1) {
      if (!roots.has(pid) && marksOf(pid).includes(this.#mark)) return "some";
    }
    return "none";
  }

  /** Waits; the end of the root cuts it short. */
  async #pause(ms: number): Promise<void> {
    if (this.#rootEnded) return delay(ms);
    await new Promise<void>((wake) => {
      const timer = setTimeout(wake, ms);
      this.#onRootEnded.push(() => {
        clearTimeout(timer);
        wake();
      });
    });
  }
}

export interface SweepOptions {
  /** Milliseconds from TERM to KILL; 2 seconds where not given. */
  readonly graceMs?: number;
}

/**
 * Ends what is left of runs that could not end it themselves: every process that carries one of the marks. Resolves to
 * how many there were, once none is left.
 *
 * @throws Error where something outlives KILL: it names the pids.
 */
export async function sweep(marks: string | readonly string[], options: SweepOptions = {}): Promise<number> {
  const wanted = (typeof marks === "string" ? [marks] : marks).filter((mark) => mark !== "").map((mark) => `${mark}.`);
  if (wanted.length === 0) return 0;
  const found = markedMembers(wanted);
  for (const member of found) {
    signalProcess(member, "SIGTERM");
    signalProcess(member, "SIGCONT");
  }
  const graceEnds = performance.now() + (options.graceMs ?? 2000);
  const patienceEnds = graceEnds + KILL_PATIENCE;
  for (let pause = 2; ; pause = Math.min(2 * pause, 50)) {
    const left = found.filter(lives);
    // The whole table again only where all that was known is gone, or at the end of the grace.
    const killing = performance.now() > graceEnds;
    const members = left.length > 0 && !killing ? left : markedMembers(wanted);
    if (members.length === 0) return found.length;
    if (killing) for (const member of members) signalProcess(member, "SIGKILL");
    if (performance.now() > patienceEnds) {
      throw new Error(`the processes ${members.map(({ pid }) => pid).join(", ")} of an earlier run cannot be ended`);
    }
    await delay(pause);
  }
}

/** Whatever carries a mark with one of the beginnings, and descends from such; never this process or one above it. */
function markedMembers(beginnings: readonly string[]): readonly ProcessEntry[] {
  const table = processTable();
  const members = new Map<number, ProcessEntry>();
  for (const entry of table.entries.values()) {
    const marks = table.marks.get(entry.pid) ?? [];
    if (marks.some((mark) => beginnings.some((beginning) => mark.startsWith(beginning)))) members.set(entry.pid, entry);
  }
  // A run inside a run carries the outer one's mark, and so do all between the two.
  for (let pid: number | undefined = process.pid; pid !== undefined && pid > 0; pid = table.entries.get(pid)?.parent)
    members.delete(pid);
  const below = descendants(members, table);
  for (const entry of below) if (entry.pid !== process.pid) members.set(entry.pid, entry);
  return [...members.values()];
}

function descendants(roots: ReadonlyMap<number, ProcessEntry>, table: ProcessTable): readonly ProcessEntry[] {
  if (roots.size === 0) return [];
  const children = Map.groupBy(table.entries.values(), (entry) => entry.parent);
  const found: ProcessEntry[] = [];
  const seen = new Set(roots.keys());
  const open = [...roots.keys()];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    for (const child of children.get(pid) ?? []) {
      if (seen.has(child.pid)) continue;
      seen.add(child.pid);
      open.push(child.pid);
      found.push(child);
    }
  }
  return found;
}

function groupLives(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch (error) {
    // EPERM: there is somebody, whom we may not signal.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
