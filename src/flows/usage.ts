/** What a command line says of itself. */

import { type Flag, placeholder } from "./flags.ts";

const WIDTH = 100;

interface Named {
  readonly name: string;
  readonly about: string;
}

/** How the whole is called. */
export function usage(cli: Named): string {
  return `usage: ${cli.name} COMMAND [--FLAG VALUE ...]\n`;
}

/** How one command is called. */
export function commandUsage(cli: Named, command: Named, flags: readonly Flag[]): string {
  const head = `usage: ${cli.name} ${command.name}`;
  const parts = ["[--help]", ...flags.map((flag) => (flag.required ? shown(flag) : `[${shown(flag)}]`))];
  const indent = " ".repeat(Math.min(head.length + 1, 24));
  const lines = [head];
  for (const part of parts) {
    const last = lines.at(-1) as string;
    if (last.length + part.length < WIDTH) lines[lines.length - 1] = `${last} ${part}`;
    else lines.push(`${indent}${part}`);
  }
  return `${lines.join("\n")}\n`;
}

/** The whole's help. */
export function help(cli: Named, commands: readonly Named[]): string {
  return (
    `${usage(cli)}\n${cli.about}\n\ncommands:\n` +
    table(commands.map(({ name, about }) => [name, about])) +
    `\n\`${cli.name} COMMAND --help\` says what a command takes.\n`
  );
}

/** A command's help. */
export function commandHelp(cli: Named, command: Named, flags: readonly Flag[]): string {
  const rows = flags.map((flag): [string, string] => [shown(flag), [flag.about, note(flag)].filter(Boolean).join(" ")]);
  const all = table([...rows, ["--help", "say this and do nothing"]]);
  return `${commandUsage(cli, command, flags)}\n${command.about}\n\nflags:\n${all}`;
}

/** A flag with what stands for its value. */
function shown(flag: Flag): string {
  if (flag.value.kind === "switch") return `--[no-]${flag.name}`;
  return `--${flag.name} ${placeholder(flag)}${flag.many ? " ..." : ""}`;
}

function note(flag: Flag): string {
  const words = [
    ...(flag.required ? ["required"] : []),
    ...(flag.many ? ["may be given more than once"] : []),
    ...(flag.default === undefined ? [] : [`default: ${defaultOf(flag.default)}`]),
  ];
  return words.length === 0 ? "" : `(${words.join("; ")})`;
}

function defaultOf(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

/** Two columns; a first one too wide for the second to stand beside has a line of its own. */
function table(rows: readonly (readonly [string, string])[]): string {
  const widest = Math.min(Math.max(...rows.map(([left]) => left.length)), 28);
  const lines = rows.map(([left, right]) => {
    const text = right.replaceAll("\n", `\n${" ".repeat(widest + 4)}`);
    if (right === "") return `  ${left}`;
    return left.length > widest ? `  ${left}\n${" ".repeat(widest + 4)}${text}` : `  ${left.padEnd(widest)}  ${text}`;
  });
  return `${lines.join("\n")}\n`;
}
