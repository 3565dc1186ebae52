/** `hmz epics`: the runs that were, and what can be made of each. */

import type { EpicShelf } from "../sdk/index.ts";
import { isColoured, paint } from "./colour.ts";
import { coloured, said, shownEpic, took } from "./epic-shown.ts";
import { count, money } from "./figures.ts";
import { type Io, UsageError } from "./io.ts";
import { parsed } from "./options.ts";
import { printable, printableLine } from "./printable.ts";
import { table } from "./table.ts";

const USAGE = "usage: hmz epics [show | trace | export | resume] [EPIC] [OPTION]…";

const HELP = `${USAGE}

Lists the runs that were started in this directory, the newest first. Each one
leaves an epic: what was asked for, who worked on it, what it cost, how it went.

  show EPIC      one whole: its calls, who spent what, how it ended
  trace EPIC     its trace: a file that opens in https://ui.perfetto.dev
  export EPIC    one file to hand on, without its secrets
  resume EPIC    run it again as it was asked for, from where it stopped

EPIC is a name, the six characters at its end, a path, or last (the default).

  --all          list the runs of every directory
  --most N       list at most N (default 20; 0 for all)
  -o, --output FILE  what trace or export writes
  --force        replace that file where it is there
  --json         one JSON object a line; of resume, one an event

How a run ended: done, failed, stopped (from outside, or by its budget),
waiting (for an approval), going, left unfinished (its process is gone).

Example:
  hmz epics trace last -o run.json
`;

const OPTIONS = {
  all: { type: "boolean", default: false },
  most: { type: "string" },
  output: { type: "string", short: "o" },
  force: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

interface Values {
  readonly all: boolean;
  readonly most?: string | undefined;
  readonly output?: string | undefined;
  readonly force: boolean;
  readonly json: boolean;
}

const VERBS = ["list", "show", "trace", "export", "resume"] as const;
type Verb = (typeof VERBS)[number];

/** The verbs that take an option; any takes the others. */
const TAKEN_BY: Readonly<Partial<Record<keyof Values, readonly Verb[]>>> = {
  all: ["list"],
  most: ["list"],
  output: ["trace", "export"],
  force: ["trace", "export"],
};

export async function epics(argv: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parsed(argv, { options: OPTIONS, usage: USAGE, most: 2 });
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  const { verb, name } = asked(positionals, values);
  for (const [option, verbs] of Object.entries(TAKEN_BY)) {
    const given = values[option as keyof Values];
    if (given === undefined || given === false || verbs.includes(verb)) continue;
    throw new UsageError(
      `--${option} is an option of hmz epics ${verbs.join(" and ").replace("list", "alone")}`,
      USAGE,
    );
  }
  if (name === "") throw new UsageError("the name of an epic is not empty; leave it out for the newest one", USAGE);
  if (values.output === "") throw new UsageError("-o takes the name of a file, and it is empty", USAGE);
  const shelf = (await import("../sdk/epic-shelf.ts")).epicShelfOf(io.cwd, io.env);
  switch (verb) {
    case "list":
      return list(shelf, values, io);
    case "show":
      return show(shelf, name, values, io);
    case "trace":
      return trace(shelf, name, values, io);
    case "export":
      return handOn(shelf, name, values, io);
    case "resume": {
      const { resumeEpic } = await import("./epic-resumed.ts");
      return resumeEpic(shelf, await shelf.locate(name), io, values.json);
    }
  }
}

/** `hmz epics NAME` shows one too; `--all` and `--most` are the list's. */
function asked(positionals: readonly string[], values: Values): { verb: Verb; name: string } {
  const [first, second] = positionals;
  const verb = VERBS.find((known) => known === first && known !== "list");
  if (verb) return { verb, name: second ?? "last" };
  if (second !== undefined) throw new UsageError(`'${second}' is one argument too many`, USAGE);
  if (first !== undefined) return { verb: "show", name: first };
  if (values.output !== undefined || values.force)
    throw new UsageError("-o and --force are options of trace and export", USAGE);
  return { verb: "list", name: "last" };
}

async function show(shelf: EpicShelf, name: string, { json }: Values, io: Io): Promise<number> {
  const directory = await shelf.locate(name);
  const epic = await shelf.read(directory);
  const unresumable = await shelf.unresumable(directory);
  if (json) io.stdout.write(`${JSON.stringify({ ...epic, unresumable })}\n`);
  else io.stdout.write(shownEpic(epic, unresumable, io));
  return 0;
}

async function trace(shelf: EpicShelf, name: string, { output, force, json }: Values, io: Io): Promise<number> {
  const made = await shelf.trace(name, { file: output, force });
  io.stdout.write(json ? `${JSON.stringify(made)}\n` : `${printable(made.file)}\n`);
  if (json) return 0;
  const programs = made.programs > 0 ? `, ${made.programs} programs` : "";
  io.stderr.write(`${made.turns} turn${made.turns === 1 ? "" : "s"}${programs}; open it in https://ui.perfetto.dev\n`);
  return 0;
}

async function handOn(shelf: EpicShelf, name: string, { output, force, json }: Values, io: Io): Promise<number> {
  const made = await shelf.export(name, { file: output, force });
  io.stdout.write(json ? `${JSON.stringify(made)}\n` : `${printable(made.file)}\n`);
  if (json) return 0;
  io.stderr.write(
    `${made.files.length} files, ${count(made.bytes)} bytes. Look at its transcript.md before you hand it on\n`,
  );
  for (const { path, why } of made.leftOut) io.stderr.write(`left out: ${printableLine(path)}: ${why}\n`);
  return 0;
}

async function list(shelf: EpicShelf, values: Values, io: Io): Promise<number> {
  const given = values.most ?? "20";
  const most = /^\d+$/.test(given) ? Number(given) : undefined;
  if (most === undefined) throw new UsageError(`--most takes a whole number, 0 for all; '${given}' is none`, USAGE);
  const { epics, more } = await shelf.list({ everywhere: values.all, ...(most === 0 ? {} : { most }) });
  if (values.json) {
    for (const epic of epics) io.stdout.write(`${JSON.stringify(epic)}\n`);
    return 0;
  }
  if (epics.length === 0) {
    io.stderr.write(values.all ? "no run was started yet\n" : `no run was started in ${io.cwd}\n`);
    return 0;
  }
  const style = paint(isColoured(io.stdout, io.env));
  const rows = epics.map((epic) => [
    epic.name,
    said(epic.state),
    epic.usage ? money(epic.usage.cost) : "",
    took(epic),
    printableLine(epic.began.flow, 40),
    ...(values.all ? [printableLine(epic.began.workspace, 60)] : []),
    printableLine(epic.began.task, 200),
  ]);
  io.stdout.write(table(rows, io.stdout, [undefined, (text) => coloured(text, style)]));
  if (more > 0) io.stdout.write(style.dim(`and ${more} more: hmz epics --most 0\n`));
  return 0;
}
