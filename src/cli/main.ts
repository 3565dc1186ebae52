/** The command line: the first word names a command, whose module alone is loaded. */

import type { Command, Io } from "./io.ts";
import { Refusal, UsageError } from "./io.ts";

const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  demo: async () => (await import("./demo.ts")).demo,
  doctor: async () => (await import("./doctor.ts")).doctor,
  epics: async () => (await import("./epics.ts")).epics,
  exec: async () => (await import("./exec.ts")).exec,
  flows: async () => (await import("./flows.ts")).flows,
  help: async () => help,
  new: async () => (await import("./new.ts")).newFlow,
};

/** Runs one command line, without the program's own name. Resolves to the exit status; never rejects. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  const [word = "help", ...rest] = argv;
  try {
    if (word === "--version" || word === "-V") return await version(rest, io);
    if (word === "-h" || word === "--help") return await help(rest, io);
    const command = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined;
    if (!command) throw await unknown(word);
    return await (
      await command()
    )(rest, io);
  } catch (error) {
    return await refused(Object.hasOwn(COMMANDS, word) && word !== "help" ? `hmz ${word}` : "hmz", error, io);
  }
}

async function help([command]: readonly string[], io: Io): Promise<number> {
  if (command !== undefined && Object.hasOwn(COMMANDS, command) && command !== "help") {
    return main([command, "--help"], io);
  }
  if (command !== undefined) throw await unknown(command);
  io.stdout.write((await import("./help.ts")).HELP);
  return 0;
}

async function unknown(word: string): Promise<UsageError> {
  const { meant } = await import("./options.ts");
  return word.startsWith("-")
    ? new UsageError(`there is no option '${word}'${meant(word, ["--help", "--version"])}`)
    : new UsageError(`there is no command '${word}'${meant(word, Object.keys(COMMANDS))}`);
}

async function version(rest: readonly string[], io: Io): Promise<number> {
  if (rest.length > 0) throw new UsageError("--version stands alone");
  io.stdout.write(`hmz ${(await import("../sdk/version.ts")).version()}\n`);
  return 0;
}

/** Says what was thrown: one line for a mistake of a person, everything for one of ours. */
async function refused(program: string, error: unknown, io: Io): Promise<number> {
  const { printable } = await import("./printable.ts");
  if (error instanceof UsageError) {
    const usage = error.usage ?? (await import("./help.ts")).USAGE;
    io.stderr.write(`${usage}\n${program}: error: ${printable(error.message)}\n`);
    return 2;
  }
  const { FlowException } = await import("../flows/errors.ts");
  const { Refused } = await import("../sdk/refused.ts");
  if (error instanceof Refusal || error instanceof FlowException || error instanceof Refused) {
    io.stderr.write(`${program}: error: ${printable(error.message)}\n`);
    return 2;
  }
  // What the system refuses is no fault of ours either: a directory that may not be written, a disk that is full.
  if (error instanceof Error && "syscall" in error) {
    io.stderr.write(`${program}: error: ${printable(error.message)}\n`);
    return 1;
  }
  const said = error instanceof Error ? (error.stack ?? error.message) : String(error);
  io.stderr.write(`${program}: this is a fault in hmz, not in what you asked for:\n${printable(said)}\n`);
  return 1;
}

/** Runs the process's own command line. */
export async function run(): Promise<void> {
  const { stdout, stderr, env } = process;
  let status = 0;
  let lost = false;
  for (const stream of [stdout, stderr]) {
    stream.on("error", ({ code, message }: NodeJS.ErrnoException) => {
      // Whoever read has left (`| head`), or the terminal was hung up. That is no failure of what was asked for.
      if (code === "EPIPE" || code === "EIO" || lost) return;
      lost = true;
      process.exitCode = status || 1;
      if (stream === stdout) stderr.write(`hmz: error: the output could not be written: ${message}\n`);
    });
  }
  let cwd: string | undefined;
  status = await main(process.argv.slice(2), {
    stdout,
    stderr,
    env,
    // Asked for where it is needed: `hmz --help` works in a directory that is gone.
    get cwd() {
      return (cwd ??= currentDirectory());
    },
  });
  process.exitCode = status || (lost ? 1 : 0);
}

function currentDirectory(): string {
  try {
    return process.cwd();
  } catch {
    throw new Refusal("the directory that hmz was started in is gone: change to another one");
  }
}
