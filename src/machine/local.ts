/** The machine that hmz itself runs on. */

import { accessSync, constants } from "node:fs";
import { stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import type { Derive, ExecOutcome, ExecRequest, Machine, MachineSize } from "../engine/ports.ts";
import type { EnvNeed } from "../flows/env.ts";
import { EnvCommandTimeout, EnvError, EnvPermissionDenied, EnvUnavailable } from "../flows/errors.ts";
import { runProgram } from "../process/run.ts";
import type { Ran } from "../process/run.ts";
import { deriving, type Locks, sweepDerived } from "./derive/index.ts";
import { makeLocalDirectory, readLocalFile, writeLocalFile } from "./local-files.ts";
import { localSize } from "./local-size.ts";

export interface LocalMachineOptions {
  /** The mark of the run, so that what it leaves behind can be swept. */
  readonly mark?: string | undefined;
  /** Bytes kept of each stream of a command; 16 MiB where not given. */
  readonly maxOutput?: number | undefined;
  /** Where what is derived of a workdir lies, and what locks it. Left out: nothing is derived. */
  readonly derive?: { readonly envs: string; readonly locks: Locks } | undefined;
}

export function localMachine(options: LocalMachineOptions = {}): Machine {
  return new LocalMachine(options);
}

/**
 * Removes the copies and scratch directories on this machine that runs which were killed had made, and that nobody is to
 * pick up. Never throws.
 *
 * @param isHeld Whether a living process holds a lock.
 */
export async function sweepLocal(
  { envs, locks }: { readonly envs: string; readonly locks: Locks },
  isHeld: (lock: string) => boolean,
): Promise<void> {
  const machine = new LocalMachine({});
  await sweepDerived({ envs, locks, run: (argv, cwd) => machine.exec(argv, { cwd, timeout: 0 }) }, isHeld);
}

class LocalMachine implements Machine {
  readonly backend = "local";
  readonly provider = "";
  readonly serves: ReadonlySet<EnvNeed>;
  readonly derive?: Derive;
  readonly #options: Omit<LocalMachineOptions, "derive">;
  #size: MachineSize | undefined;

  constructor({ derive, ...options }: LocalMachineOptions) {
    this.#options = options;
    const needs: EnvNeed[] = ["shell", "files"];
    if (isOnPath("bash")) needs.push("bash");
    if (derive) {
      needs.push("temp_clone", "scratch");
      if (isOnPath("git")) needs.push("worktree", "rewind", "git");
      this.derive = deriving({ ...derive, run: (argv, cwd) => this.exec(argv, { cwd, timeout: 0 }) });
    }
    this.serves = new Set(needs);
  }

  lacks(need: EnvNeed): string | undefined {
    const program = need === "bash" ? "bash" : need === "git" || need === "worktree" || need === "rewind" ? "git" : "";
    if (this.serves.has(need) || program === "") return undefined;
    return `${need} needs ${program} on the machine's PATH, and it has none`;
  }

  get size(): MachineSize {
    this.#size ??= localSize();
    return this.#size;
  }

  async exec(argv: readonly string[], request: ExecRequest): Promise<ExecOutcome> {
    const { cwd, timeout, signal } = request;
    const [program] = argv;
    if (program === undefined) throw new EnvError("exec takes a program, and was given an empty argv");
    let ran: Ran;
    try {
      ran = await runProgram({ argv, cwd, env: inherited(), timeout, signal, ...this.#options });
    } catch (error) {
      // Aborted: the reason is whoever's who aborted, and passes as it is.
      if (signal?.aborted === true && error === signal.reason) throw error;
      throw startError(program, cwd, error);
    }
    if (ran.timedOut) {
      throw new EnvCommandTimeout(`${program} ran longer than its timeout of ${timeout} ms in ${cwd} and was killed`);
    }
    return { status: ran.status, stdout: ran.stdout, stderr: ran.stderr };
  }

  async read(path: string): Promise<Uint8Array> {
    return readLocalFile(path);
  }

  async write(path: string, data: Uint8Array): Promise<void> {
    return writeLocalFile(path, data);
  }

  async makeDirectory(path: string): Promise<void> {
    return makeLocalDirectory(path);
  }

  async isDirectory(path: string): Promise<boolean> {
    return stat(path).then(
      (found) => found.isDirectory(),
      () => false,
    );
  }

  async close(): Promise<void> {
    // It holds nothing: every command was waited for.
  }
}

/** What a command finds in its environment: what hmz found, but its own marks, which the command's tree gets anew. */
function inherited(): Record<string, string> {
  const { HMZ_MARK: _, ...env } = process.env;
  return env as Record<string, string>;
}

function isOnPath(program: string): boolean {
  return (process.env["PATH"] ?? "/usr/bin:/bin").split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function startError(program: string, cwd: string, cause: unknown): EnvError {
  const { code, syscall, message } = cause as NodeJS.ErrnoException;
  if (syscall === "chdir") {
    if (code === "EACCES") return new EnvPermissionDenied(`the workdir ${cwd} may not be entered`, { cause });
    const fault = code === "ENOTDIR" ? "is not a directory" : "does not exist";
    return new EnvUnavailable(`the workdir ${cwd} ${fault}`, { cause });
  }
  switch (code) {
    case "ENOENT":
      return new EnvError(`cannot run ${program} in ${cwd}: there is no such program`, { cause });
    case "EACCES":
      return new EnvPermissionDenied(`cannot run ${program} in ${cwd}: permission denied`, { cause });
    case "E2BIG":
      return new EnvError(`cannot run ${program} in ${cwd}: its arguments are too long; hand them over in a file`, {
        cause,
      });
    default:
      return new EnvError(`cannot run ${program} in ${cwd}: ${code ?? message}`, { cause });
  }
}
