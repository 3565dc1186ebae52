/** One epic as a person reads it. */

import type { Epic, EpicCall, EpicState, EpicSummary, EpicUsage } from "../sdk/index.ts";
import { isColoured, type Paint, paint } from "./colour.ts";
import { count, lasting, money } from "./figures.ts";
import type { Io } from "./io.ts";
import { printable, printableLine } from "./printable.ts";
import { cutTo, width, wrapped } from "./width.ts";

/** The columns of a pipe: of whoever reads it later. */
const COLUMNS = 80;
/** Where the facts stand. */
const FACTS = 11;

/** @param unresumable Why no run can pick it up, `""` where one can. */
export function shownEpic(epic: Epic, unresumable: string, io: Io): string {
  const style = paint(isColoured(io.stdout, io.env));
  const columns = Math.max(40, (io.stdout.isTTY && io.stdout.columns) || COLUMNS);
  const { began, usage } = epic;
  const lines = [style.bold(epic.name), style.dim(printable(epic.directory)), ""];
  const fact = (name: string, text: string, paintFirst: (word: string) => string = (word) => word): void => {
    const [first = "", ...others] = printable(text)
      .split("\n")
      .flatMap((line) => wrapped(line, columns - FACTS, columns - FACTS));
    const [word = ""] = /^\S*/.exec(first) ?? [];
    lines.push(name.padEnd(FACTS) + paintFirst(word) + first.slice(word.length));
    for (const other of others) lines.push(" ".repeat(FACTS) + other);
  };
  fact("flow", began.ref === "" || began.ref === began.flow ? began.flow : `${began.flow} (${began.ref})`);
  fact("workspace", began.workspace);
  fact("began", `${new Date(epic.at * 1000).toISOString()}${epic.endedAt === undefined ? "" : `, took ${took(epic)}`}`);
  fact("ended", `${said(epic.state)}${epic.error === undefined ? "" : `: ${epic.error}`}`, (word) =>
    coloured(epic.state, style, word),
  );
  if (usage) fact("spent", spent(usage));
  if (began.budget !== undefined) fact("budget", JSON.stringify(began.budget));
  if (began.picked_up !== undefined) fact("picked up", began.picked_up);
  if (unresumable === "") fact("resumable", `yes: hmz epics resume ${epic.name.slice(-6)}`);
  else if (began.resumable) fact("resumable", `no: ${unresumable.replace(epic.name, "it")}`);
  if (isFilled(began.params)) fact("params", JSON.stringify(began.params));
  for (const spec of began.envs) fact("env", spec);
  lines.push("");
  for (const line of printable(began.task.trimEnd()).split("\n")) {
    for (const part of wrapped(line, columns - 2, columns - 2)) lines.push(`  ${part}`.trimEnd());
  }
  if (began.agents.length > 0) {
    // A flow that was called took its turns under role names of its own, with the agents that it was handed.
    const idle = epic.top.calls.length > 0 ? "no turn in this flow itself" : "no turn";
    const rows = began.agents.map((given) => {
      const done = epic.top.agents.find(({ agent }) => agent === given.agent);
      const { backend, provider, model, effort } = given;
      const spec = `${backend}${provider ? `@${provider}` : ""}/${model}${effort ? `:${effort}` : ""}`;
      return [printableLine(given.agent, 40), printableLine(spec), done ? turns(done) : idle];
    });
    lines.push("", style.bold("agents"), ...rowsOf(rows, columns));
  }
  if (epic.sessions.length > 0) {
    const rows = epic.sessions.map(({ agent, backend, provider, session, parent }) => [
      printableLine(agent, 40),
      printableLine(`${backend}@${provider}`),
      printableLine(session) + (parent === undefined ? "" : `, forked from ${printableLine(parent)}`),
    ]);
    lines.push("", style.bold("sessions"), ...rowsOf(rows, columns));
  }
  if (epic.top.calls.length > 0) lines.push("", style.bold("calls"), ...tree(epic.top.calls, "  ", style, columns));
  if (epic.badLines > 0) lines.push("", style.yellow(`${epic.badLines} lines of its record could not be read`));
  return `${lines.join("\n")}\n`;
}

/** How a run or a call ended, in words. */
export function said(state: EpicState): string {
  return state === "unfinished" ? "left unfinished" : state;
}

/** A word about a state, in the state's colour. */
export function coloured(state: string, style: Paint, word = state): string {
  if (state === "done") return style.green(word);
  if (state === "failed") return style.red(word);
  return state === "going" ? style.cyan(word) : style.yellow(word);
}

/** How long a run went; `""` for one that did not end. */
export function took({ at, endedAt }: Pick<EpicSummary, "at" | "endedAt">): string {
  return endedAt === undefined ? "" : lasting(endedAt - at);
}

/** Cells side by side, each column as wide as its widest; the last one on a line of its own where they do not fit. */
function* rowsOf(rows: readonly (readonly string[])[], columns: number): Generator<string> {
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, width(cell));
  const whole = 2 + widths.reduce((sum, cell) => sum + cell, 0) + 2 * (widths.length - 1);
  for (const row of rows) {
    const last = row.at(-1) ?? "";
    const cells = row.slice(0, -1).map((cell, at) => cell + " ".repeat((widths[at] ?? 0) - width(cell)));
    if (whole <= columns) yield `  ${[...cells, last].join("  ")}`.trimEnd();
    else {
      yield `  ${cells.join("  ")}`.trimEnd();
      for (const line of wrapped(last, columns - 4, columns - 4)) yield `    ${line}`;
    }
  }
}

function spent({ cost, outputTokens, seconds }: EpicUsage): string {
  return `${money(cost)}, ${count(outputTokens)} output tokens, ${lasting(seconds)} of turns`;
}

function turns({ turns, failed, tokens, outputTokens, cost, seconds }: Epic["agents"][number]): string {
  const { input = 0, cache_read: read = 0, cache_write: written = 0 } = tokens;
  const figures = [
    `${turns} turn${turns === 1 ? "" : "s"}`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(input > 0 ? [`${count(input)} input`] : []),
    ...(read > 0 ? [`${count(read)} cache read`] : []),
    ...(written > 0 ? [`${count(written)} cache write`] : []),
    `${count(outputTokens)} output tokens`,
    ...(cost === undefined ? [] : [money(cost)]),
    lasting(seconds),
  ];
  return figures.join(", ");
}

/** What a call and those under it came to. */
function whole(call: EpicCall): { readonly cost: number; readonly outputTokens: number } {
  let cost = 0;
  let outputTokens = 0;
  for (const agent of call.agents) {
    cost += agent.cost ?? 0;
    outputTokens += agent.outputTokens;
  }
  for (const inner of call.calls.map(whole)) {
    cost += inner.cost;
    outputTokens += inner.outputTokens;
  }
  return { cost, outputTokens };
}

function* tree(calls: readonly EpicCall[], indent: string, style: Paint, columns: number): Generator<string> {
  for (const call of calls) {
    const how = call.how === undefined ? "did not return" : printableLine(call.how, 20);
    const { cost, outputTokens } = whole(call);
    const figures = [
      ...(call.endedAt === undefined ? [] : [lasting(call.endedAt - call.at)]),
      ...(cost > 0 ? [money(cost)] : []),
      ...(outputTokens > 0 ? [`${count(outputTokens)} output tokens`] : []),
    ].join(", ");
    const head = `${indent}${printableLine(call.flow, 60)}`;
    const shownHow = coloured(call.how ?? "", style, how);
    const left = columns - width([head, how, figures].filter(Boolean).join(" ")) - 1;
    if (left < -1) {
      yield `${head} ${shownHow}`;
      if (figures !== "") yield `${indent}  ${figures}`;
    } else {
      const task = left < 8 ? "" : cutTo(printableLine(call.task, left), left);
      yield [head, shownHow, figures, style.dim(task)].filter(Boolean).join(" ");
    }
    for (const agent of call.agents) {
      const about = `${indent}  ${printableLine(agent.agent, 40)}: `;
      const [first = "", ...others] = wrapped(turns(agent), columns - width(about), columns - indent.length - 4);
      yield about + first;
      for (const other of others) yield `${indent}    ${other}`;
    }
    yield* tree(call.calls, `${indent}  `, style, columns);
  }
}

function isFilled(params: unknown): boolean {
  return typeof params === "object" && params !== null && Object.keys(params).length > 0;
}
