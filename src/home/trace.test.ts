import assert from "node:assert/strict";
import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import type { RunEvent, TurnEvent } from "../engine/events.ts";
import { createEpic, type EpicWriter } from "./epic.ts";
import { Home } from "./paths.ts";
import { traceParts } from "./trace.ts";

interface Slice {
  readonly ph: string;
  readonly name: string;
  readonly cat?: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly id?: number;
  readonly args: Readonly<Record<string, unknown>>;
}

interface Document {
  readonly traceEvents: readonly Slice[];
  readonly displayTimeUnit: string;
  readonly otherData: Readonly<Record<string, string>>;
}

const START = 1_800_000_000;
const usage = { duration: 62_000, cost: 1.25, outputTokens: 1_500 };

function epicIn(task = "fix it"): EpicWriter {
  return createEpic({
    home: new Home(temporaryDirectory("trace")),
    workspace: temporaryDirectory("trace"),
    began: {
      flow: "twice",
      ref: "twice:twice",
      task,
      resumable: false,
      agents: [{ agent: "builder", backend: "claude", model: "opus", effort: "", provider: "" }],
      envs: [],
      params: {},
    },
    trouble: (error) => assert.fail(error),
  });
}

/** Says that the record began at a time of the test's own. */
function beganAt(epic: EpicWriter, seconds: number): void {
  const at = new Date(seconds * 1000).toISOString();
  appendFileSync(join(epic.directory, "epic.jsonl"), "");
  const began = {
    event: "began",
    at,
    flow: "twice",
    ref: "twice:twice",
    task: "fix it",
    workspace: "/w",
    agents: [],
    envs: [],
  };
  writeFileSync(join(epic.directory, "epic.jsonl"), `${JSON.stringify(began)}\n`);
}

function traced(directory: string): Document {
  const text = [...traceParts(directory)].join("");
  const document = JSON.parse(text) as Document;
  assert.deepEqual(Object.keys(document).toSorted(), ["displayTimeUnit", "otherData", "traceEvents"]);
  assert.ok(text.isWellFormed());
  assertDrawable(document);
  return document;
}

/** What whoever draws it relies on: slices of a thread nest or follow on, arrows have two ends inside slices. */
function assertDrawable({ traceEvents, otherData }: Document): void {
  assert.ok(Object.values(otherData).every((value) => typeof value === "string"));
  const slices = traceEvents.filter(({ ph }) => ph === "X");
  for (const own of Map.groupBy(slices, ({ pid, tid }) => `${pid}/${tid}`).values()) {
    const open: Slice[] = [];
    for (const slice of [...own].sort((one, other) => one.ts - other.ts || other.dur - one.dur)) {
      assert.ok(Number.isSafeInteger(slice.ts) && slice.dur >= 1, JSON.stringify(slice));
      while (open.length > 0 && (open.at(-1) as Slice).ts + (open.at(-1) as Slice).dur <= slice.ts) open.pop();
      const holder = open.at(-1);
      if (holder) {
        assert.ok(slice.ts > holder.ts, `${slice.name} begins with ${holder.name}`);
        assert.ok(slice.ts + slice.dur <= holder.ts + holder.dur, `${slice.name} outlasts ${holder.name}`);
      }
      open.push(slice);
    }
  }
  for (const end of traceEvents.filter(({ ph }) => ph === "s" || ph === "f")) {
    const pair = traceEvents.filter(({ id, ph }) => id === end.id && (ph === "s" || ph === "f"));
    assert.deepEqual(pair.map(({ ph }) => ph).toSorted(), ["f", "s"]);
    const on = slices.filter(({ tid, ts, dur }) => tid === end.tid && ts <= end.ts && end.ts < ts + dur);
    assert.ok(on.length > 0, `an arrow's ${end.ph} is on nothing`);
  }
}

function threads({ traceEvents }: Document): Record<string, string[]> {
  const names = new Map(
    traceEvents.filter(({ name }) => name === "process_name").map(({ pid, args }) => [pid, String(args["name"])]),
  );
  const found: Record<string, string[]> = {};
  for (const { pid, args } of traceEvents.filter(({ name }) => name === "thread_name")) {
    (found[names.get(pid) ?? ""] ??= []).push(String(args["name"]));
  }
  return found;
}

const slice = (document: Document, name: string): Slice => {
  const found = document.traceEvents.find((event) => event.ph === "X" && event.name === name);
  assert.ok(found, `no slice is called ${name}`);
  return found;
};

const of = (agent: string, turn: number, seconds: number, call = 0) =>
  ({ at: START + seconds, agent, cli: "claude", model: "opus", session: `s${turn}`, call, turn }) as const;

test("turns stand on a thread for each conversation, of a process for each role, tools and sub-agents inside them", () => {
  const epic = epicIn();
  beganAt(epic, START);
  const events: TurnEvent[] = [
    { ...of("builder", 1, 1), kind: "begins", text: "build\nit", conversation: 1 },
    { ...of("builder", 1, 2), kind: "tool", text: "Read a.ts", tool: "Read", input: { path: "a.ts" }, use: "u1" },
    { ...of("builder", 1, 3), kind: "tool", text: "Read b.ts", tool: "Read", input: { path: "b.ts" }, use: "u2" },
    { ...of("reviewer", 2, 3), kind: "begins", text: "review", conversation: 1 },
    { ...of("builder", 1, 4), kind: "tool-ends", text: "", tool: "Read", use: "u1", failed: false },
    { ...of("builder", 1, 5), kind: "tool-ends", text: "not there", tool: "Read", use: "u2", failed: true },
    { ...of("builder", 1, 6), kind: "subagent", text: "explore: the sources", whose: "a1" },
    { ...of("builder", 1, 7), kind: "tool", text: "Grep x", tool: "Grep", input: {}, use: "u3", whose: "a1" },
    { ...of("builder", 1, 8), kind: "tool-ends", text: "3", tool: "Grep", use: "u3", failed: false, whose: "a1" },
    { ...of("builder", 1, 8.5), kind: "subagent-ends", text: "found", whose: "a1" },
    {
      ...of("builder", 1, 9),
      kind: "result",
      text: "done",
      tokens: { opus: 7 },
      spent: { input: 3, output: 7 },
      cost: 0.5,
    },
    { ...of("builder", 1, 10), kind: "ends", text: "", seconds: 9 },
    { ...of("reviewer", 2, 11), kind: "failed", text: "no", error: "HarnessDropped" },
    { ...of("reviewer", 2, 11), kind: "ends", text: "", seconds: 8 },
    { ...of("builder", 3, 12), kind: "begins", text: "again", conversation: 1 },
    { ...of("builder", 3, 13), kind: "ends", text: "", seconds: 1 },
    { ...of("builder", 4, 14), kind: "begins", text: "another", conversation: 2 },
    { ...of("builder", 4, 15), kind: "ends", text: "", seconds: 1 },
  ];
  for (const event of events) epic.record(event);
  epic.end({ how: "done", usage });
  const document = traced(epic.directory);
  assert.deepEqual(threads(document), {
    flows: ["calls"],
    builder: ["conversation 1", "conversation 1 ~2", "conversation 1 · sub-agent", "conversation 2"],
    reviewer: ["conversation 1"],
  });
  const turn = slice(document, "build it");
  assert.deepEqual([turn.ts, turn.dur, turn.cat], [(START + 1) * 1e6, 9e6, "turn"]);
  assert.deepEqual(
    { ...turn.args },
    {
      at: "2027-01-15T08:00:01.000Z",
      turn: 1,
      call: 0,
      cli: "claude",
      model: "opus",
      session: "s1",
      prompt: "build\nit",
      said: "done",
      tokens: { input: 3, output: 7 },
      output_tokens: { opus: 7 },
      cost_usd: 0.5,
    },
  );
  const [first, second] = [slice(document, "Read a.ts"), slice(document, "Read b.ts")];
  assert.equal(first.tid, turn.tid);
  assert.notEqual(second.tid, turn.tid);
  assert.deepEqual([second.cat, second.args["came_to"]], ["tool,failed", "not there"]);
  const subagent = slice(document, "explore: the sources");
  assert.equal(slice(document, "Grep x").tid, subagent.tid);
  assert.deepEqual([subagent.cat, subagent.args["said"]], ["subagent", "found"]);
  assert.equal(slice(document, "again").tid, turn.tid);
  assert.deepEqual(
    [slice(document, "review").cat, slice(document, "review").args["error"]],
    ["turn,failed", "HarnessDropped"],
  );
  assert.equal(document.traceEvents.filter(({ ph }) => ph === "s").length, 3);
  assert.equal(document.otherData["slices"], "9");
});

test("called flows are nested where they follow on, and stand beside each other where they overlap", () => {
  const epic = epicIn();
  beganAt(epic, START);
  const calls: RunEvent[] = [
    { kind: "called", at: START + 1, call: 1, under: 0, flow: "plan:plan", task: "think" },
    { kind: "called", at: START + 2, call: 2, under: 1, flow: "plan:step", task: "step" },
    { kind: "called", at: START + 3, call: 3, under: 0, flow: "plan:other", task: "beside" },
    { ...of("builder", 1, 4, 0), kind: "begins", text: "top's own", conversation: 1 },
    { ...of("planner", 2, 4, 2), kind: "begins", text: "step's own", conversation: 1 },
    { kind: "returned", at: START + 5, call: 2, flow: "plan:step", how: "failed" },
    { kind: "returned", at: START + 6, call: 1, flow: "plan:plan", how: "done" },
    { kind: "returned", at: START + 7, call: 3, flow: "plan:other", how: "done" },
  ];
  for (const call of calls) epic.record(call);
  epic.end({ how: "done", usage });
  const document = traced(epic.directory);
  const [top, plan, step, other] = ["twice:twice", "plan:plan", "plan:step", "plan:other"].map((name) =>
    slice(document, name),
  );
  assert.equal(plan?.tid, top?.tid);
  assert.equal(step?.tid, top?.tid);
  assert.notEqual(other?.tid, top?.tid);
  assert.deepEqual([step?.args["how"], plan?.args["task"], top?.args["cost_usd"]], ["failed", "think", 1.25]);
  // The tail of an arrow is on what opened the conversation, and not on what goes on inside it.
  for (const [conversation, opener] of [
    ["top's own", top],
    ["step's own", step],
  ] as const) {
    const { tid } = slice(document, conversation);
    const head = document.traceEvents.find((event) => event.ph === "f" && event.tid === tid);
    const tail = document.traceEvents.find(({ ph, id }) => ph === "s" && id === head?.id) as Slice;
    const on = document.traceEvents.filter(
      ({ ph, tid, ts, dur }) => ph === "X" && tid === tail.tid && ts <= tail.ts && tail.ts < ts + dur,
    );
    assert.equal(on.toSorted((one, other) => one.dur - other.dur)[0]?.name, opener?.name);
  }
});

test("a run that is still going, or was left, is shown as far as it goes", () => {
  const epic = epicIn();
  beganAt(epic, START);
  epic.record({ kind: "called", at: START + 1, call: 1, under: 0, flow: "plan:plan", task: "think" });
  epic.record({ ...of("builder", 1, 2), kind: "begins", text: "build", conversation: 1 });
  epic.record({ ...of("builder", 1, 3), kind: "tool", text: "Bash make", tool: "Bash", input: {} });
  epic.record({ ...of("builder", 1, 4), kind: "text", text: "at it" });
  // Enough to be written without an end.
  epic.record({ ...of("builder", 1, 5), kind: "text", text: "x".repeat(70_000) });
  for (const state of ["going", "unfinished"]) {
    const document = traced(epic.directory);
    assert.equal(document.otherData["state"], state);
    assert.deepEqual([slice(document, "build").dur, slice(document, "build").args["unfinished"]], [3e6, true]);
    assert.equal(slice(document, "Bash make").args["unfinished"], true);
    assert.equal(slice(document, "plan:plan").args["how"], "did not return");
    assert.equal(slice(document, "twice:twice").args["how"], state);
    const said = document.traceEvents.filter(({ ph }) => ph === "i");
    assert.deepEqual(
      said.map(({ name }) => name.slice(0, 11)),
      ["text: at it", "text: xxxxx"],
    );
    assert.equal(String(said[1]?.args["text"]).length, 4096);
    // A record that a power loss cut, among lines of nobody's.
    appendFileSync(
      join(epic.directory, "events.jsonl"),
      'null\n[]\n\u0000\u0000\n{"kind":"begins","at":1\n{"at":"never"}\n',
    );
    rmSync(join(epic.directory, ".held"), { force: true });
  }
  assert.equal(traced(epic.directory).otherData["unreadable_lines"], "8");
  writeFileSync(join(epic.directory, "epic.jsonl"), "");
  traced(epic.directory);
});

test("whatever a model says is text in it, cut, and whole characters", () => {
  const said = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 100 }).map((codes) => String.fromCharCode(...codes)),
    fc.constantFrom("\u001b[2J\u0007", "\ud83d", "\ude00", '"}],', "\u2028</script>", `${"x".repeat(4094)}😀😀`),
  );
  fc.assert(
    fc.property(
      fc.array(said, { minLength: 6, maxLength: 6 }),
      ([prompt = "", name = "", text = "", key = "", role = "", task = ""]) => {
        const epic = epicIn(task);
        epic.record({ ...of(role, 1, 1), kind: "begins", text: prompt, conversation: 1 });
        epic.record({
          ...of(role, 1, 2),
          kind: "tool",
          text: name,
          tool: name,
          input: { [key]: [text], ["__proto__"]: { text } },
        });
        epic.record({ ...of(role, 1, 3), kind: "result", text, tokens: { [key]: 1 }, spent: {} });
        epic.record({ ...of(role, 1, 4), kind: "ends", text: "", seconds: 3 });
        epic.end({ how: "failed", usage, error: { name: "E", message: text } });
        const strings: string[] = [];
        JSON.parse(JSON.stringify(traced(epic.directory)), (_key, value: unknown) => {
          if (typeof value === "string") strings.push(value);
          return value;
        });
        assert.ok(strings.every((string) => string.isWellFormed() && string.length <= 4096));
      },
    ),
    { numRuns: 60 },
  );
});

test("whatever order and time events have, what is drawn nests", () => {
  const kinds = ["begins", "tool", "tool-ends", "subagent", "subagent-ends", "result", "ends", "text"];
  const event = fc.record({
    at: fc.integer({ min: START - 2, max: START + 6 }),
    agent: fc.constantFrom("a", "b", ""),
    session: fc.constant("s"),
    kind: fc.constantFrom(...kinds),
    text: fc.constantFrom("", "x"),
    whose: fc.constantFrom("", "w1", "w2"),
    tool: fc.constantFrom("T", "U"),
    call: fc.integer({ min: 0, max: 4 }),
    turn: fc.integer({ min: 1, max: 4 }),
    conversation: fc.integer({ min: 1, max: 2 }),
  });
  const call = fc.record({
    event: fc.constantFrom("called", "returned"),
    at: fc.integer({ min: START - 2, max: START + 6 }).map((at) => new Date(at * 1000).toISOString()),
    call: fc.integer({ min: 0, max: 5 }),
    under: fc.integer({ min: 0, max: 5 }),
    flow: fc.constant("f"),
  });
  const epic = epicIn();
  epic.end({ how: "done", usage });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), fc.array(call, { maxLength: 20 }), (events, calls) => {
      beganAt(epic, START);
      const lines = (records: readonly object[]): string =>
        records.map((record) => `${JSON.stringify(record)}\n`).join("");
      appendFileSync(join(epic.directory, "epic.jsonl"), lines(calls));
      writeFileSync(join(epic.directory, "events.jsonl"), lines(events));
      traced(epic.directory);
    }),
    { numRuns: 300 },
  );
});

test("programs are processes of their own, as their last record says", () => {
  const epic = epicIn();
  beganAt(epic, START);
  epic.end({ how: "done", usage });
  const program = { pid: 40, ppid: 30, name: "make", argv: ["make", "-j2"], began: START + 1, of: "environment" };
  const lines = [
    { event: "ran", ...program, seen: START + 1.1, threads: [[40, START + 1, START + 1.1, 0]] },
    {
      event: "left",
      ...program,
      seen: START + 3,
      ended: START + 3,
      threads: [
        [40, START + 1, START + 3, 1.5],
        [41, START + 2, START + 3, 0.5],
      ],
    },
    // The same pid, given again; it was still there at the end.
    {
      event: "ran",
      ...program,
      name: "sleep",
      argv: ["sleep", "9"],
      began: START + 5,
      seen: START + 6,
      threads: "none",
    },
    { event: "ran", pid: "no", began: {} },
  ];
  writeFileSync(join(epic.directory, "profile.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const document = traced(epic.directory);
  assert.deepEqual(threads(document), { flows: ["calls"], "make (40)": ["main", "thread 41"], "sleep (40)": ["main"] });
  const make = slice(document, "make -j2");
  assert.deepEqual([make.dur, make.cat, make.args["ppid"]], [2e6, "process", 30]);
  assert.equal(slice(document, "thread 41").args["cpu_seconds"], 0.5);
  assert.deepEqual([slice(document, "sleep 9").dur, slice(document, "sleep 9").args["unfinished"]], [1e6, true]);
  assert.equal(document.otherData["programs"], "2");
});
