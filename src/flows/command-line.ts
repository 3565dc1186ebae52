/** Command lines of the flow's own, put on an agent's PATH. */

import type { z } from "zod";

/** One command of a command line. `call` is answered as a tool's is: a string is printed, `undefined` prints nothing. */
export interface Command<S extends z.ZodObject | undefined = z.ZodObject | undefined> {
  readonly name: string;
  readonly about: string;
  /** A `--flag` for each field, required where it has no default. */
  readonly takes?: S;
  call(input: S extends z.ZodObject ? z.output<S> : undefined): unknown;
}

/** What running a command line came to. */
export interface CliResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program on the agent's PATH, answered in the flow's process. */
export interface Cli {
  /** A file name: letters, digits, `.`, `_`, `-`. */
  readonly name: string;
  readonly about: string;
  readonly commands: readonly Command[];
}
