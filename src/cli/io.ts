/** What a command line reads and writes: the process's own, or a test's. */

export interface Out {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

export interface Io {
  readonly stdout: Out;
  readonly stderr: Out;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absolute. */
  readonly cwd: string;
}

/** A command: what follows its name, and where it reads and writes; resolves to its exit status. */
export type Command = (argv: readonly string[], io: Io) => Promise<number>;

/** A mistake on the command line. Shown after the usage; exit status 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** `usage: hmz …`; the program's own where it is left out. */
  readonly usage: string | undefined;

  constructor(message: string, usage?: string) {
    super(message);
    this.usage = usage;
  }
}

/** Something a person asked for that cannot be done: said in one line, with no usage; exit status 2. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}
