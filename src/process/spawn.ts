/** Starts a program at the head of a tree of its own. What `child` and `run` have in common. */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { MARK_VARIABLE } from "./process-table.ts";
import { dropLeash, leash } from "./leash.ts";
import { resolveProgram } from "./program.ts";
import { markValue, ProcessTree, treeMark } from "./tree.ts";

export interface SpawnOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: "closed" | "open";
  readonly mark?: string | undefined;
  /** How long the leash lets what outlives the program write on before it ends it; `DRAIN_MS` where not given. */
  readonly drainMs?: number | undefined;
  /** `false` does without the native leash. */
  readonly leash?: boolean | undefined;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Spawned {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly tree: ProcessTree;
  readonly exited: Promise<Exit>;
}

/** How long what outlives a program may write on. */
export const DRAIN_MS = 500;

/** @throws NodeJS.ErrnoException where it cannot be started. */
export async function spawnTree(options: SpawnOptions): Promise<Spawned> {
  const [name = "", ...args] = options.argv;
  const program = resolveProgram(name, options.cwd, options.env["PATH"]);
  const mark = treeMark(options.mark);
  const holder = options.leash === false ? undefined : leash();
  const leashPath = holder !== undefined && "path" in holder ? holder.path : undefined;
  const child = spawn(
    leashPath ?? program,
    leashPath === undefined ? args : [String(process.pid), String(options.drainMs ?? DRAIN_MS), program, name, ...args],
    {
      cwd: options.cwd,
      env: { ...options.env, [MARK_VARIABLE]: markValue(mark) },
      stdio: [options.stdin === "open" ? "pipe" : "ignore", "pipe", "pipe"],
      // A session of its own: the terminal's ^C is for hmz, which ends its children in order.
      detached: true,
      ...(leashPath === undefined ? { argv0: name } : { argv0: "hmz-leash" }),
    },
  );
  const { pid } = child;
  if (pid === undefined) {
    const error = await new Promise<NodeJS.ErrnoException>((failed) => child.once("error", failed));
    // The program is there, so it is the leash that does not start: a file system without exec, another libc.
    if (leashPath === undefined || (error.code !== "ENOENT" && error.code !== "EACCES")) throw error;
    dropLeash(`${leashPath} does not start: ${error.code}`);
    return spawnTree(options);
  }
  // After the start an error is only ever a signal that could not be sent; without a listener it would end hmz.
  child.on("error", () => {});
  const tree = new ProcessTree({ pid, mark, leashed: leashPath !== undefined });
  const exited = new Promise<Exit>((settle) => {
    child.once("exit", (code, signal) => {
      tree.rootEnded(signal);
      settle({ code, signal });
    });
  });
  return { process: child, pid, tree, exited };
}
