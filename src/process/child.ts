/** A child process with its tree: started, read, written to, and ended with everything that it started. */

import type { Writable } from "node:stream";
import { BoundedTail } from "./bounded-tail.ts";
import { readLines } from "./lines.ts";
import type { Line, LineOptions } from "./lines.ts";
import { drained, OutputPipe } from "./output-pipe.ts";
import { DRAIN_MS, spawnTree } from "./spawn.ts";
import type { Exit, Spawned } from "./spawn.ts";

export type { Exit } from "./spawn.ts";

export interface ChildOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The whole environment of the program: nothing is added but the mark of its tree. */
  readonly env: Readonly<Record<string, string>>;
  /** `closed` reads as empty from the start; `open` is a pipe that `write` and `end` serve. */
  readonly stdin: "closed" | "open";
  /** The mark of the run, for `sweep`. One for this process where not given. Letters, digits, `-` and `_`. */
  readonly mark?: string | undefined;
  /** How long its output may be quiet, once it has ended, until whoever holds it still is ended too. 500 ms where not given. */
  readonly drainMs?: number | undefined;
  /** `false` does without the native leash. */
  readonly leash?: boolean | undefined;
}

export interface Child {
  /** The root of the tree. */
  readonly pid: number;
  /** Standard output as it comes; the program waits while nobody reads. Either this or `lines`, once. */
  readonly stdout: AsyncIterable<Uint8Array>;
  /** Standard output in lines. */
  lines(options?: LineOptions): AsyncIterable<Line>;
  /** Writes to standard input; resolves once the system took it. @throws Error where the program no longer reads. */
  write(text: string): Promise<void>;
  /** Closes standard input. */
  end(): void;
  /** Settles when the program has ended, whoever still holds its pipes. Never rejects. */
  readonly exited: Promise<Exit>;
  /** Settles once it has ended, standard error is whole and nothing of its tree is left. @throws as `stop` does. */
  readonly closed: Promise<Exit>;
  /** The last 64 KiB of standard error. */
  readonly stderr: BoundedTail;
  /** Signals the program alone. STOP is not passed on by the leash; KILL takes the program with it. */
  signal(signal: NodeJS.Signals): void;
  /**
   * Ends the whole tree: TERM, and KILL after the grace (5 s where not given). Resolves once none of it is left. Asked
   * again, only the grace can grow shorter.
   *
   * @throws Error where something of it cannot be ended: it names the pids.
   */
  stop(options?: { readonly graceMs?: number }): Promise<Exit>;
}

const GRACE_MS = 5000;

/** Resolves once the program runs. @throws NodeJS.ErrnoException with Node's code (ENOENT, EACCES, …) where it cannot. */
export async function startChild(options: ChildOptions): Promise<Child> {
  return new StartedChild(await spawnTree(options), options);
}

class StartedChild implements Child {
  readonly pid: number;
  readonly stdout: OutputPipe;
  readonly stderr = new BoundedTail();
  readonly exited: Promise<Exit>;
  readonly closed: Promise<Exit>;
  readonly #name: string;
  readonly #spawned: Spawned;
  readonly #stdin: Writable | null;
  readonly #stderrPipe: OutputPipe;
  #stopping = false;

  constructor(spawned: Spawned, options: ChildOptions) {
    const { stdin, stdout, stderr } = spawned.process;
    if (stdout === null || stderr === null) throw new Error("a child without pipes");
    this.#name = options.argv[0] ?? "";
    this.#spawned = spawned;
    this.pid = spawned.pid;
    this.exited = spawned.exited;
    this.stdout = new OutputPipe(stdout);
    this.#stderrPipe = new OutputPipe(stderr);
    this.#stderrPipe.drainInto((chunk) => this.stderr.push(chunk));
    this.#stdin = stdin;
    // A program that goes while it is written to is told to whoever writes; unheard, the event would end hmz.
    stdin?.on("error", () => {});
    this.closed = this.#close(options.drainMs ?? DRAIN_MS);
    // Who does not ask does not hear.
    this.closed.catch(() => {});
  }

  lines(options: LineOptions = {}): AsyncIterable<Line> {
    return readLines(this.stdout, options);
  }

  async write(text: string): Promise<void> {
    const stdin = this.#stdin;
    if (stdin === null) throw new Error(`${this.#name} was started with its standard input closed`);
    await new Promise<void>((resolve, reject) => {
      stdin.write(text, (error) => {
        if (error === null || error === undefined) resolve();
        else reject(new Error(`${this.#name} does not read its standard input any more`, { cause: error }));
      });
    });
  }

  end(): void {
    this.#stdin?.end();
  }

  signal(signal: NodeJS.Signals): void {
    this.#spawned.process.kill(signal);
  }

  async stop(options: { readonly graceMs?: number } = {}): Promise<Exit> {
    this.#stopping = true;
    this.#stdin?.end();
    await this.#spawned.tree.end(options.graceMs ?? GRACE_MS);
    this.#stdin?.destroy();
    this.stdout.closeUnread();
    return this.exited;
  }

  async #close(drainMs: number): Promise<Exit> {
    const exit = await this.exited;
    this.#stdin?.destroy();
    const { tree } = this.#spawned;
    const pipes = [this.stdout, this.#stderrPipe];
    if (await tree.left()) {
      // What the program left behind may still have something to say: the end of a log, the last of a pipe.
      if (!this.#stopping) await drained(pipes, drainMs);
      await tree.end(GRACE_MS);
    }
    for (const pipe of pipes) pipe.endWhenQuiet(drainMs);
    await this.#stderrPipe.finished();
    return exit;
  }
}
