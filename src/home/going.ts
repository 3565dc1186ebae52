/**
 * Which runs are going on this machine, and the mark of what each has started: what a run that was killed left behind
 * is found by it at the next start.
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { makeDirectory } from "./make-directory.ts";
import { isAlive, parseOwner, thisOwner } from "./owner.ts";

export interface Gone {
  /** The mark in the environment of whatever it had started. */
  readonly mark: string;
  /** Forgets it: nothing of it is left. */
  readonly forget: () => void;
}

/**
 * Notes that a run of this process goes, under the machine's directory. Returns what takes the note away.
 *
 * @param machine The directory of what this machine may lose.
 */
export function noteGoing(machine: string, mark: string): () => void {
  const directory = join(machine, "going");
  makeDirectory(directory, 0o700);
  const file = join(directory, `${process.pid}-${randomBytes(4).toString("hex")}.json`);
  writeFileSync(file, JSON.stringify({ ...thisOwner(), mark }), { mode: 0o600 });
  return () => rmSync(file, { force: true });
}

/** The runs that ended without a word: their process is gone, and their note is not. */
export function goneRuns(machine: string): readonly Gone[] {
  const directory = join(machine, "going");
  let files: readonly string[];
  try {
    files = readdirSync(directory);
  } catch {
    return [];
  }
  return files.flatMap((name): readonly Gone[] => {
    const file = join(directory, name);
    const forget = (): void => rmSync(file, { force: true });
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch {
      return [];
    }
    const owner = parseOwner(text);
    // A note torn by a full disk names no mark to look for; one whose owner lives is not ours to judge.
    if (!owner) return [{ mark: "", forget }];
    if (isAlive(owner)) return [];
    const { mark } = JSON.parse(text) as { mark?: unknown };
    return [{ mark: typeof mark === "string" ? mark : "", forget }];
  });
}
