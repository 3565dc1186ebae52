/** A machine in memory: files, a few commands, and whatever else a test says it answers. */

import { posix } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ENV_NEEDS, type EnvBackend, type EnvNeed } from "../flows/env.ts";
import { EnvCommandTimeout, EnvError, EnvFileNotFound, EnvUnavailable } from "../flows/errors.ts";
import { FakeDerive } from "./fake-derive.ts";
import { within } from "../engine/deadline.ts";
import type { ExecOutcome, ExecRequest, Machine, MachineSize } from "../engine/ports.ts";

/** What a command came to; what is left out is 0 and `""`. */
export type FakeOutcome = Partial<ExecOutcome>;

/** A command as a flow gave it: an argv, or a script. */
export type FakeCommand = readonly string[] | string;

/**
 * What answers commands: a table keyed by the argv joined with `\0` or by the script, or a function, `undefined` for
 * what it leaves to the defaults.
 */
export type FakeRun =
  | Readonly<Record<string, FakeOutcome>>
  | ((
      command: FakeCommand,
      env: FakeEnv,
      at: { readonly cwd: string; readonly signal: AbortSignal | undefined },
    ) => FakeOutcome | undefined | Promise<FakeOutcome | undefined>);

/** What a {@link FakeEnv} is made of. */
export interface FakeEnvOptions {
  /** What the workdir holds at first, by relative path. */
  readonly files?: Readonly<Record<string, Uint8Array | string>> | undefined;
  /** Default `/work`. */
  readonly workdir?: string | undefined;
  /** Default `local`. */
  readonly backend?: EnvBackend | undefined;
  readonly provider?: string | undefined;
  /** What it serves. Default: every need. */
  readonly needs?: Iterable<EnvNeed> | undefined;
  /** Default 8. */
  readonly cpus?: number | undefined;
  /** Bytes. Default 64 GiB. */
  readonly memory?: number | undefined;
  /** Default 0. */
  readonly gpus?: number | undefined;
  /** Bytes of each GPU. Default 0. */
  readonly gpuMemory?: number | undefined;
  readonly run?: FakeRun | undefined;
  /** The refs that a worktree is made of. Default `HEAD` and `main`. */
  readonly refs?: Iterable<string> | undefined;
  /** Whether the workdir is in a git repository. Default `true`. */
  readonly repo?: boolean | undefined;
}

/**
 * An environment for tests: taken by `runFake` and wherever the SDK takes an environment's spec.
 *
 * `true`, `false`, `echo`, `cat`, `ls`, `sleep N` and `git rev-parse --is-inside-work-tree` behave as on any machine;
 * any other command that `run` does not answer comes to status 127.
 */
export class FakeEnv implements Machine {
  readonly workdir: string;
  readonly backend: EnvBackend;
  readonly provider: string;
  readonly serves: ReadonlySet<EnvNeed>;
  readonly size: MachineSize;
  readonly refs: ReadonlySet<string>;
  readonly repo: boolean;
  readonly derive: FakeDerive;
  /** Every command that was run, in order. */
  readonly commands: FakeCommand[] = [];
  readonly #run: FakeRun | undefined;
  readonly #files = new Map<string, Uint8Array>();
  readonly #directories = new Set<string>(["/"]);
  #closed = 0;

  constructor(options: FakeEnvOptions = {}) {
    const { files = {}, workdir = "/work", backend = "local", provider = "", needs = SERVED } = options;
    const { cpus = 8, memory = 64 * 2 ** 30, gpus = 0, gpuMemory = 0, refs = ["HEAD", "main"], repo = true } = options;
    if (!posix.isAbsolute(workdir)) throw new RangeError(`a fake's workdir is absolute: ${workdir}`);
    this.workdir = posix.resolve(workdir);
    this.backend = backend;
    this.provider = provider;
    this.serves = new Set(needs);
    this.size = { cpus, memory, gpus, gpuMemory };
    this.refs = new Set(refs);
    this.repo = repo;
    this.#run = options.run;
    this.#makeDirectories(this.workdir);
    for (const [path, data] of Object.entries(files)) this.#put(this.#resolve(path, this.workdir), bytesOf(data));
    this.derive = new FakeDerive({
      refs: this.refs,
      repo,
      workdir: this.workdir,
      isDirectory: (path) => this.#directories.has(path),
      makeDirectory: (path) => this.#makeDirectories(path),
      under: (directory) => this.#under(directory),
      put: (path, data) => this.#put(path, data),
      remove: (directory) => this.#remove(directory),
    });
  }

  /** What the workdir holds now, by relative path. */
  get files(): Readonly<Record<string, Uint8Array>> {
    return Object.fromEntries(this.#under(this.workdir));
  }

  /** One file as text; the path is relative to the workdir, or absolute. */
  text(path: string): string {
    return UTF8.decode(this.#get(this.#resolve(path, this.workdir)));
  }

  /** Every file of the machine, by absolute path. */
  get machine(): ReadonlyMap<string, Uint8Array> {
    return this.#files;
  }

  /** Ids of the copies that are not removed yet. */
  get clones(): readonly string[] {
    return this.derive.ids("clones");
  }

  /** Ids of the scratch directories that are not removed yet. */
  get scratches(): readonly string[] {
    return this.derive.ids("scratch");
  }

  /** How many times it was closed: once a run. */
  get closed(): number {
    return this.#closed;
  }

  async exec(argv: readonly string[], options: ExecRequest): Promise<ExecOutcome> {
    const { cwd, timeout, signal } = options;
    signal?.throwIfAborted();
    if (argv.length === 0) throw new EnvError("exec takes a program, and was given an empty argv");
    if (!this.#directories.has(posix.resolve(cwd))) throw new EnvUnavailable(`${cwd} is not a directory`);
    const command = argv[0] === "bash" && argv[1] === "-c" && argv.length === 3 ? (argv[2] as string) : [...argv];
    this.commands.push(command);
    const answered = inTime(this.#answered(command, { cwd, signal }), command, timeout);
    const outcome =
      (await (signal ? unlessAborted(answered, signal) : answered)) ?? (await this.#default(argv, options));
    const { status = 0, stdout = "", stderr = "" } = outcome;
    return { status, stdout, stderr };
  }

  async #answered(
    command: FakeCommand,
    at: { readonly cwd: string; readonly signal: AbortSignal | undefined },
  ): Promise<FakeOutcome | undefined> {
    const run = this.#run;
    if (typeof run === "function") return run(command, this, at);
    const key = typeof command === "string" ? command : command.join("\0");
    return run && Object.hasOwn(run, key) ? run[key] : undefined;
  }

  async #default(argv: readonly string[], { cwd, timeout, signal }: ExecRequest): Promise<FakeOutcome> {
    const [program, ...args] = argv;
    switch (program) {
      case "true":
        return {};
      case "false":
        return { status: 1 };
      case "echo":
        return { stdout: args[0] === "-n" ? args.slice(1).join(" ") : `${args.join(" ")}\n` };
      case "cat":
        return this.#cat(args, cwd);
      case "ls":
        return this.#ls(args[0] ?? ".", cwd);
      case "sleep":
        return slept(Number(args[0]), timeout, signal);
      case "git":
        if (args.join(" ") === "rev-parse --is-inside-work-tree") {
          return this.repo
            ? { stdout: "true\n" }
            : { status: 128, stderr: "fatal: not a git repository (or any of the parent directories): .git\n" };
        }
    }
    return { status: 127, stderr: `${program}: not a command of this fake machine: answer it with run\n` };
  }

  #cat(paths: readonly string[], cwd: string): FakeOutcome {
    let stdout = "";
    for (const path of paths) {
      const data = this.#files.get(this.#resolve(path, cwd));
      if (!data) return { status: 1, stdout, stderr: `cat: ${path}: No such file or directory\n` };
      stdout += UTF8.decode(data);
    }
    return { stdout };
  }

  #ls(path: string, cwd: string): FakeOutcome {
    const directory = this.#resolve(path, cwd);
    if (this.#files.has(directory)) return { stdout: `${path}\n` };
    if (!this.#directories.has(directory)) {
      return { status: 2, stderr: `ls: cannot access '${path}': No such file or directory\n` };
    }
    const names = [...this.#files.keys(), ...this.#directories]
      .filter((entry) => entry !== "/" && posix.dirname(entry) === directory)
      .map((entry) => posix.basename(entry))
      .filter((name) => !name.startsWith("."));
    return {
      stdout: names
        .sort()
        .map((name) => `${name}\n`)
        .join(""),
    };
  }

  async read(path: string): Promise<Uint8Array> {
    return Uint8Array.from(this.#get(this.#resolve(path, this.workdir)));
  }

  async write(path: string, data: Uint8Array): Promise<void> {
    this.#put(this.#resolve(path, this.workdir), Uint8Array.from(data));
  }

  async makeDirectory(path: string): Promise<void> {
    this.#makeDirectories(this.#resolve(path, this.workdir));
  }

  async isDirectory(path: string): Promise<boolean> {
    return this.#directories.has(this.#resolve(path, this.workdir));
  }

  async close(): Promise<void> {
    this.#closed++;
  }

  #resolve(path: string, from: string): string {
    return posix.resolve(from, path);
  }

  #get(path: string): Uint8Array {
    const data = this.#files.get(path);
    if (data) return data;
    if (this.#directories.has(path)) throw new EnvError(`${path} is a directory, not a file`);
    throw new EnvFileNotFound(`${path}: no such file`);
  }

  #put(path: string, data: Uint8Array): void {
    if (this.#directories.has(path)) throw new EnvError(`${path} is a directory, not a file`);
    this.#makeDirectories(posix.dirname(path));
    this.#files.set(path, data);
  }

  #under(directory: string): ReadonlyMap<string, Uint8Array> {
    const base = directory === "/" ? "/" : `${directory}/`;
    const inside = [...this.#files].filter(([path]) => path.startsWith(base));
    return new Map(inside.map(([path, data]) => [path.slice(base.length), data]));
  }

  #remove(directory: string): void {
    for (const path of this.#files.keys()) if (path.startsWith(`${directory}/`)) this.#files.delete(path);
    for (const path of this.#directories) {
      if (path === directory || path.startsWith(`${directory}/`)) this.#directories.delete(path);
    }
  }

  #makeDirectories(path: string): void {
    for (let directory = path; !this.#directories.has(directory); directory = posix.dirname(directory)) {
      if (this.#files.has(directory)) throw new EnvError(`${directory} is a file, not a directory`);
      this.#directories.add(directory);
    }
  }
}

const SERVED: readonly EnvNeed[] = ENV_NEEDS;

const UTF8 = new TextDecoder();

function bytesOf(data: Uint8Array | string): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : Uint8Array.from(data);
}

async function slept(seconds: number, timeout: number, signal: AbortSignal | undefined): Promise<FakeOutcome> {
  if (!(seconds >= 0)) return { status: 1, stderr: "sleep: invalid time interval\n" };
  const ms = seconds * 1_000;
  const late = timeout > 0 && ms > timeout;
  try {
    await sleep(late ? timeout : ms, undefined, { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
  if (late) throw pastTimeout(`sleep ${seconds}`, timeout);
  return {};
}

/** What answers a command, as far as its timeout lets it: an answer that never comes is a program that never ends. */
function inTime<T>(work: Promise<T>, command: FakeCommand, timeout: number): Promise<T> {
  if (timeout <= 0) return work;
  return within(work, timeout, () => {
    throw pastTimeout(typeof command === "string" ? command : command.join(" "), timeout);
  });
}

function pastTimeout(command: string, timeout: number): EnvCommandTimeout {
  return new EnvCommandTimeout(`${command} ran past its timeout of ${timeout} ms and was killed`);
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
