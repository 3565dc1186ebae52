/** One program from its start to its end, with what it printed. */

import { BoundedTail, firstWhole, lastWhole } from "./bounded-tail.ts";
import { drained, OutputPipe } from "./output-pipe.ts";
import { DRAIN_MS, spawnTree } from "./spawn.ts";
import type { Exit, Spawned } from "./spawn.ts";
import { constants } from "node:os";
import { after } from "./timer.ts";

export interface RunOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  /** The whole environment of the program: nothing is added but the mark of its tree. */
  readonly env: Readonly<Record<string, string>>;
  /** Milliseconds; none where 0 or not given. */
  readonly timeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Bytes kept of each stream: the first half and the last half of so many. 16 MiB where not given. */
  readonly maxOutput?: number | undefined;
  /** From TERM to KILL, past the timeout or when aborted; 1 second where not given. */
  readonly graceMs?: number | undefined;
  readonly mark?: string | undefined;
  /** `false` does without the native leash. */
  readonly leash?: boolean | undefined;
}

export interface Ran {
  /** The exit status; 128 and the signal's number where a signal ended it. */
  readonly status: number;
  /** UTF-8. Where bytes were left out of it, a line says how many, at the place. */
  readonly stdout: string;
  readonly stderr: string;
  /** Whether bytes of either stream were left out. */
  readonly truncated: boolean;
  /** Whether it was ended for running past its timeout. */
  readonly timedOut: boolean;
}

const MAX_OUTPUT = 16 * 1024 * 1024;
const GRACE_MS = 1000;

/**
 * Runs a program with its standard input closed and waits for it and for all that it started: what it leaves behind is
 * ended.
 *
 * @throws NodeJS.ErrnoException with Node's code where it cannot start, as `startChild` does; the signal's reason when
 *   aborted, its tree ended.
 */
export async function runProgram(options: RunOptions): Promise<Ran> {
  const { argv, cwd, env, mark, leash, signal } = options;
  signal?.throwIfAborted();
  const spawned = await spawnTree({ argv, cwd, env, stdin: "closed", mark, leash });
  const { stdout, stderr } = spawned.process;
  if (stdout === null || stderr === null) throw new Error("a program without pipes");
  const pipes = [new OutputPipe(stdout), new OutputPipe(stderr)] as const;
  const outputs = [new Output(options.maxOutput ?? MAX_OUTPUT), new Output(options.maxOutput ?? MAX_OUTPUT)] as const;
  pipes[0].drainInto((chunk) => outputs[0].push(chunk));
  pipes[1].drainInto((chunk) => outputs[1].push(chunk));

  let timedOut = false;
  let cutShort = false;
  let ending: Promise<void> | undefined;
  const cut = (): void => {
    cutShort = true;
    ending = spawned.tree.end(options.graceMs ?? GRACE_MS);
    // It is waited for below, when the program has ended.
    ending.catch(() => {});
  };
  const { timeout = 0 } = options;
  const callOff =
    timeout > 0
      ? after(timeout, () => {
          timedOut = true;
          cut();
        })
      : undefined;
  signal?.addEventListener("abort", cut, { once: true });
  let exit: Exit;
  try {
    if (signal?.aborted === true) cut();
    exit = await finish(spawned, pipes, () => cutShort);
    await ending;
  } finally {
    callOff?.();
    signal?.removeEventListener("abort", cut);
  }
  if (!timedOut) signal?.throwIfAborted();
  return {
    status: statusOf(exit),
    stdout: outputs[0].text(),
    stderr: outputs[1].text(),
    truncated: outputs[0].truncated || outputs[1].truncated,
    timedOut,
  };
}

/** The status that a shell gives for an exit. */
export function statusOf(exit: Exit): number {
  return exit.code ?? 128 + (exit.signal === null ? 0 : constants.signals[exit.signal]);
}

async function finish(spawned: Spawned, pipes: readonly OutputPipe[], cutShort: () => boolean): Promise<Exit> {
  const exit = await spawned.exited;
  if (await spawned.tree.left()) {
    if (!cutShort()) await drained(pipes, DRAIN_MS);
    await spawned.tree.end(GRACE_MS);
  }
  for (const pipe of pipes) {
    pipe.endWhenQuiet(DRAIN_MS);
    if (!pipe.ended) await pipe.finished();
  }
  return exit;
}

/** The first and the last bytes of a stream. */
class Output {
  readonly #limit: number;
  readonly #head: Uint8Array[] = [];
  #headSize = 0;
  readonly #tail: BoundedTail;

  constructor(limit: number) {
    this.#limit = Math.ceil(limit / 2);
    this.#tail = new BoundedTail(Math.floor(limit / 2));
  }

  get truncated(): boolean {
    return this.#tail.truncated;
  }

  push(chunk: Uint8Array): void {
    const taken = chunk.subarray(0, this.#limit - this.#headSize);
    if (taken.length > 0) {
      this.#head.push(taken);
      this.#headSize += taken.length;
    }
    if (taken.length < chunk.length) this.#tail.push(chunk.subarray(taken.length));
  }

  text(): string {
    if (this.#head.length === 0) return "";
    const tail = this.#tail.bytes();
    if (!this.truncated) return Buffer.concat([...this.#head, tail]).toString("utf8");
    const head = Buffer.concat(this.#head);
    const whole = head.subarray(0, lastWhole(head));
    const rest = tail.subarray(firstWhole(tail));
    const left = this.#headSize + this.#tail.total - whole.length - rest.length;
    return `${whole.toString("utf8")}\n[${left} bytes left out]\n${rest.toString("utf8")}`;
  }
}
