/** Environments as a call holds them: a directory on a machine, under the grant of the role that it fills. */

import { posix } from "node:path";
import type { AnyEnv, EnvBackend, EnvNeed, ExecOptions, ExecResult } from "../flows/env.ts";
import { CapabilityNotGranted } from "../flows/errors.ts";
import type { Call } from "./call.ts";
import { cancellationOf } from "./call.ts";
import { Cancellation } from "./cancellation.ts";
import type { Place } from "./ports.ts";

export interface EnvRecord {
  readonly call: Call;
  readonly role: string;
  readonly place: Place;
  readonly needs: ReadonlySet<EnvNeed>;
  /** How it was derived, for digests: `local@/work#subdir(lib)`. */
  readonly chain: string;
}

/** The chain of an environment that was derived from none. */
export function chainOf({ machine, workdir }: Place): string {
  return `${machine.backend}@${machine.provider}${workdir}`;
}

let recordOf: (view: unknown) => EnvRecord | undefined;

class EnvView implements AnyEnv {
  readonly #env: EnvRecord;

  constructor(env: EnvRecord) {
    this.#env = env;
    Object.freeze(this);
  }

  static {
    recordOf = (view) => (typeof view === "object" && view !== null && #env in view ? view.#env : undefined);
  }

  get workdir(): string {
    return this.#env.place.workdir;
  }

  get backend(): EnvBackend {
    return this.#env.place.machine.backend;
  }

  get provider(): string {
    return this.#env.place.machine.provider;
  }

  get available(): boolean {
    return true;
  }

  get role(): string {
    return this.#env.role;
  }

  async exec(command: readonly string[] | string, options: ExecOptions = {}): Promise<ExecResult> {
    const isScript = typeof command === "string";
    if (isScript) this.#assertGranted("bash", "a script exec");
    else this.#assertGranted("shell", "exec");
    if (!isScript && !isArgv(command)) {
      throw new TypeError("exec takes one command: an argv, or a script");
    }
    const { call, place } = this.#env;
    call.assertGoing();
    const { timeout = 0, signal } = options;
    if (!(timeout >= 0)) throw new RangeError(`exec: timeout=${timeout} is not a number of milliseconds`);
    const cancellation = new Cancellation();
    const undo = [cancellation.follow(cancellationOf(call))];
    if (signal) undo.push(cancellation.followSignal(signal));
    try {
      cancellation.throwIfCancelled();
      const argv = isScript ? ["bash", "-c", command] : command;
      const { status, stdout, stderr } = await place.machine.exec(argv, {
        cwd: place.workdir,
        timeout,
        signal: cancellation.signal,
      });
      return { status, stdout, stderr };
    } finally {
      for (const step of undo) step();
    }
  }

  async read(path: string): Promise<Uint8Array> {
    this.#assertGranted("files", "read");
    this.#env.call.assertGoing();
    return this.#env.place.machine.read(this.#resolved(path));
  }

  async readText(path: string): Promise<string> {
    return new TextDecoder().decode(await this.read(path));
  }

  async write(path: string, data: Uint8Array | string): Promise<void> {
    this.#assertGranted("files", "write");
    this.#env.call.assertGoing();
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    if (!(bytes instanceof Uint8Array)) throw new TypeError("write takes a string, or bytes");
    await this.#env.place.machine.write(this.#resolved(path), bytes);
  }

  async deriveSubdir(path: string): Promise<AnyEnv> {
    const { call, place, chain } = this.#env;
    call.assertGoing();
    const within = typeof path === "string" ? posix.normalize(path) : "";
    if (within === "" || path === "" || posix.isAbsolute(within) || within.split("/")[0] === "..") {
      throw new RangeError(`'${path}' is not a directory under the workdir: a relative path that does not climb out`);
    }
    const workdir = posix.join(place.workdir, within);
    await place.machine.makeDirectory(workdir);
    return envView({ ...this.#env, place: { ...place, workdir }, chain: `${chain}#subdir(${within})` });
  }

  deriveWorktree(): Promise<AnyEnv> {
    return this.#ungranted("worktree", "deriveWorktree");
  }

  deriveTempClone(): Promise<AnyEnv> {
    return this.#ungranted("temp_clone", "deriveTempClone");
  }

  destroyTempClone(): Promise<void> {
    return this.#ungranted("temp_clone", "destroyTempClone");
  }

  deriveScratch(): Promise<AnyEnv> {
    return this.#ungranted("scratch", "deriveScratch");
  }

  destroyScratch(): Promise<void> {
    return this.#ungranted("scratch", "destroyScratch");
  }

  snapshot(): Promise<string> {
    return this.#ungranted("git", "snapshot");
  }

  rewind(): Promise<void> {
    return this.#ungranted("git", "rewind");
  }

  snapshots(): Promise<string[]> {
    return this.#ungranted("git", "snapshots");
  }

  /** No machine serves these needs yet, so that no role that declares one is filled. */
  async #ungranted(need: EnvNeed, what: string): Promise<never> {
    throw new CapabilityNotGranted(`${this.role}: ${what} needs ${need} on the role`);
  }

  #assertGranted(need: EnvNeed, what: string): void {
    if (!this.#env.needs.has(need)) {
      throw new CapabilityNotGranted(`${this.role}: ${what} needs ${need} on the role`);
    }
  }

  #resolved(path: string): string {
    if (typeof path !== "string" || path === "") throw new TypeError("a path is a string that is not empty");
    return posix.resolve(this.#env.place.workdir, path);
  }
}

export function envView(env: EnvRecord): AnyEnv {
  return new EnvView(env);
}

/** The environment behind a view; `undefined` for a value that is none. */
export function envOf(view: unknown): EnvRecord | undefined {
  return recordOf(view);
}

function isArgv(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string");
}
