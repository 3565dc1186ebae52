/** Command lines of the flow's own, put on an agent's PATH. */

import { z } from "zod";
import { Flags, type Line } from "./flags.ts";
import { nearest } from "./nearest.ts";
import { commandHelp, commandUsage, help, usage } from "./usage.ts";

/** One command of a command line. */
export interface Command<S extends z.ZodObject | undefined = z.ZodObject | undefined> {
  readonly name: string;
  readonly about: string;
  readonly takes?: S;
  // A method, so that a command of one schema is also a `Command` of any: its input was validated by `takes` before.
  call(input: S extends z.ZodObject ? z.output<S> : undefined): unknown;
}

/** What running a command line came to. */
export interface CliResult {
  /** 0 for done, 1 for a command that threw, 2 for a line that was refused, else the status of an `Exit`. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program on the agent's PATH, answered in the flow's process. */
export interface Cli {
  readonly name: string;
  readonly about: string;
  readonly commands: readonly Command[];
  /** Runs a line, the program's own name left out: `board.run(["post", "--text", "hi"])`. Never rejects. */
  run(argv: readonly string[]): Promise<CliResult>;
}

/**
 * Thrown by a command to end with a status of its own: `throw new Exit(3, "the board is full")`.
 *
 * What is said goes to standard error. A status is a whole number from 0 to 255, as a program's is.
 */
export class Exit extends Error {
  readonly status: number;

  constructor(status: number = 0, said: string = "") {
    super(said);
    this.name = "Exit";
    if (!Number.isInteger(status) || status < 0 || status > 255) {
      throw new RangeError(`${String(status)} is not an exit status: a whole number from 0 to 255`);
    }
    this.status = status;
  }
}

/**
 * A command, frozen.
 *
 * @param declared.takes A `--flag` for each field (`--max-items` for `maxItems`), its description the help, required
 * where it has no default: a boolean as `--flag` and `--no-flag`, an array by giving its flag again, an object as JSON.
 * @param declared.call Given what `takes` made of the flags, or nothing without `takes`. A string is printed, nothing
 * prints nothing, anything else is printed as JSON. Throws `Exit` for a status of its own; whatever else it throws is
 * said on standard error, with status 1.
 * @throws TypeError for a part of another type. @throws RangeError for a name that is none, and for a field that
 * cannot be a flag.
 */
export function command<S extends z.ZodObject | undefined = undefined>(declared: {
  readonly name: string;
  readonly about: string;
  readonly takes?: S;
  readonly call: (input: S extends z.ZodObject ? z.output<S> : undefined) => unknown;
}): Command<S> {
  assertCommand(declared);
  flagsOf(declared);
  return Object.freeze({ ...declared });
}

/**
 * A command line, frozen.
 *
 * `--help` prints what it is; a line that it cannot read prints how it is called, and why, on standard error, with
 * status 2.
 *
 * @param declared.name What the agent calls it: a file name of letters, digits, `.`, `_`, `-`.
 * @param declared.commands At least one, each named once.
 * @throws TypeError for a part of another type. @throws RangeError for a name that is none, for no command, and for a
 * command named twice.
 */
export function cli(declared: {
  readonly name: string;
  readonly about: string;
  readonly commands: readonly Command[];
}): Cli {
  assertNamed("a command line", declared);
  const { name, about, commands } = declared;
  if (!Array.isArray(commands)) throw new TypeError(`${name}.commands is not an array of commands`);
  if (commands.length === 0) throw new RangeError(`${name} has no command: a command line has at least one`);
  const table = new Map<string, { readonly command: Command; readonly flags: Flags }>();
  for (const command of commands as readonly Command[]) {
    assertCommand(command);
    if (table.has(command.name)) throw new RangeError(`${name} names the command '${command.name}' twice`);
    table.set(command.name, { command, flags: flagsOf(command) });
  }
  const itself = { name, about, commands: Object.freeze([...(commands as readonly Command[])]) };
  return Object.freeze({ ...itself, run: (argv: readonly string[]) => run(itself, table, argv) });
}

/** Whether a value has a command line's shape. */
export function isCli(value: unknown): value is Cli {
  if (typeof value !== "object" || value === null) return false;
  const { name, about, commands, run } = value as Partial<Cli>;
  return (
    isFileName(name) &&
    typeof about === "string" &&
    Array.isArray(commands) &&
    commands.length > 0 &&
    typeof run === "function"
  );
}

/** A name that a file can have, and that no program takes for an option or a directory. */
function isFileName(name: unknown): name is string {
  return typeof name === "string" && /^(?!-)(?!\.{1,2}$)[A-Za-z0-9._-]{1,255}$/.test(name);
}

function assertNamed(what: string, declared: { readonly name: unknown; readonly about: unknown }): void {
  if (typeof declared !== "object" || declared === null) throw new TypeError(`${what} is declared with an object`);
  const { name, about } = declared;
  if (typeof name !== "string") throw new TypeError(`${what} has a name: ${String(name)} is none`);
  if (!isFileName(name)) {
    throw new RangeError(`'${name}' is not the name of ${what}: letters, digits, \`.\`, \`_\` and \`-\``);
  }
  if (typeof about !== "string") throw new TypeError(`${name}.about is not text`);
}

function assertCommand(declared: { readonly [K in keyof Command]?: unknown }): void {
  assertNamed("a command", declared as { readonly name: unknown; readonly about: unknown });
  const { name, takes, call } = declared;
  if (takes !== undefined && !(takes instanceof z.ZodObject))
    throw new TypeError(`${String(name)}.takes is no z.object`);
  if (typeof call !== "function") throw new TypeError(`${String(name)}.call is not a function`);
}

const made = new WeakMap<z.ZodObject, Flags>();

/** The flags of what a command takes, made once. */
function flagsOf({ name, takes }: Command): Flags {
  const known = takes && made.get(takes);
  const flags = known ?? new Flags(name, takes);
  if (takes) made.set(takes, flags);
  return flags;
}

type Table = ReadonlyMap<string, { readonly command: Command; readonly flags: Flags }>;

async function run(itself: Omit<Cli, "run">, table: Table, argv: readonly string[]): Promise<CliResult> {
  const [word, ...words] = argv.map(String);
  const wrong = (how: string, who: string, why: string): CliResult => refusal(`${how}${who}: ${why}\n`);
  const whole = (why: string): CliResult => wrong(usage(itself), itself.name, why);
  const commands = `the commands are ${[...table.keys()].join(", ")}`;
  if (word === "--help" || word === "-h") return printed(help(itself, itself.commands));
  if (word === undefined) return whole(`needs a command: ${commands}`);
  const found = table.get(word);
  if (!found) {
    const near = nearest(word, table.keys());
    return whole(`there is no command '${word}'; ${near === undefined ? commands : `did you mean '${near}'?`}`);
  }
  const { command, flags } = found;
  const said = `${itself.name} ${command.name}`;
  const refused = (why: string): CliResult => wrong(commandUsage(itself, command, flags.all), said, why);
  const line: Line = flags.read(words);
  if (line.kind === "help") return printed(commandHelp(itself, command, flags.all));
  if (line.kind === "refused") return refused(line.why);
  try {
    const read = await command.takes?.safeParseAsync(line.input);
    if (read && !read.success) return refused(read.error.issues.map((issue) => issueOf(issue, flags)).join("; "));
    return printed(text(await command.call(read?.data)));
  } catch (error) {
    if (error instanceof Exit) return { status: error.status, stdout: "", stderr: lineOf(error.message) };
    return { status: 1, stdout: "", stderr: `${said}: ${error instanceof Error ? error.message : String(error)}\n` };
  }
}

function issueOf({ path, message }: { readonly path: readonly PropertyKey[]; readonly message: string }, flags: Flags) {
  const [field, ...inside] = path;
  const flag = flags.all.find((one) => one.field === field);
  if (!flag) return message;
  return `--${flag.name}${inside.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("")}: ${message}`;
}

function refusal(stderr: string): CliResult {
  return { status: 2, stdout: "", stderr };
}

function printed(stdout: string): CliResult {
  return { status: 0, stdout, stderr: "" };
}

function text(result: unknown): string {
  if (result === undefined || result === null) return "";
  return `${typeof result === "string" ? result : (JSON.stringify(result) ?? String(result))}\n`;
}

function lineOf(said: string): string {
  return said === "" ? "" : `${said}\n`;
}
