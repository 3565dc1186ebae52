/** Reading epics: what was run, and how it went. Whatever a crash left in them is read as far as it goes. */

import { readdirSync, statSync } from "node:fs";
import { basename, isAbsolute, join, resolve } from "node:path";
import { type Ending, TOKEN_KINDS, type TokenKind, type Tokens } from "../engine/events.ts";
import type { Began } from "./epic.ts";
import { EPIC_FILES } from "./epic.ts";
import { isHeld } from "./lock.ts";
import { type Home, workspacePath } from "./paths.ts";
import { type RecordLine, recordLines } from "./record-lines.ts";
import { refuseNoDirectory } from "./unusable-path.ts";

/** `unfinished`: no end was written and the process is gone. */
export type EpicState = Ending | "going" | "unfinished";

export interface EpicUsage {
  /** USD. */
  readonly cost: number;
  readonly outputTokens: number;
  /** The sum over every turn. */
  readonly seconds: number;
}

/** An epic as a list shows it. */
export interface EpicSummary {
  /** The name of its directory. */
  readonly name: string;
  /** Absolute. */
  readonly directory: string;
  readonly began: Began & { readonly workspace: string };
  /** Unix seconds. */
  readonly at: number;
  /** Unix seconds; absent for one that did not end. */
  readonly endedAt?: number;
  readonly state: EpicState;
  /** What a run that failed or was stopped said of it. */
  readonly error?: string;
  /** Absent where the run wrote none. */
  readonly usage?: EpicUsage;
}

/** One flow call. */
export interface EpicCall {
  /** 0 is the top one. */
  readonly call: number;
  readonly flow: string;
  readonly task: string;
  readonly at: number;
  readonly endedAt?: number;
  /** Absent for one that did not return. */
  readonly how?: string;
  /** What the turns taken in it came to, by role; those of the flows that it called are theirs. */
  readonly agents: readonly EpicAgent[];
  readonly calls: readonly EpicCall[];
}

/** A conversation with a harness. */
export interface EpicSession {
  readonly agent: string;
  readonly backend: string;
  readonly provider: string;
  readonly session: string;
  /** The session it was forked from. */
  readonly parent?: string;
  readonly call: number;
}

/** What the turns of one agent came to. */
export interface EpicAgent {
  readonly agent: string;
  readonly turns: number;
  readonly failed: number;
  readonly outputTokens: number;
  /** By kind, of turns that were answered. */
  readonly tokens: Tokens;
  /** Absent where no turn had a price. */
  readonly cost?: number;
  readonly seconds: number;
}

/** An epic, whole. */
export interface Epic extends EpicSummary {
  readonly top: EpicCall;
  readonly sessions: readonly EpicSession[];
  readonly agents: readonly EpicAgent[];
  /** Lines that could not be read, of every file. */
  readonly badLines: number;
}

/**
 * The epics of a workspace, or of every one, newest first.
 *
 * @param options.most How many at most.
 * @throws UnusablePath where the home of hmz is none.
 */
export function listEpics(
  home: Home,
  options: { readonly workspace?: string; readonly most?: number },
): { readonly epics: readonly EpicSummary[]; readonly more: number } {
  const { workspace, most = Infinity } = options;
  refuseUnreadable(home);
  const parents = workspace === undefined ? children(home.epics) : [home.epicsOf(workspace)];
  const found = parents
    .flatMap(children)
    .filter(isEpic)
    .sort((one, other) => (basename(one) < basename(other) ? 1 : -1));
  const own = workspace === undefined ? undefined : workspacePath(workspace);
  const epics: EpicSummary[] = [];
  let more = 0;
  for (const directory of found) {
    if (epics.length >= most) {
      more += 1;
      continue;
    }
    const { summary } = readRecord(directory);
    // Two workspaces may share one directory: their keys collide.
    if (own === undefined || summary.began.workspace === own || summary.began.workspace === "") epics.push(summary);
  }
  return { epics, more };
}

/**
 * The directories of the epics that a name means: a path, a whole name, its beginning, or the six characters at its
 * end; `last` is the newest one of the workspace.
 *
 * @throws UnusablePath where the home of hmz is none.
 */
export function findEpics(home: Home, workspace: string, name: string): readonly string[] {
  if (name === "last") return listEpics(home, { workspace, most: 1 }).epics.map(({ directory }) => directory);
  if (name.includes("/")) {
    const path = isAbsolute(name) ? name : resolve(workspace, name);
    return isEpic(path) ? [path] : [];
  }
  refuseUnreadable(home);
  // Every name begins with it.
  if (name === "") return [];
  const matches = (path: string): boolean => basename(path).startsWith(name) || basename(path).endsWith(`-${name}`);
  const here = children(home.epicsOf(workspace)).filter(matches).filter(isEpic);
  return here.length > 0 ? here : children(home.epics).flatMap(children).filter(matches).filter(isEpic);
}

/** An epic as a list shows it. @throws Error where its record cannot be read. */
export function readSummary(directory: string): EpicSummary {
  return readRecord(directory).summary;
}

/** An epic, read whole. @throws Error where its record cannot be read. */
export function readEpic(directory: string): Epic {
  const { summary, lines, bad } = readRecord(directory);
  const { top, known } = callTree(summary, lines);
  let badEvents = 0;
  const agents = new AgentSums();
  const byCall = new Map<GrowingCall, AgentSums>();
  for (const event of recordLines(join(directory, EPIC_FILES.events), () => (badEvents += 1))) {
    // The turns of a call whose own line is lost are the top one's, as its calls are.
    const call = known.get(number(event["call"])) ?? top;
    const own = byCall.get(call) ?? new AgentSums();
    byCall.set(call, own);
    own.add(event);
    agents.add(event);
  }
  for (const [call, own] of byCall) call.agents = own.all;
  const usage = summary.usage ?? usageOf(agents.all);
  return {
    ...summary,
    ...(usage ? { usage } : {}),
    top,
    sessions: sessionsOf(lines),
    agents: agents.all,
    badLines: bad + badEvents,
  };
}

/** No home yet is a home without epics; one that is a file would read as that. */
function refuseUnreadable(home: Home): void {
  refuseNoDirectory(home.root);
  refuseNoDirectory(home.epics);
}

function children(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name));
  } catch {
    return [];
  }
}

function isEpic(directory: string): boolean {
  return statSync(join(directory, EPIC_FILES.record), { throwIfNoEntry: false })?.isFile() ?? false;
}

type Line = RecordLine;

const ENDINGS: readonly string[] = ["done", "failed", "stopped", "waiting"] satisfies Ending[];

/** What the record of an epic says, with its lines. @throws Error where it cannot be read. */
export function readRecord(directory: string): { summary: EpicSummary; lines: readonly Line[]; bad: number } {
  let bad = 0;
  const lines = [...recordLines(join(directory, EPIC_FILES.record), () => (bad += 1))];
  const began = lines.find(({ event }) => event === "began") ?? {};
  const ended = lines.findLast(({ event }) => event === "ended");
  const spent = lines.findLast(({ event }) => event === "usage");
  const how = ended && text(ended["how"]);
  const name = basename(directory);
  const summary: EpicSummary = {
    name,
    directory,
    at: seconds(began["at"]) ?? stamped(name),
    began: {
      flow: text(began["flow"]),
      ref: text(began["ref"]),
      task: text(began["task"]),
      workspace: text(began["workspace"]),
      resumable: began["resumable"] === true,
      ...(typeof began["picked_up"] === "string" ? { picked_up: began["picked_up"] } : {}),
      agents: list(began["agents"]).map((given) => ({
        agent: text(given["agent"]),
        backend: text(given["backend"]),
        model: text(given["model"]),
        effort: text(given["effort"]),
        provider: text(given["provider"]),
      })),
      envs: Array.isArray(began["envs"]) ? began["envs"].filter((spec) => typeof spec === "string") : [],
      params: began["params"],
      ...(began["budget"] === undefined ? {} : { budget: began["budget"] }),
    },
    state: stateOf(directory, how),
    ...(ended ? { endedAt: seconds(ended["at"]) ?? 0 } : {}),
    ...(ended?.["error"] === undefined ? {} : { error: errorText(ended["error"]) }),
    ...(spent
      ? {
          usage: {
            cost: number(spent["cost"]),
            outputTokens: number(spent["output_tokens"]),
            seconds: number(spent["seconds"]),
          },
        }
      : {}),
  };
  return { summary, lines, bad };
}

function stateOf(directory: string, how: string | undefined): EpicState {
  if (how !== undefined) return ENDINGS.includes(how) ? (how as Ending) : "unfinished";
  return isHeld(join(directory, EPIC_FILES.held)) ? "going" : "unfinished";
}

interface GrowingCall extends EpicCall {
  endedAt?: number;
  how?: string;
  agents: readonly EpicAgent[];
  readonly calls: GrowingCall[];
}

function callTree(
  summary: EpicSummary,
  lines: readonly Line[],
): { readonly top: GrowingCall; readonly known: ReadonlyMap<number, GrowingCall> } {
  const { began, at, endedAt, state } = summary;
  const top: GrowingCall = {
    call: 0,
    flow: began.ref || began.flow,
    task: began.task,
    at,
    ...(endedAt === undefined ? {} : { endedAt, how: state }),
    agents: [],
    calls: [],
  };
  const known = new Map<number, GrowingCall>([[0, top]]);
  for (const line of lines) {
    const id = line["call"];
    if (typeof id !== "number") continue;
    if (line["event"] === "called" && !known.has(id)) {
      const made = {
        call: id,
        flow: text(line["flow"]),
        task: text(line["task"]),
        at: seconds(line["at"]) ?? 0,
        agents: [],
        calls: [],
      };
      known.set(id, made);
      // A caller whose own line is lost: its calls are shown under the top one, not dropped.
      (known.get(number(line["under"])) ?? top).calls.push(made);
    }
    if (line["event"] === "returned") {
      const call = known.get(id);
      const endedAt = seconds(line["at"]);
      if (!call || call === top || endedAt === undefined) continue;
      call.endedAt = endedAt;
      call.how = text(line["how"]);
    }
  }
  return { top, known };
}

function sessionsOf(lines: readonly Line[]): readonly EpicSession[] {
  return lines
    .filter(({ event }) => event === "opened")
    .map((line) => ({
      agent: text(line["agent"]),
      backend: text(line["backend"]),
      provider: text(line["provider"]),
      session: text(line["session"]),
      ...(typeof line["parent"] === "string" ? { parent: line["parent"] } : {}),
      call: number(line["call"]),
    }));
}

/** What turns come to, by role. */
class AgentSums {
  readonly #agents = new Map<string, Growing<EpicAgent>>();

  get all(): readonly EpicAgent[] {
    return [...this.#agents.values()];
  }

  add(event: Line): void {
    const name = text(event["agent"]);
    const agent = this.#agents.get(name) ?? {
      agent: name,
      turns: 0,
      failed: 0,
      outputTokens: 0,
      tokens: {},
      seconds: 0,
    };
    if (event["kind"] === "begins") agent.turns += 1;
    else if (event["kind"] === "failed") agent.failed += 1;
    else if (event["kind"] === "ends") agent.seconds += number(event["seconds"]);
    else if (event["kind"] === "result") {
      for (const count of Object.values(record(event["tokens"]))) agent.outputTokens += number(count);
      const tokens: { [K in TokenKind]?: number } = { ...agent.tokens };
      const spent = record(event["spent"]);
      for (const kind of TOKEN_KINDS) {
        const count = spent[kind];
        if (typeof count === "number") tokens[kind] = (tokens[kind] ?? 0) + count;
      }
      agent.tokens = tokens;
      if (typeof event["cost"] === "number") agent.cost = (agent.cost ?? 0) + event["cost"];
    } else return;
    this.#agents.set(name, agent);
  }
}

type Growing<T> = { -readonly [K in keyof T]: T[K] };

/** What the turns say was spent, for a run that was killed before it could write its total. */
function usageOf(agents: readonly EpicAgent[]): EpicUsage | undefined {
  if (agents.length === 0) return undefined;
  return {
    cost: agents.reduce((sum, { cost = 0 }) => sum + cost, 0),
    outputTokens: agents.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
    seconds: agents.reduce((sum, { seconds }) => sum + seconds, 0),
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function record(value: unknown): Line {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Line) : {};
}

function list(value: unknown): readonly Line[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "object" && item !== null) : [];
}

/** A time as Unix seconds: it is written as ISO text, and by others as a number. */
function seconds(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  const at = typeof value === "string" ? Date.parse(value) / 1000 : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

function stamped(name: string): number {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d+Z)/.exec(name);
  return (parts && seconds(`${parts[1]}-${parts[2]}-${parts[3]}T${parts[4]}:${parts[5]}:${parts[6]}`)) ?? 0;
}

function errorText(error: unknown): string {
  if (typeof error === "string") return error;
  if (typeof error !== "object" || error === null) return String(error);
  const { name, message } = error as Line;
  return [text(name), text(message)].filter(Boolean).join(": ") || JSON.stringify(error);
}
