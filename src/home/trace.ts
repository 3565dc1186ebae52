/**
 * The trace of an epic, as Chrome's JSON: a process for each role, a thread for each conversation. It opens in Perfetto.
 * Written as it is read, so that a night of events needs no more memory than what goes on at once.
 */

import { join } from "node:path";
import { EPIC_FILES } from "./epic.ts";
import { type EpicSummary, readRecord } from "./epics.ts";
import { type RecordLine, recordParts } from "./record-lines.ts";
import { type Lane, lasted, type OpenSlice, Row } from "./trace-rows.ts";

/** How much a trace shows, each as in its `otherData`. */
export interface TraceCounts {
  /** Turns, tools, sub-agents, calls and programs. */
  readonly slices: number;
  /** Processes. */
  readonly tracks: number;
  readonly turns: number;
  readonly programs: number;
  /** Lines that could not be read. */
  readonly badLines: number;
}

/** Characters of a text, members of a list or an object, characters of a name that are shown at most. */
const MOST_TEXT = 4096;
const MOST_MEMBERS = 32;
const MOST_NAME = 96;
/** How deep what a tool was given is shown. */
const MOST_DEPTH = 6;

/**
 * The trace's text, part by part; returns what it shows.
 *
 * @param directory The epic's. One that is still going, or was left unfinished, is shown as far as it goes.
 * @throws Error where its record cannot be read.
 */
export function* traceParts(directory: string): Generator<string, TraceCounts> {
  const { summary, lines, bad } = readRecord(directory);
  const trace = new Trace(summary);
  yield '{"displayTimeUnit":"ms","traceEvents":[\n';
  trace.calls(lines);
  yield trace.text();
  let badLines = bad;
  for (const part of recordParts(join(directory, EPIC_FILES.events))) {
    badLines += part.bad;
    for (const event of part.records) trace.event(event);
    yield trace.text();
  }
  trace.endTurns();
  yield trace.text();
  for (const part of recordParts(join(directory, EPIC_FILES.profile))) {
    badLines += part.bad;
    for (const program of part.records) trace.program(program);
    yield trace.text();
  }
  trace.endPrograms();
  trace.endCalls();
  yield trace.text();
  const counts = { ...trace.counts, badLines };
  yield `\n],"otherData":${JSON.stringify(otherData(summary, trace, counts))}}\n`;
  return counts;
}

function otherData(summary: EpicSummary, trace: Trace, counts: TraceCounts): Record<string, string> {
  const { began, name, state } = summary;
  const iso = (seconds: number): string => new Date(seconds * 1000).toISOString();
  const said: Record<string, unknown> = {
    epic: name,
    flow: began.ref || began.flow,
    task: cut(began.task, MOST_TEXT),
    workspace: began.workspace,
    state,
    start: iso(summary.at),
    ...(summary.endedAt === undefined ? {} : { end: iso(summary.endedAt) }),
    agents: began.agents.map(({ agent }) => agent).join(", "),
    backends: [...new Set(began.agents.map(({ backend }) => backend))].join(", "),
    sessions: trace.conversations,
    slices: counts.slices,
    tracks: counts.tracks,
    programs: counts.programs,
    ...(counts.badLines > 0 ? { unreadable_lines: counts.badLines } : {}),
  };
  return Object.fromEntries(Object.entries(said).map(([key, value]) => [key, wellFormed(String(value))]));
}

interface TracedCall {
  readonly slice: OpenSlice;
  readonly name: string;
  readonly args: Record<string, unknown>;
  /** When the calls under it on the same lane began and ended, in order: µs. */
  readonly inner: [from: number, to: number][];
  /** Its own stretch of the call that it lies in. */
  readonly stretch: [from: number, to: number];
  ended: boolean;
}

interface Conversation {
  readonly row: Row;
  readonly subagents: Row;
}

interface OpenWork {
  /** The sub-agent that does it, `""` for the agent. */
  readonly whose: string;
  readonly slice: OpenSlice;
  readonly name: string;
  readonly args: Record<string, unknown>;
}

interface OpenTurn {
  readonly slice: OpenSlice;
  readonly conversation: Conversation;
  readonly args: Record<string, unknown>;
  readonly name: string;
  failed: boolean;
  /** The arrow that leads to it: the end of it is drawn after the slice that it leads to, or it would lead nowhere. */
  arrow: Readonly<Record<string, unknown>> | undefined;
  /** By the id of their use, or their name where they have none. */
  readonly tools: Map<string, OpenWork[]>;
  readonly subagents: Map<string, OpenWork>;
}

interface Program {
  readonly lane: Lane;
  last: RecordLine;
}

class Trace {
  readonly #summary: EpicSummary;
  readonly #flows: { readonly pid: number; readonly row: Row };
  readonly #calls = new Map<number, TracedCall>();
  /** Those that have not ended. */
  readonly #byCallSlice = new Map<OpenSlice, TracedCall>();
  readonly #roles = new Map<string, number>();
  readonly #conversations = new Map<string, Conversation>();
  readonly #turns = new Map<string, OpenTurn>();
  readonly #programs = new Map<string, Program>();
  #events: string[] = [];
  #first = true;
  #pids = 0;
  #tids = 1000;
  #arrows = 0;
  #slices = 0;
  #turnCount = 0;
  #programCount = 0;
  /** The last that was heard of the run: µs. What did not end is shown until then. */
  #latest: number;

  constructor(summary: EpicSummary) {
    this.#summary = summary;
    this.#latest = micros(summary.endedAt ?? summary.at);
    const pid = this.#process("flows", summary.name);
    this.#flows = { pid, row: this.#row(pid, 0, "calls") };
  }

  get counts(): Omit<TraceCounts, "badLines"> {
    return { slices: this.#slices, tracks: this.#pids, turns: this.#turnCount, programs: this.#programCount };
  }

  get conversations(): number {
    return this.#conversations.size;
  }

  /** What was drawn since it was last asked for. */
  text(): string {
    if (this.#events.length === 0) return "";
    const text = `${this.#first ? "" : ",\n"}${this.#events.join(",\n")}`;
    this.#first = false;
    this.#events = [];
    return text;
  }

  // ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Lays out the calls of the flow, and draws those that ended. */
  calls(lines: readonly RecordLine[]): void {
    const { began, at } = this.#summary;
    const { row } = this.#flows;
    const begun = row.begin(micros(at));
    const top: TracedCall = {
      slice: begun,
      name: began.ref || began.flow || "flow",
      args: { call: 0, task: began.task, params: began.params, envs: began.envs, picked_up: began.picked_up },
      inner: [],
      stretch: [begun.ts, Infinity],
      ended: false,
    };
    this.#calls.set(0, top);
    this.#byCallSlice.set(begun, top);
    for (const line of lines) {
      const id = line["call"];
      const time = secondsOf(line["at"]);
      if (time !== undefined) this.#heard(micros(time));
      if (typeof id !== "number") continue;
      if (line["event"] === "called" && !this.#calls.has(id)) {
        const above = this.#calls.get(numberOf(line["under"])) ?? top;
        const slice = row.beginInside(above.slice, micros(time ?? at));
        const inside = slice.lane === above.slice.lane;
        const stretch: [number, number] = [slice.ts, Infinity];
        if (inside) above.inner.push(stretch);
        const call: TracedCall = {
          slice,
          name: textOf(line["flow"]) || "flow",
          args: { call: id, task: line["task"] },
          inner: [],
          stretch,
          ended: false,
        };
        this.#calls.set(id, call);
        this.#byCallSlice.set(slice, call);
      } else if (line["event"] === "returned" && id !== 0) {
        const call = this.#calls.get(id);
        if (call && !call.ended) this.#endCall(call, micros(time ?? at), textOf(line["how"]));
      }
    }
  }

  #endCall(call: TracedCall, at: number, how: string): void {
    const { slice, name, args } = call;
    // A call ends after those that it made: one that is still there has lost its own line.
    const { open } = slice.lane;
    for (let inner = open.at(-1); inner && inner !== slice; inner = open.at(-1)) {
      const lost = this.#byCallSlice.get(inner);
      if (!lost) break;
      this.#endCall(lost, at, "did not return");
    }
    call.ended = true;
    this.#byCallSlice.delete(slice);
    call.stretch[1] = slice.ts + this.#slice(slice, at, name, "flow", { ...args, how });
  }

  endCalls(): void {
    const { state, usage, error } = this.#summary;
    for (const call of [...this.#calls.values()].toReversed()) {
      if (call.ended) continue;
      if (call !== this.#calls.get(0)) this.#endCall(call, this.#latest, "did not return");
      else {
        const { cost, outputTokens, seconds } = usage ?? {};
        Object.assign(call.args, { cost_usd: cost, output_tokens: outputTokens, turn_seconds: seconds, error });
        this.#endCall(call, this.#latest, state);
      }
    }
  }

  // ── turns ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  event(event: RecordLine): void {
    const time = secondsOf(event["at"]);
    if (time === undefined) return;
    const at = micros(time);
    this.#heard(at);
    const role = textOf(event["agent"]);
    const { kind } = event;
    if (role === "") {
      this.#instant(this.#callOf(event).slice.lane, at, event);
      return;
    }
    const key = String(event["turn"]);
    const turn = this.#turns.get(key);
    if (kind === "begins" || !turn) {
      if (kind === "ends") return;
      // Two of one number: a torn record lost the end of the first.
      if (turn) this.#endTurn(key, turn, at);
      const begun = this.#beginTurn(role, event, at);
      this.#turns.set(key, begun);
      if (kind !== "begins") this.#inTurn(begun, event, at);
    } else if (kind === "ends") this.#endTurn(key, turn, at);
    else this.#inTurn(turn, event, at);
  }

  #beginTurn(role: string, event: RecordLine, at: number): OpenTurn {
    const begins = event["kind"] === "begins";
    const number = event["conversation"];
    const conversation = this.#conversation(role, typeof number === "number" ? number : 0, event);
    const slice = conversation.row.begin(at);
    const first = !this.#joined.has(conversation);
    this.#joined.add(conversation);
    return {
      slice,
      conversation,
      arrow: first ? this.#arrow(this.#callOf(event), slice) : undefined,
      name: oneLine(begins ? textOf(event["text"]) : "") || `turn ${event["turn"]}`,
      args: {
        turn: event["turn"],
        call: event["call"],
        cli: event["cli"],
        model: event["model"],
        session: event["session"],
        ...(begins ? { prompt: event["text"] } : {}),
      },
      failed: false,
      tools: new Map(),
      subagents: new Map(),
    };
  }

  /** The conversations that their call's arrow has reached. */
  readonly #joined = new Set<Conversation>();

  #inTurn(turn: OpenTurn, event: RecordLine, at: number): void {
    const { args } = turn;
    const whose = textOf(event["whose"]);
    if (textOf(event["session"]) !== "") args["session"] = event["session"];
    switch (event["kind"]) {
      case "tool": {
        const use = textOf(event["use"]) || `${whose}\0${textOf(event["tool"])}`;
        const holder = turn.subagents.get(whose)?.slice ?? turn.slice;
        const row = turn.subagents.has(whose) ? turn.conversation.subagents : turn.conversation.row;
        const slice = row.beginInside(holder, at);
        const name = oneLine(textOf(event["text"])) || textOf(event["tool"]) || "tool";
        const open = turn.tools.get(use) ?? [];
        open.push({ whose, slice, name, args: { tool: event["tool"], input: event["input"], use: event["use"] } });
        turn.tools.set(use, open);
        return;
      }
      case "tool-ends": {
        const use = textOf(event["use"]) || `${whose}\0${textOf(event["tool"])}`;
        const open = turn.tools.get(use)?.shift();
        if (!open?.slice.lane.open.includes(open.slice)) return;
        if (turn.tools.get(use)?.length === 0) turn.tools.delete(use);
        this.#slice(open.slice, at, open.name, event["failed"] === true ? "tool,failed" : "tool", {
          ...open.args,
          came_to: event["text"],
          failed: event["failed"],
        });
        return;
      }
      case "subagent": {
        if (turn.subagents.has(whose)) return;
        const slice = turn.conversation.subagents.begin(at);
        const name = oneLine(textOf(event["text"])) || "sub-agent";
        turn.subagents.set(whose, { whose, slice, name, args: { whose, task: event["text"] } });
        return;
      }
      case "subagent-ends": {
        const open = turn.subagents.get(whose);
        if (!open) return;
        turn.subagents.delete(whose);
        for (const works of turn.tools.values()) {
          for (const tool of works.filter((tool) => tool.whose === whose)) this.#cutShort(tool, at);
        }
        this.#slice(open.slice, at, open.name, "subagent", { ...open.args, said: event["text"] });
        return;
      }
      case "result":
        Object.assign(args, { said: event["text"], tokens: event["spent"], output_tokens: event["tokens"] });
        if (event["cost"] !== undefined) args["cost_usd"] = event["cost"];
        return;
      case "failed":
        turn.failed = true;
        Object.assign(args, { error: event["error"], why: event["text"] });
        return;
      default:
        this.#instant((turn.subagents.get(whose)?.slice ?? turn.slice).lane, at, event);
    }
  }

  #endTurn(key: string, turn: OpenTurn, at: number, unfinished = false): void {
    this.#turns.delete(key);
    const open = [...[...turn.tools.values()].flat(), ...turn.subagents.values()];
    // The inner ones first: what holds them ends after them.
    for (const work of open) this.#cutShort(work, at);
    const { args, failed } = turn;
    this.#turnCount += 1;
    this.#slice(
      turn.slice,
      at,
      turn.name,
      failed ? "turn,failed" : "turn",
      unfinished ? { ...args, unfinished } : args,
    );
    if (turn.arrow) this.#emit(turn.arrow);
  }

  #cutShort({ slice, name, args }: OpenWork, at: number): void {
    // Once: its sub-agent's end may have been before.
    if (slice.lane.open.includes(slice)) this.#slice(slice, at, name, "tool", { ...args, unfinished: true });
  }

  endTurns(): void {
    for (const [key, turn] of this.#turns) this.#endTurn(key, turn, this.#latest, true);
  }

  #conversation(role: string, number: number, event: RecordLine): Conversation {
    const key = `${number}\0${role}`;
    const known = this.#conversations.get(key);
    if (known) return known;
    let pid = this.#roles.get(role);
    if (pid === undefined) {
      const { cli, model } = event;
      pid = this.#process(role, [textOf(cli), textOf(model)].filter(Boolean).join("/"));
      this.#roles.set(role, pid);
    }
    const title = number > 0 ? `conversation ${number}` : "conversation";
    const made = {
      row: this.#row(pid, number * 200, title),
      subagents: this.#row(pid, number * 200 + 100, `${title} · sub-agent`),
    };
    this.#conversations.set(key, made);
    return made;
  }

  #callOf(event: RecordLine): TracedCall {
    return this.#calls.get(numberOf(event["call"])) ?? (this.#calls.get(0) as TracedCall);
  }

  /** Begins an arrow from the call to the conversation that it opened. Returns its end. */
  #arrow({ slice, inner, stretch }: TracedCall, to: OpenSlice): Readonly<Record<string, unknown>> {
    // Who draws it binds its tail to the innermost slice: not to a call that goes on inside this one meanwhile.
    const inside = covering(inner, to.ts);
    const from = inside ? inside[0] - 1 : to.ts;
    const ts = Math.max(slice.ts, Math.min(Math.max(from, slice.ts + 1), stretch[1] - 1));
    // A call that has not ended is to reach past its arrows.
    slice.lane.last = Math.max(slice.lane.last, ts + 1);
    this.#arrows += 1;
    const arrow = { id: this.#arrows, cat: "spawn", name: "spawn" };
    this.#emit({ ph: "s", ...arrow, pid: slice.lane.pid, tid: slice.lane.tid, ts });
    return { ph: "f", bp: "e", ...arrow, pid: to.lane.pid, tid: to.lane.tid, ts: to.ts };
  }

  // ── programs ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** One record of a program: the last one of it holds. */
  program(line: RecordLine): void {
    const { pid, began } = line;
    if (typeof pid !== "number" || typeof began !== "number") return;
    const key = `${pid}\0${began}`;
    const known = this.#programs.get(key);
    if (known) known.last = line;
    else {
      this.#programCount += 1;
      const process = this.#process(`${oneLine(textOf(line["name"])) || "program"} (${pid})`, "program", 1_000_000);
      this.#programs.set(key, { lane: this.#lane(process, 0, "main"), last: line });
    }
    if (line["event"] === "left") this.#endProgram(key);
  }

  #endProgram(key: string): void {
    const program = this.#programs.get(key);
    if (!program) return;
    this.#programs.delete(key);
    const { lane, last } = program;
    const ts = micros(numberOf(last["began"]));
    const end = micros(secondsOf(last["ended"]) ?? numberOf(last["seen"]));
    const { pid, ppid, argv, of, name } = last;
    const shown = oneLine(Array.isArray(argv) ? argv.join(" ") : textOf(name)) || "program";
    const args = { pid, ppid, argv, of, ...(last["event"] === "left" ? {} : { unfinished: true }) };
    const slice = { lane, ts };
    lane.open.push(slice);
    this.#slice(slice, end, shown, "process", args);
    const threads: unknown[] = Array.isArray(last["threads"]) ? last["threads"] : [];
    for (const [at, thread] of threads.entries()) {
      if (!Array.isArray(thread)) continue;
      const [tid, from, to, cpu] = thread as unknown[];
      // The first one is the program itself.
      if (tid === pid || typeof from !== "number") continue;
      const own = this.#lane(lane.pid, at + 1, `thread ${String(tid)}`);
      const slice = { lane: own, ts: micros(from) };
      own.open.push(slice);
      const until = micros(secondsOf(to) ?? from);
      this.#slice(slice, until, `thread ${String(tid)}`, "process", {
        tid,
        cpu_seconds: cpu,
      });
    }
  }

  endPrograms(): void {
    for (const key of this.#programs.keys()) this.#endProgram(key);
  }

  // ── drawing ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #heard(at: number): void {
    this.#latest = Math.max(this.#latest, at);
  }

  #process(name: string, label: string, sort = 0): number {
    this.#pids += 1;
    const pid = this.#pids;
    this.#emit({ ph: "M", name: "process_name", pid, tid: 0, args: { name: cut(name, MOST_NAME) } });
    this.#emit({ ph: "M", name: "process_sort_index", pid, tid: 0, args: { sort_index: sort + pid } });
    if (label !== "")
      this.#emit({ ph: "M", name: "process_labels", pid, tid: 0, args: { labels: cut(label, MOST_NAME) } });
    return pid;
  }

  #row(pid: number, sort: number, title: string): Row {
    return new Row((number) => this.#lane(pid, sort + number, number === 1 ? title : `${title} ~${number}`));
  }

  #lane(pid: number, sort: number, name: string): Lane {
    this.#tids += 1;
    const tid = this.#tids;
    this.#emit({ ph: "M", name: "thread_name", pid, tid, args: { name } });
    this.#emit({ ph: "M", name: "thread_sort_index", pid, tid, args: { sort_index: sort } });
    return { pid, tid, last: 0, open: [] };
  }

  /** Ends and draws a slice. Returns how long it took. */
  #slice(slice: OpenSlice, at: number, name: string, cat: string, args: Record<string, unknown>): number {
    const dur = lasted(slice, at);
    const { lane, ts } = slice;
    this.#slices += 1;
    this.#emit({ ph: "X", name, cat, pid: lane.pid, tid: lane.tid, ts, dur, args: { at: iso(ts), ...args } });
    return dur;
  }

  #instant({ pid, tid }: Lane, ts: number, event: RecordLine): void {
    const kind = textOf(event["kind"]);
    const cat = kind === "text" || kind === "reasoning" ? "message" : "event";
    const text = event["text"];
    this.#emit({ ph: "i", s: "t", name: `${kind}: ${oneLine(textOf(text))}`, cat, pid, tid, ts, args: { text } });
  }

  #emit(event: Readonly<Record<string, unknown>>): void {
    const { name, args } = event;
    this.#events.push(
      JSON.stringify({
        ...event,
        name: cut(textOf(name), MOST_NAME),
        ...(args === undefined ? {} : { args: shown(args) }),
      }),
    );
  }
}

/** The one of some stretches of time, in order, that a time lies in. */
function covering(stretches: readonly [number, number][], at: number): readonly [number, number] | undefined {
  let low = 0;
  let high = stretches.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((stretches[middle]?.[0] ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  const found = stretches[low - 1];
  return found && at < found[1] ? found : undefined;
}

/** A value as the trace shows it: cut, and without what is no character. */
function shown(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return cut(value, MOST_TEXT);
  if (typeof value !== "object" || value === null) return value;
  if (depth === MOST_DEPTH) return "…";
  if (Array.isArray(value)) {
    const members = value.slice(0, MOST_MEMBERS).map((member) => shown(member, depth + 1));
    return value.length > MOST_MEMBERS ? [...members, `… ${value.length - MOST_MEMBERS} more`] : members;
  }
  const entries = Object.entries(value);
  const members = entries
    .slice(0, MOST_MEMBERS)
    .map(([key, member]): [string, unknown] => [cut(key, MOST_NAME), shown(member, depth + 1)]);
  if (entries.length > MOST_MEMBERS) members.push(["…", `${entries.length - MOST_MEMBERS} more`]);
  return Object.fromEntries(members);
}

/** A text of so many characters at most, an ellipsis counted in; a pair cut in half would be no character. */
function cut(text: string, most: number): string {
  if (text.length <= most) return wellFormed(text);
  return `${wellFormed(text.slice(0, most - 1)).replace(/\ufffd$/, "")}…`;
}

/** Half a pair is valid in JSON as JavaScript writes it, and in no other reader. */
function wellFormed(text: string): string {
  return text.toWellFormed();
}

function oneLine(text: string): string {
  return text
    .slice(0, 4 * MOST_NAME)
    .replace(/\s+/g, " ")
    .trim();
}

function micros(seconds: number): number {
  return Math.round(seconds * 1e6);
}

function iso(micros: number): string {
  const at = new Date(micros / 1000);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function secondsOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  const at = typeof value === "string" ? Date.parse(value) / 1000 : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}
