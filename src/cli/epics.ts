/** `hmz epics`: the runs that were, and how each one went. */

import { basename } from "node:path";
import type { Epic, EpicCall, EpicShelf, EpicState, EpicSummary, EpicUsage } from "../sdk/index.ts";
import { isColoured, type Paint, paint } from "./colour.ts";
import { count, lasting, money } from "./figures.ts";
import { type Io, Refusal, UsageError } from "./io.ts";
import { parsed } from "./options.ts";
import { printable, printableLine } from "./printable.ts";
import { table } from "./table.ts";

const USAGE = "usage: hmz epics [show] [EPIC] [--all] [--most N] [--json]";

const HELP = `${USAGE}

Lists the runs that were started in this directory, the newest first. Each run
leaves an epic: what was asked for, who worked on it, what it cost, how it ended.

  EPIC        show one whole: its name, the six characters at its end, a path,
              or last
  --all       those of every directory
  --most N    list at most N (default 20; 0 for all)
  --json      one JSON object a line

How a run ended: done, failed, stopped (from outside, or by its budget),
waiting (for an approval), going, left unfinished (its process is gone).

Example:
  hmz epics show last
`;

const OPTIONS = {
  all: { type: "boolean", default: false },
  most: { type: "string", default: "20" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** How many of the epics that a name means are listed. */
const MOST_MEANT = 5;

export async function epics(argv: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parsed(argv, { options: OPTIONS, usage: USAGE, most: 2 });
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  const [first, second] = positionals;
  const shelf = (await import("../sdk/epic-shelf.ts")).epicShelfOf(io.cwd, io.env);
  if (first === undefined) return list(shelf, values, io);
  if (first !== "show" && second !== undefined) {
    throw new UsageError(`'${second}' is one argument too many`, USAGE);
  }
  const name = first === "show" ? (second ?? "last") : first;
  if (name === "") throw new UsageError("the name of an epic is not empty; leave it out to show the newest one", USAGE);
  const found = await shelf.find(name);
  const [directory] = found;
  if (directory === undefined) {
    throw new Refusal(
      name === "last" ? `no run was started in ${io.cwd}` : `no epic is called '${name}': see hmz epics`,
    );
  }
  if (found.length > 1) {
    const names = found
      .map((path) => `  ${basename(path)}`)
      .toSorted()
      .reverse();
    const more = names.length > MOST_MEANT ? [`  and ${names.length - MOST_MEANT} more`] : [];
    throw new Refusal(
      [`'${name}' means ${found.length} epics: say more of its name`, ...names.slice(0, MOST_MEANT), ...more].join(
        "\n",
      ),
    );
  }
  const epic = await shelf.read(directory);
  if (values.json) io.stdout.write(`${JSON.stringify(epic)}\n`);
  else io.stdout.write(shown(epic, paint(isColoured(io.stdout, io.env)), io));
  return 0;
}

async function list(shelf: EpicShelf, values: { all: boolean; most: string; json: boolean }, io: Io): Promise<number> {
  const most = /^\d+$/.test(values.most) ? Number(values.most) : undefined;
  if (most === undefined)
    throw new UsageError(`--most takes a whole number, 0 for all; '${values.most}' is none`, USAGE);
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

function said(state: EpicState): string {
  return state === "unfinished" ? "left unfinished" : state;
}

function coloured(state: string, style: Paint): string {
  if (state === "done") return style.green(state);
  if (state === "failed") return style.red(state);
  return state === "going" ? style.cyan(state) : style.yellow(state);
}

function took({ at, endedAt }: Pick<EpicSummary, "at" | "endedAt">): string {
  return endedAt === undefined ? "" : lasting(endedAt - at);
}

/** An epic for a person. */
function shown(epic: Epic, style: Paint, io: Io): string {
  const { began, usage } = epic;
  const facts: [string, string][] = [
    ["flow", began.ref === "" || began.ref === began.flow ? began.flow : `${began.flow} (${began.ref})`],
    ["workspace", began.workspace],
    ["began", `${new Date(epic.at * 1000).toISOString()}${epic.endedAt === undefined ? "" : `, took ${took(epic)}`}`],
    ["ended", coloured(said(epic.state), style) + (epic.error === undefined ? "" : `: ${printable(epic.error)}`)],
  ];
  if (usage) facts.push(["spent", spent(usage)]);
  if (began.budget !== undefined) facts.push(["budget", JSON.stringify(began.budget)]);
  if (began.resumable) facts.push(["resumable", "yes"]);
  if (began.picked_up !== undefined) facts.push(["picked up", began.picked_up]);
  if (isFilled(began.params)) facts.push(["params", JSON.stringify(began.params)]);
  for (const spec of began.envs) facts.push(["env", spec]);
  const lines = [
    style.bold(epic.name),
    style.dim(epic.directory),
    "",
    // The state is coloured already; whatever else is somebody else's text is made safe here.
    ...facts.map(([name, fact]) => `${name.padEnd(11)}${name === "ended" ? fact : printable(fact)}`),
    "",
    indented(printable(began.task.trimEnd())),
  ];
  if (began.agents.length > 0) {
    // A flow that was called took its turns under role names of its own, with the agents that it was handed.
    const idle = epic.top.calls.length > 0 ? "no turn in this flow itself" : "no turn";
    const rows = began.agents.map((given) => {
      const done = epic.top.agents.find(({ agent }) => agent === given.agent);
      const { backend, provider, model, effort } = given;
      const spec = `${backend}${provider ? `@${provider}` : ""}/${model}${effort ? `:${effort}` : ""}`;
      return [`  ${printableLine(given.agent)}`, printableLine(spec), done ? turns(done) : idle];
    });
    lines.push("", style.bold("agents"), table(rows, io.stdout).trimEnd());
  }
  if (epic.sessions.length > 0) {
    const rows = epic.sessions.map((session) => [
      `  ${printableLine(session.agent)}`,
      printableLine(`${session.backend}@${session.provider}`),
      printableLine(session.session),
      session.parent === undefined ? "" : `forked from ${printableLine(session.parent)}`,
    ]);
    lines.push("", style.bold("sessions"), table(rows, io.stdout).trimEnd());
  }
  if (epic.top.calls.length > 0) lines.push("", style.bold("calls"), ...tree(epic.top.calls, "  ", style));
  if (epic.badLines > 0) lines.push("", style.yellow(`${epic.badLines} lines of its record could not be read`));
  return `${lines.join("\n")}\n`;
}

function spent({ cost, outputTokens, seconds }: EpicUsage): string {
  return `${money(cost)}, ${count(outputTokens)} output tokens, ${lasting(seconds)} of turns`;
}

function turns({ turns, failed, outputTokens, cost, seconds }: Epic["agents"][number]): string {
  const figures = [
    `${turns} turn${turns === 1 ? "" : "s"}`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    `${count(outputTokens)} output tokens`,
    ...(cost === undefined ? [] : [money(cost)]),
    lasting(seconds),
  ];
  return figures.join(", ");
}

function* tree(calls: readonly EpicCall[], indent: string, style: Paint): Generator<string> {
  for (const call of calls) {
    const how = call.how === undefined ? style.yellow("did not return") : coloured(printableLine(call.how), style);
    const time = call.endedAt === undefined ? "" : ` ${lasting(call.endedAt - call.at)}`;
    yield `${indent}${printableLine(call.flow)} ${how}${time} ${style.dim(printableLine(call.task, 60))}`.trimEnd();
    for (const agent of call.agents) yield `${indent}  ${printableLine(agent.agent, 40)}: ${turns(agent)}`;
    yield* tree(call.calls, `${indent}  `, style);
  }
}

function isFilled(params: unknown): boolean {
  return typeof params === "object" && params !== null && Object.keys(params).length > 0;
}

function indented(text: string): string {
  return text
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");
}
