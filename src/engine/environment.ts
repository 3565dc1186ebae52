/** Environments as a call holds them: a directory on a machine, under the grant of the role that it fills. */

import { posix } from "node:path";
import type { AnyEnv, EnvBackend, EnvNeed, ExecOptions, ExecResult } from "../flows/env.ts";
import { CapabilityNotGranted } from "../flows/errors.ts";
import type { Call } from "./call.ts";
import { cancellationOf } from "./call.ts";
import { Cancellation } from "./cancellation.ts";
import type { Derive, Place } from "./ports.ts";

export interface EnvRecord {
  readonly call: Call;
  readonly role: string;
  readonly place: Place;
  readonly needs: ReadonlySet<EnvNeed>;
  /** How it was derived, for digests: `local@/work#subdir(lib)`. */
  readonly chain: string;
  /** The place that filled the role which it was derived from, by identity. */
  readonly root: Place;
}

/** The record of an environment that a role is filled with. */
export function rootEnv(call: Call, role: string, place: Place, needs: ReadonlySet<EnvNeed>): EnvRecord {
  return { call, role, place, needs, chain: chainOf(place), root: place };
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
      await call.settled();
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
    await this.#env.call.settled();
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

  async deriveWorktree(options: { readonly ref?: string; readonly dir?: string } = {}): Promise<AnyEnv> {
    const { place, chain } = this.#env;
    const derive = await this.#deriving("worktree", "deriveWorktree");
    const { ref, dir } = options;
    if (ref !== undefined && typeof ref !== "string") throw new TypeError("a ref is a string");
    if (dir !== undefined && (typeof dir !== "string" || dir === "")) {
      throw new TypeError("a worktree's dir is a path that is not empty");
    }
    const workdir = await derive.worktree(place.workdir, {
      ...(ref === undefined ? {} : { ref }),
      ...(dir === undefined ? {} : { dir: posix.resolve(place.workdir, dir) }),
    });
    return this.#derived(workdir, `${chain}#worktree(${ref ?? ""},${dir ?? ""})`);
  }

  async deriveTempClone(id: string): Promise<AnyEnv> {
    const derive = await this.#deriving("temp_clone", "deriveTempClone", id);
    const workdir = await this.#env.call.run.copies.derive(this.#env, derive, "temp_clone", id);
    return this.#derived(workdir, `${this.#env.chain}#temp_clone(${id})`);
  }

  async destroyTempClone(id: string): Promise<void> {
    const derive = await this.#deriving("temp_clone", "destroyTempClone", id);
    await this.#env.call.run.copies.destroy(this.#env, derive, "temp_clone", id);
  }

  async deriveScratch(id: string): Promise<AnyEnv> {
    const derive = await this.#deriving("scratch", "deriveScratch", id);
    const workdir = await this.#env.call.run.copies.derive(this.#env, derive, "scratch", id);
    return this.#derived(workdir, `${this.#env.chain}#scratch(${id})`);
  }

  async destroyScratch(id: string): Promise<void> {
    const derive = await this.#deriving("scratch", "destroyScratch", id);
    await this.#env.call.run.copies.destroy(this.#env, derive, "scratch", id);
  }

  async snapshot(name?: string): Promise<string> {
    const derive = await this.#deriving("git", "snapshot");
    if (name !== undefined && typeof name !== "string") throw new TypeError("a snapshot's name is a string");
    return derive.snapshot(this.#env.place.workdir, name);
  }

  async rewind(ref: string): Promise<void> {
    const derive = await this.#deriving("git", "rewind");
    if (typeof ref !== "string") throw new TypeError("a ref is a string");
    await derive.rewind(this.#env.place.workdir, ref);
  }

  async snapshots(): Promise<string[]> {
    const derive = await this.#deriving("git", "snapshots");
    return derive.snapshots(this.#env.place.workdir);
  }

  #derived(workdir: string, chain: string): AnyEnv {
    return envView({ ...this.#env, place: { ...this.#env.place, workdir }, chain });
  }

  /** What makes directories of this one, where the role's grant has it. */
  async #deriving(need: EnvNeed, what: string, ...ids: readonly string[]): Promise<Derive> {
    this.#assertGranted(need, what);
    const { call, place } = this.#env;
    call.assertGoing();
    if (!ids.every((id) => typeof id === "string" && id !== "")) {
      throw new TypeError(`${what} takes an id: a string that is not empty`);
    }
    const { derive } = place.machine;
    if (!derive) throw new CapabilityNotGranted(`${this.role}: ${what} needs ${need} on the role`);
    await call.settled();
    return derive;
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
