import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import type { RunEvent, TurnEvent } from "../engine/events.ts";
import { type Began, createEpic, type EpicWriter } from "./epic.ts";
import { findEpics, listEpics, readEpic } from "./epics.ts";
import { toJsonEvent } from "./json-event.ts";
import { Home } from "./paths.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

const fresh = (): string => temporaryDirectory("epic");

const began: Began = {
  flow: "twice",
  ref: "twice:twice",
  task: "do it",
  resumable: false,
  agents: [{ agent: "builder", backend: "claude", model: "opus", effort: "high", provider: "" }],
  envs: ["workspace=local"],
  params: { rounds: 2 },
  budget: { cost: 1 },
};

const turn = { at: 1, agent: "builder", cli: "claude", model: "opus", session: "s1", call: 0, turn: 1 } as const;
const events: readonly RunEvent[] = [
  { ...turn, kind: "begins", text: "do it", conversation: 1 },
  { kind: "opened", at: 1, call: 0, agent: "builder", cli: "claude", provider: "", session: "s1" },
  { ...turn, kind: "tool", text: "Bash(ls)", tool: "Bash", input: { command: "ls" }, use: "u1" },
  { kind: "called", at: 2, call: 1, under: 0, flow: "plan:plan", task: "first" },
  { kind: "called", at: 3, call: 2, under: 1, flow: "plan:step", task: "second" },
  { kind: "returned", at: 4, call: 2, flow: "plan:step", how: "failed" },
  { kind: "returned", at: 5, call: 1, flow: "plan:plan", how: "done" },
  { ...turn, kind: "result", text: "done", tokens: { opus: 7 }, spent: { input: 3, output: 7 }, cost: 0.5 },
  { ...turn, kind: "ends", text: "", seconds: 4 },
];

function epicIn(
  home: Home,
  workspace: string,
  trouble: (error: Error) => void = (error) => assert.fail(error),
): EpicWriter {
  return createEpic({ home, workspace, began, trouble });
}

const usage = { duration: 4_000, cost: 0.5, outputTokens: 7 };
const lines = (file: string): readonly Record<string, unknown>[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("an epic lies under its workspace, is held from the start, and says what began", () => {
  const home = new Home(fresh());
  const workspace = fresh();
  const epic = epicIn(home, workspace);
  assert.match(epic.name, /^\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6}$/);
  assert.equal(epic.directory, join(home.epicsOf(workspace), epic.name));
  assert.equal(statSync(join(epic.directory, ".held")).mode & 0o777, 0o600);
  const [first] = lines(join(epic.directory, "epic.jsonl"));
  assert.equal(first?.["event"], "began");
  assert.equal(first?.["workspace"], workspace);
  assert.equal(listEpics(home, { workspace }).epics[0]?.state, "going");
  epic.end({ how: "done", usage });
  assert.ok(!existsSync(join(epic.directory, ".held")));
});

test("what was recorded is read back: calls, sessions, agents, usage, how it ended", () => {
  const home = new Home(fresh());
  const workspace = fresh();
  const epic = epicIn(home, workspace);
  for (const event of events) epic.record(event);
  epic.end({ how: "failed", usage, error: { name: "HarnessRefused", message: "no" } });
  // Whatever comes late changes nothing.
  epic.record(events[0] as RunEvent);
  epic.end({ how: "done", usage });

  const read = readEpic(epic.directory);
  assert.equal(read.state, "failed");
  assert.equal(read.error, "HarnessRefused: no");
  assert.deepEqual(read.usage, { cost: 0.5, outputTokens: 7, seconds: 4 });
  assert.deepEqual(read.began, { ...began, workspace });
  assert.equal(read.badLines, 0);
  const { calls } = read.top;
  assert.deepEqual(
    calls.map(({ flow, how, calls }) => ({ flow, how, calls: calls.map(({ flow, how }) => ({ flow, how })) })),
    [{ flow: "plan:plan", how: "done", calls: [{ flow: "plan:step", how: "failed" }] }],
  );
  assert.deepEqual(read.sessions, [{ agent: "builder", backend: "claude", provider: "local", session: "s1", call: 0 }]);
  assert.deepEqual(read.agents, [
    {
      agent: "builder",
      turns: 1,
      failed: 0,
      outputTokens: 7,
      tokens: { input: 3, output: 7 },
      cost: 0.5,
      seconds: 4,
    },
  ]);
  assert.deepEqual(
    lines(join(epic.directory, "events.jsonl")).map(({ kind }) => kind),
    ["begins", "tool", "result", "ends"],
  );
});

test("every object has the ten keys, in one order, whatever its kind", () => {
  const kinds: TurnEvent[] = [
    ...(events.filter((event) => "turn" in event) as TurnEvent[]),
    { ...turn, kind: "text", text: "hi" },
    { ...turn, kind: "subagent", text: "explore", whose: "a1" },
    { ...turn, kind: "failed", text: "no", error: "HarnessRefused" },
    { ...turn, kind: "notice", text: "retry" },
  ];
  for (const event of kinds) {
    const keys = Object.keys(toJsonEvent(event));
    assert.deepEqual(keys.slice(0, 10), [
      "at",
      "agent",
      "cli",
      "model",
      "session",
      "kind",
      "text",
      "whose",
      "tokens",
      "spent",
    ]);
  }
  assert.equal(toJsonEvent({ ...turn, kind: "subagent", text: "explore", whose: "a1" }).whose, "a1");
});

test("events are on the disk within the moment, without an end", async () => {
  const epic = epicIn(new Home(fresh()), fresh());
  epic.record(events[0] as RunEvent);
  const file = join(epic.directory, "events.jsonl");
  for (const until = Date.now() + 10_000; statSync(file).size === 0 && Date.now() < until;) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(lines(file).length, 1);
  epic.end({ how: "done", usage });
});

test("an event that cannot be written down is told once, and stops nothing", () => {
  const troubles: Error[] = [];
  const epic = epicIn(new Home(fresh()), fresh(), (error) => troubles.push(error));
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  const bad = { ...turn, kind: "tool", text: "", tool: "T", input: circle } as const;
  epic.record(bad);
  epic.record(bad);
  epic.record(events[0] as RunEvent);
  epic.end({ how: "done", usage });
  assert.equal(troubles.length, 1);
  assert.equal(lines(join(epic.directory, "events.jsonl")).length, 1);
});

test("a run that was killed is left unfinished, its spending read from its turns", () => {
  const home = new Home(fresh());
  const workspace = fresh();
  const epic = epicIn(home, workspace);
  for (const event of events) epic.record(event);
  epic.end({ how: "done", usage });
  const record = join(epic.directory, "epic.jsonl");
  const whole = readFileSync(record, "utf8");
  // The last two lines are the usage and the end.
  writeFileSync(record, `${whole.trimEnd().split("\n").slice(0, -2).join("\n")}\n`);
  assert.equal(listEpics(home, { workspace }).epics[0]?.state, "unfinished");
  assert.deepEqual(readEpic(epic.directory).usage, { cost: 0.5, outputTokens: 7, seconds: 4 });
  writeFileSync(join(epic.directory, ".held"), JSON.stringify({ pid: process.pid, start: 1 }));
  assert.equal(readEpic(epic.directory).state, "unfinished");
});

test("hazard 28: a record cut at any byte, with NULs or a foreign line in it, is read as far as it goes", () => {
  const home = new Home(fresh());
  const workspace = fresh();
  const epic = epicIn(home, workspace);
  for (const event of events) epic.record(event);
  epic.end({ how: "done", usage });
  const record = join(epic.directory, "epic.jsonl");
  const whole = readFileSync(record);
  for (let length = whole.length; length >= 0; length -= 7) {
    truncateSync(record, length);
    const read = readEpic(epic.directory);
    assert.equal(read.name, epic.name);
    assert.ok(read.at > 0);
  }
  writeFileSync(record, whole);
  appendFileSync(
    record,
    `${"\0".repeat(300)}\n${"\0".repeat(9)}{"event":"called","call":9,"under":77,"flow":"late"}\n[1]\n{"event":"of later"}\n{torn`,
  );
  const read = readEpic(epic.directory);
  assert.equal(read.state, "done");
  assert.equal(read.top.calls.at(-1)?.flow, "late");
  assert.equal(read.badLines, 3);
});

test("epics are listed newest first, of one workspace or of all, and found by a part of their name", () => {
  const home = new Home(fresh());
  const [one, other] = [fresh(), fresh()];
  const made = [one, one, other].map((workspace) => epicIn(home, workspace));
  for (const epic of made) epic.end({ how: "done", usage });
  const names = made
    .slice(0, 2)
    .map(({ name }) => name)
    .sort()
    .reverse();
  assert.deepEqual(
    listEpics(home, { workspace: one }).epics.map(({ name }) => name),
    names,
  );
  assert.equal(listEpics(home, {}).epics.length, 3);
  assert.deepEqual(listEpics(home, { workspace: one, most: 1 }).more, 1);
  assert.deepEqual(listEpics(home, { workspace: fresh() }), { epics: [], more: 0 });
  const third = made[2] as EpicWriter;
  assert.deepEqual(findEpics(home, one, third.name.slice(-6)), [third.directory]);
  assert.deepEqual(findEpics(home, one, third.directory), [third.directory]);
  assert.deepEqual(findEpics(home, one, "last"), [join(home.epicsOf(one), names[0] as string)]);
  assert.deepEqual(findEpics(home, one, "nothing"), []);
});

test("a process that leaves without ending the run leaves every event", () => {
  const home = fresh();
  const script = `
    import { createEpic } from ${JSON.stringify(new URL("./epic.ts", import.meta.url).href)};
    import { Home } from ${JSON.stringify(new URL("./paths.ts", import.meta.url).href)};
    const began = { flow: "f", ref: "f:f", task: "", resumable: false, agents: [], envs: [], params: {} };
    const epic = createEpic({ home: new Home(${JSON.stringify(home)}), workspace: "/", began, trouble: console.error });
    const at = { at: 1, agent: "a", cli: "claude", model: "m", session: "", call: 0, turn: 1 };
    epic.record({ ...at, kind: "text", text: "hi" });
    process.exit(3);`;
  const left = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  assert.equal(left.status, 3, left.stderr);
  const [epic] = listEpics(new Home(home), {}).epics;
  assert.equal(epic?.state, "unfinished");
  assert.equal(lines(join(epic?.directory ?? "", "events.jsonl")).length, 1);
});
