/**
 * The shell script behind search and list: ripgrep where the machine has it; else git, which minds .gitignore, where the
 * place is in a repository; else what every machine has. One start, whichever it is.
 */

import type { ExecOutcome, Place } from "../../engine/ports.ts";

/** More than a model can read, and little enough that a search through gigabytes does not fill our memory. */
const MOST_BYTES = 1_000_000;
const TIMEOUT = 120_000;

export interface Roads {
  readonly ripgrep: readonly string[];
  readonly git: readonly string[];
  readonly plain: readonly string[];
}

export async function lookUp(
  place: Place,
  options: { readonly cwd: string; readonly roads: Roads; readonly signal: AbortSignal },
): Promise<ExecOutcome> {
  const { cwd, roads, signal } = options;
  const command = (argv: readonly string[]): string => argv.map(quoted).join(" ");
  const script = [
    "{ if command -v rg >/dev/null 2>&1",
    `then ${command(roads.ripgrep)}`,
    "elif git rev-parse --is-inside-work-tree >/dev/null 2>&1",
    `then ${command(roads.git)}`,
    `else ${command(roads.plain)}`,
    `fi; } | head -c ${MOST_BYTES}`,
  ].join("\n");
  return place.machine.exec(["sh", "-c", script], { cwd, timeout: TIMEOUT, signal });
}

/** The words of a command that has no blanks in any of them. */
export function words(command: string): readonly string[] {
  return command.split(" ");
}

/** A word of a shell script, whatever is in it. */
export function quoted(word: string): string {
  return /^[\w./:=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/**
 * Where to look, and under what name: a path under the workdir is looked up from the workdir, so that what is found is
 * named relative to it; another one from itself.
 */
export async function lookingAt(
  path: string,
  absolute: string,
  { place, shown }: { readonly place: Place; readonly shown: (path: string) => string },
): Promise<{ readonly cwd: string; readonly target: string; readonly note: string }> {
  const { machine, workdir } = place;
  const relative = shown(absolute);
  // A name that starts like an option is none where it starts with the directory.
  const target = relative.startsWith("-") ? `./${relative}` : relative;
  if (relative !== absolute) return { cwd: workdir, target, note: "" };
  if (await machine.isDirectory(absolute)) return { cwd: absolute, target: ".", note: `in ${absolute}:\n` };
  const slash = absolute.lastIndexOf("/");
  const directory = absolute.slice(0, slash) || "/";
  if (!(await machine.isDirectory(directory))) throw new Error(`${path} is not there`);
  return { cwd: directory, target: `./${absolute.slice(slash + 1)}`, note: `in ${directory}:\n` };
}
