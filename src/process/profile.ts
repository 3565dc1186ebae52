/**
 * Which programs ran under a process, looked at every so often. What lives shorter than the pause between two looks may
 * be missed; nothing waits for a look, and looking takes a hundredth of the time at most.
 */

import { basename } from "node:path";
import { argvOf, beganAt, processEntry, SHOWS_THREADS, startedBy, threadEntry, threadsOf } from "./process-table.ts";
import { treeHeads } from "./tree.ts";

/** A program as it was last seen. Times are Unix seconds. */
export interface SeenProgram {
  /** `left`: it is gone. */
  readonly event: "ran" | "left";
  readonly pid: number;
  /** The program that started it, or that took it in; the leash in between left out. */
  readonly ppid: number;
  readonly name: string;
  readonly argv: readonly string[];
  readonly began: number;
  /** When it was last seen. */
  readonly seen: number;
  /** Of one that left: when it was first missed. */
  readonly ended?: number;
  /** `[tid, began, ended, cpu]`, the first one the program's own; `cpu` in seconds of a processor. */
  readonly threads: readonly (readonly [tid: number, began: number, ended: number, cpu: number])[];
  /** `environment`: started for an agent or an environment, or by what was; `flow`: by the flow's own code. */
  readonly of: "flow" | "environment";
}

export interface ProfileOptions {
  /** Whose descendants are looked at; it is none itself. */
  readonly pid: number;
  /** Told of each program when it is first seen, when it has changed, and when it has left. Must not throw. */
  readonly seen: (program: SeenProgram) => void;
  /** Leave out what the flow's own code started. */
  readonly environmentOnly?: boolean | undefined;
}

export interface Profile {
  /** Tells of what is still there, and looks no more. */
  stop(): void;
}

/** Milliseconds from one look to the next, where looking is cheap. */
const INTERVAL = 50;
/** A look may take this part of the time: a hundredth, what it costs besides counted in. */
const SHARE = 0.005;
/** Milliseconds of looking that may be spent at once. */
const IN_HAND = 30;
/** Milliseconds after which a program that is still there is told of again; twice as long each time. */
const TELL_AGAIN = 10_000;
/** Milliseconds between two looks at how much processor the threads used: there are many, and it says little. */
const THREADS = 1_000;
/** Of a program's threads, as many are kept. */
const MOST_THREADS = 256;

/** What stands in front of each child of hmz. */
const LEASH = "hmz-leash";

/** Whether this system can be asked. */
export const CAN_PROFILE: boolean = SHOWS_THREADS && startsAreShown();

/** A kernel may be built without. */
function startsAreShown(): boolean {
  return processEntry(process.pid) !== undefined && threadsOf(process.pid).length > 0;
}

/** Looks at the programs under a process until it is stopped. */
export function startProfile(options: ProfileOptions): Profile {
  const watch = new Watch(options);
  let timer: NodeJS.Timeout | undefined;
  // What may still be spent on looking: it grows with the time, and the first looks, which are slow, have it in hand.
  let left = IN_HAND;
  let last = performance.now();
  const look = (): void => {
    // What it cost the processor, and not how long it took: on a busy machine that is mostly waiting for a turn.
    const before = process.cpuUsage();
    watch.look();
    const { user, system } = process.cpuUsage(before);
    const now = performance.now();
    const cost = (user + system) / 1_000;
    left = Math.min(IN_HAND, left + SHARE * (now - last) - cost);
    last = now;
    timer = setTimeout(look, Math.max(INTERVAL, (cost - left) / SHARE)).unref();
  };
  timer = setTimeout(look, 0).unref();
  return {
    stop() {
      if (timer === undefined) return;
      clearTimeout(timer);
      timer = undefined;
      watch.look();
      watch.end();
    },
  };
}

interface Known {
  readonly pid: number;
  /** What it was found under; `undefined` for the process itself. */
  readonly above: Known | undefined;
  readonly start: string;
  readonly began: number;
  readonly of: SeenProgram["of"];
  argv: readonly string[];
  name: string;
  looks: number;
  seen: number;
  told: number;
  pause: number;
  readonly threads: Map<number, { readonly start: string; readonly began: number; ended: number; cpu: number }>;
}

class Watch {
  readonly #options: ProfileOptions;
  readonly #known = new Map<number, Known>();
  #threadsSeen = 0;
  #starters: readonly number[] = [];

  constructor(options: ProfileOptions) {
    this.#options = options;
  }

  look(): void {
    const now = Date.now();
    const withCpu = now - this.#threadsSeen >= THREADS;
    if (withCpu) this.#threadsSeen = now;
    const found = new Set<number>();
    const heads = treeHeads();
    // Whose children are to be looked at; `environment` where what is under it is of one.
    const open: { readonly pid: number; readonly known: Known | undefined }[] = [
      { pid: this.#options.pid, known: undefined },
    ];
    for (let at = open.pop(); at; at = open.pop()) {
      const threads = at.known ? threadsOf(at.pid) : this.#ownThreads(withCpu);
      if (at.known) this.#visit(at.known, threads, now, withCpu);
      for (const tid of threads) {
        for (const pid of startedBy(at.pid, tid)) {
          if (found.has(pid)) continue;
          const known = this.#know(pid, at, heads, withCpu);
          if (!known) continue;
          found.add(pid);
          open.push({ pid, known });
        }
      }
    }
    for (const known of this.#known.values()) if (!found.has(known.pid)) this.#left(known, now);
  }

  /** Those of the process itself that start programs: of its dozen threads it is one, but where a worker does too. */
  #ownThreads(anew: boolean): readonly number[] {
    const { pid } = this.#options;
    if (anew) this.#starters = [...new Set([pid, ...threadsOf(pid).filter((tid) => startedBy(pid, tid).length > 0)])];
    return this.#starters;
  }

  end(): void {
    for (const known of this.#known.values()) this.#tell(known, "ran");
    this.#known.clear();
  }

  /** A child that was seen; `undefined` where it is gone already. */
  #know(
    pid: number,
    above: { readonly pid: number; readonly known: Known | undefined },
    heads: ReadonlySet<number>,
    anew: boolean,
  ): Known | undefined {
    const known = this.#known.get(pid);
    // Its number is given again only after all others were: it need not be read each time.
    if (known && !anew) return known;
    const entry = processEntry(pid);
    // One that nobody waits for stays in the list when it is over.
    if (!entry) return undefined;
    if (known?.start === entry.start) return known;
    if (known) this.#left(known, Date.now());
    const argv = argvOf(pid);
    const of = above.known?.of === "environment" || heads.has(pid) ? "environment" : "flow";
    const made: Known = {
      pid,
      above: above.known,
      start: entry.start,
      began: beganAt(entry.start),
      of,
      argv,
      name: nameOf(argv),
      looks: 0,
      seen: 0,
      told: 0,
      pause: TELL_AGAIN,
      threads: new Map(),
    };
    this.#known.set(pid, made);
    return made;
  }

  #visit(known: Known, tids: readonly number[], now: number, withCpu: boolean): void {
    known.seen = now;
    known.looks += 1;
    // What was just forked still has the words of whoever forked it.
    if (known.looks === 2 || (withCpu && known.looks < 100)) this.#rename(known);
    if (isLeash(known)) return;
    for (const tid of tids) {
      const thread = known.threads.get(tid);
      if (thread) thread.ended = now;
      if (thread && !withCpu) continue;
      if (!thread && known.threads.size >= MOST_THREADS) continue;
      const entry = threadEntry(known.pid, tid);
      if (!entry) continue;
      if (thread && thread.start === entry.start) thread.cpu = entry.cpu;
      else known.threads.set(tid, { start: entry.start, began: beganAt(entry.start), ended: now, cpu: entry.cpu });
    }
    if (known.told === 0 ? known.looks >= 2 : now - known.told >= known.pause) {
      if (known.told > 0) known.pause *= 2;
      known.told = now;
      this.#tell(known, "ran");
    }
  }

  #rename(known: Known): void {
    const argv = argvOf(known.pid);
    if (argv.length === 0 || (argv.length === known.argv.length && argv.every((word, at) => word === known.argv[at])))
      return;
    known.argv = argv;
    known.name = nameOf(argv);
    if (known.told > 0) this.#tell(known, "ran");
  }

  #left(known: Known, now: number): void {
    this.#known.delete(known.pid);
    this.#tell(known, "left", now);
  }

  #tell(known: Known, event: SeenProgram["event"], ended?: number): void {
    const { environmentOnly = false, pid, seen } = this.#options;
    if (isLeash(known) || (environmentOnly && known.of === "flow")) return;
    seen({
      event,
      pid: known.pid,
      ppid: startedBefore(known)?.pid ?? pid,
      name: known.name,
      argv: known.argv,
      began: known.began,
      seen: known.seen / 1_000,
      ...(ended === undefined ? {} : { ended: ended / 1_000 }),
      threads: [...known.threads].map(([tid, thread]) => [tid, thread.began, thread.ended / 1_000, thread.cpu]),
      of: known.of,
    });
  }
}

/** The leash, as a child of hmz; what it has forked and not yet started has its words too. */
function isLeash({ argv }: Known): boolean {
  return argv[0] === LEASH;
}

function startedBefore({ above }: Known): Known | undefined {
  return above && isLeash(above) ? startedBefore(above) : above;
}

function nameOf(argv: readonly string[]): string {
  return basename(argv[0] ?? "");
}
