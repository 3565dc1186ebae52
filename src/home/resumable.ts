/** Which run a new one picks up. */

import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { EPIC_FILES } from "./epic.ts";
import { findEpics } from "./epics.ts";
import { isHeld } from "./lock.ts";
import { type Home, workspacePath } from "./paths.ts";

/** An epic that holds saved progress. */
export interface Resumable {
  /** The name of its directory. */
  readonly name: string;
  /** Absolute. */
  readonly directory: string;
  /** The path of its journal. */
  readonly journal: string;
}

/** A chosen epic that no run can pick up. Its message says why. */
export class UnresumableEpic extends Error {
  override readonly name = "UnresumableEpic";
}

/**
 * The newest run of a flow in a workspace that saved progress; `undefined` where there is none. One that is still going
 * is passed over, and so is one that a run still going has picked up: its work would be done twice.
 *
 * @param of.ref The flow's canonical ref. @param of.flow The name that the flow is run under.
 */
export function newestResumable(
  home: Home,
  of: { readonly workspace: string; readonly ref: string; readonly flow: string },
): Resumable | undefined {
  const workspace = workspacePath(of.workspace);
  const parent = home.epicsOf(workspace);
  const taken = new Set<string>();
  for (const name of namesIn(parent)) {
    const directory = join(parent, name);
    try {
      const began = beganOf(directory);
      if (!began) continue;
      // Whatever name it goes by: a flow that was moved picks up a run of the name it had.
      if (isHeld(join(directory, EPIC_FILES.held))) {
        if (typeof began["picked_up"] === "string") taken.add(began["picked_up"]);
        continue;
      }
      // Two workspaces may share one directory: their keys collide.
      if (began["workspace"] !== workspace && began["workspace"] !== "") continue;
      if ((began["ref"] !== of.ref && began["flow"] !== of.flow) || taken.has(name)) continue;
      const found = resumableIn(directory);
      if (found) return found;
    } catch (error) {
      // One that cannot be read hides none that can.
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    }
  }
  return undefined;
}

/**
 * The epic that a path or a name means.
 *
 * @throws UnresumableEpic where it is none, is still going, or saved no progress.
 */
export function resumableAt(
  home: Home,
  { workspace, epic }: { readonly workspace: string; readonly epic: string },
): Resumable {
  const [directory, ...others] = findEpics(home, workspace, epic);
  if (directory === undefined) throw new UnresumableEpic(`there is no epic '${epic}'; 'hmz epics' lists them`);
  if (others.length > 0) {
    throw new UnresumableEpic(`'${epic}' means ${others.length + 1} epics; write more of the name`);
  }
  if (isHeld(join(directory, EPIC_FILES.held))) {
    throw new UnresumableEpic(`${epic} is still going: stop it first, then resume it`);
  }
  const found = resumableIn(directory);
  if (!found) throw new UnresumableEpic(`${epic} has no saved progress to resume from`);
  return found;
}

function resumableIn(directory: string): Resumable | undefined {
  const journal = join(directory, EPIC_FILES.journal);
  return holdsCall(journal) ? { name: basename(directory), directory, journal } : undefined;
}

/** Newest first: names begin with the time. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).sort().reverse();
  } catch {
    return [];
  }
}

/** Bytes that the first lines of a file are looked for in. */
const PART = 64 * 1024;
const NEWLINE = 0x0a;

/** What an epic's first record says; `undefined` for a directory that is no epic. */
function beganOf(directory: string): Readonly<Record<string, unknown>> | undefined {
  for (const line of linesOf(join(directory, EPIC_FILES.record))) {
    const record = recordOf(line);
    if (record?.["event"] === "began") return record;
  }
  return undefined;
}

/** Whether a journal holds a flow call: the top one is among its first lines. */
function holdsCall(journal: string): boolean {
  for (const line of linesOf(journal)) if (recordOf(line)?.["t"] === "call") return true;
  return false;
}

function recordOf(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line.replaceAll("\u0000", ""));
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/** The lines of a file, read a part at a time; none where it is not there. The last may be torn. */
function* linesOf(path: string): Generator<string> {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return;
  const file = openSync(path, "r");
  try {
    // In pieces: a task may be longer than many parts.
    let begun: Buffer[] = [];
    for (;;) {
      const buffer = Buffer.allocUnsafe(PART);
      const got = readSync(file, buffer, 0, PART, null);
      if (got === 0) break;
      let from = 0;
      for (let end = buffer.indexOf(NEWLINE); end !== -1 && end < got; end = buffer.indexOf(NEWLINE, from)) {
        yield Buffer.concat([...begun, buffer.subarray(from, end)]).toString("utf8");
        begun = [];
        from = end + 1;
      }
      if (from < got) begun.push(buffer.subarray(from, got));
    }
    if (begun.length > 0) yield Buffer.concat(begun).toString("utf8");
  } finally {
    closeSync(file);
  }
}
