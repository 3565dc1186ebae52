/** What deriving directories asks of a machine: programs run on it, and locks beside what is made. */

import type { ExecOutcome } from "../../engine/ports.ts";

export interface Host {
  /** Runs a program to its end. @throws EnvError where it cannot start. */
  run(argv: readonly string[], cwd: string): Promise<ExecOutcome>;
  /** The directory that everything derived lies under. Absolute; made where it is not there. */
  readonly envs: string;
  readonly locks: Locks;
}

/** Lock files: one holder at a time, across processes; the lock of a process that is gone is taken over. */
export interface Locks {
  /** Whether it was taken; `false` where a living process holds it, this one included. The note is kept in the file. */
  take(path: string, note: object): boolean;
  drop(path: string): void;
  /** Runs a function while the lock is held, once it is free. */
  locked<T>(path: string, run: () => Promise<T>): Promise<T>;
}

/** What a lock file notes beside its owner. */
export interface Note {
  /** Whether what it locks outlives a run that is killed. */
  readonly outlives: boolean;
  /** What that is of, so that whoever sweeps can remove it properly. */
  readonly workdir: string;
}

/** The lock of a directory lies beside it: what is within may be removed, and is the flow's. */
export function lockOf(path: string): string {
  return `${path}.lock`;
}

/** Why a program failed, in its own words. */
export function saidBy({ status, stderr }: ExecOutcome): string {
  const lines = stderr
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const said = lines.find((line) => /^(?:fatal|error):/.test(line)) ?? lines.at(-1);
  return said === undefined ? `it ends with status ${status}` : said.replace(/^(?:fatal|error): /, "").slice(0, 400);
}
