/** `hmz epics trace`, `export` and `resume`: what they write, and what they refuse. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createEpic, type EpicWriter } from "../../../src/home/epic.ts";
import { Home } from "../../../src/home/paths.ts";
import { Hmz, Refused } from "../../../src/sdk/index.ts";
import { fresh, typed } from "./in-process.ts";

const usage = { duration: 62_000, cost: 1.25, outputTokens: 1_500 };

function epicIn(
  cwd: string,
  over: { readonly task?: string; readonly flow?: string; readonly resumable?: boolean } = {},
): EpicWriter {
  const { task = "fix it", flow = "twice", resumable = true } = over;
  return createEpic({
    home: new Home(join(cwd, "home")),
    workspace: cwd,
    began: {
      flow,
      ref: `${flow}:${flow}`,
      task,
      resumable,
      agents: [{ agent: "builder", backend: "claude", model: "opus", effort: "high", provider: "" }],
      envs: [],
      params: {},
      budget: { cost: 5 },
    },
    trouble: (error) => assert.fail(error),
  });
}

/** A directory with one run in it that took a turn. */
function withRun(): { readonly cwd: string; readonly epic: EpicWriter } {
  const cwd = fresh();
  const epic = epicIn(cwd);
  const turn = {
    at: Date.now() / 1_000,
    agent: "builder",
    cli: "claude",
    model: "opus",
    session: "s1",
    call: 0,
    turn: 1,
  } as const;
  epic.record({ ...turn, kind: "begins", text: "fix it", conversation: 1 });
  epic.record({ ...turn, kind: "result", text: "TOKEN=hunter2222", tokens: { opus: 7 }, spent: { output: 7 } });
  epic.record({ ...turn, kind: "ends", text: "", seconds: 2 });
  epic.end({ how: "done", usage });
  return { cwd, epic };
}

test("a trace is written where it is asked for, or into the epic, and its path alone goes to stdout", async () => {
  const { cwd, epic } = withRun();
  const { status, stdout, stderr } = await typed(["epics", "trace", "last", "-o", "run.json"], { cwd });
  assert.deepEqual([status, stdout], [0, `${join(cwd, "run.json")}\n`]);
  assert.equal(stderr, "1 turn; open it in https://ui.perfetto.dev\n");
  assert.equal(statSync(join(cwd, "run.json")).mode & 0o777, 0o600);
  const { traceEvents } = JSON.parse(readFileSync(join(cwd, "run.json"), "utf8")) as { traceEvents: { ph: string }[] };
  assert.equal(traceEvents.filter(({ ph }) => ph === "X").length, 2);

  const json = await typed(["epics", "trace", epic.name.slice(-6), "--json"], { cwd });
  const made = JSON.parse(json.stdout) as { file: string; turns: number; slices: number };
  assert.deepEqual([made.turns, made.slices, json.stderr], [1, 2, ""]);
  assert.match(made.file.slice(epic.directory.length), /^\/traces\/\d{8}T\d{6}\.\d{3}Z\.trace\.json$/);
  assert.ok(existsSync(made.file));
  assert.deepEqual(readdirSync(cwd).toSorted(), ["home", "run.json"]);
});

test("an export lies in the workspace's .hmz/, which git is told to leave alone", async () => {
  const { cwd, epic } = withRun();
  const { status, stdout, stderr } = await typed(["epics", "export"], { cwd });
  const file = join(cwd, ".hmz", `${epic.name}.epic.tar.gz`);
  assert.deepEqual([status, stdout], [0, `${file}\n`]);
  assert.match(stderr, /^5 files, \S+ bytes\. Look at its transcript\.md before you hand it on\n$/);
  assert.match(readFileSync(join(cwd, ".hmz/.gitignore"), "utf8"), /^node_modules\/\n\*\.epic\.tar\.gz$/m);
  assert.doesNotMatch(execFileSync("tar", ["-xzOf", file], { encoding: "utf8" }), /hunter2222/);
  const made = JSON.parse((await typed(["epics", "export", "--force", "--json"], { cwd })).stdout) as {
    file: string;
    files: string[];
  };
  assert.deepEqual([made.file, made.files.length], [file, 5]);
});

for (const [before, after] of [
  ["mine/\n", "mine/\n*.epic.tar.gz\n"],
  ["mine/", "mine/\n*.epic.tar.gz\n"],
  ["*.epic.tar.gz\nmine/\n", "*.epic.tar.gz\nmine/\n"],
] as const) {
  test(`a .gitignore of ${JSON.stringify(before)} becomes ${JSON.stringify(after)}`, async () => {
    const { cwd } = withRun();
    mkdirSync(join(cwd, ".hmz"));
    writeFileSync(join(cwd, ".hmz/.gitignore"), before);
    assert.equal((await typed(["epics", "export"], { cwd })).status, 0);
    assert.equal(readFileSync(join(cwd, ".hmz/.gitignore"), "utf8"), after);
  });
}

const USAGE = "usage: hmz epics [show | trace | export | resume] [EPIC] [OPTION]…\n";

/** What is typed, and what is said: `$CWD` is the directory. A second epic is there, and so is what `prepare` makes. */
const REFUSED: readonly (readonly [
  what: string,
  argv: readonly string[],
  said: string,
  prepare?: (cwd: string) => void,
])[] = [
  ["an epic that is not there", ["trace", "nothing"], "no epic is called 'nothing': see hmz epics"],
  ["an epic that is not there, to export", ["export", "nothing"], "no epic is called 'nothing': see hmz epics"],
  ["an epic that is not there, to resume", ["resume", "nothing"], "no epic is called 'nothing': see hmz epics"],
  [
    "a file that is there",
    ["trace", "-o", "x"],
    "$CWD/x is there already: name another file, or give --force",
    (cwd) => writeFileSync(join(cwd, "x"), ""),
  ],
  [
    "a file that is there, to export",
    ["export", "-o", "x"],
    "$CWD/x is there already: name another file, or give --force",
    (cwd) => writeFileSync(join(cwd, "x"), ""),
  ],
  [
    "a directory, forced",
    ["trace", "-o", "x", "--force"],
    "$CWD/x is a directory: name a file to be written",
    (cwd) => mkdirSync(join(cwd, "x")),
  ],
  [
    "a device, forced",
    ["export", "-o", "/dev/null", "--force"],
    "/dev/null is no plain file: name a file to be written",
  ],
  ["a directory that is not there", ["trace", "-o", "no/x"], "$CWD/no/x cannot be written: $CWD/no is not there"],
  [
    "a file as a directory",
    ["export", "-o", "f/x"],
    "$CWD/f/x cannot be written: something above it is a file, not a directory",
    (cwd) => writeFileSync(join(cwd, "f"), ""),
  ],
  ["a place that takes no files", ["trace", "-o", "/proc/x"], "/proc/x cannot be written: /proc is not there"],
  [
    "a .hmz that is a file",
    ["export"],
    "$CWD/.hmz cannot be made: it is a file, not a directory",
    (cwd) => writeFileSync(join(cwd, ".hmz"), ""),
  ],
  [
    "a link that leads round",
    ["export", "-o", "l"],
    "$CWD/l cannot be written: its symbolic links lead round in a circle",
    (cwd) => symlinkSync("l", join(cwd, "l")),
  ],
  ["a run that saved nothing", ["resume"], "$EPIC has no saved progress to resume from"],
];

for (const [what, argv, said, prepare] of REFUSED) {
  test(`${what} is refused: ${said}`, async () => {
    const { cwd, epic } = withRun();
    prepare?.(cwd);
    const before = readdirSync(cwd);
    const { status, stdout, stderr } = await typed(["epics", ...argv], { cwd });
    const told = stderr.replaceAll(cwd, "$CWD").replace(epic.name, "$EPIC");
    if (what === "a place that takes no files")
      assert.match(told, /^hmz epics: error: \/proc\/x cannot be written: .*\n$/);
    else assert.equal(told, `hmz epics: error: ${said}\n`);
    assert.deepEqual([status, stdout], [2, ""]);
    assert.deepEqual(readdirSync(cwd), before);
  });
}

for (const [what, argv, said] of [
  ["a list with a file", ["-o", "x"], "-o and --force are options of trace and export"],
  ["a show with a file", ["show", "-o", "x"], "--output is an option of hmz epics trace and export"],
  ["a show that forces", ["show", "--force"], "--force is an option of hmz epics trace and export"],
  ["a trace of all", ["trace", "--all"], "--all is an option of hmz epics alone"],
  ["an export of most", ["export", "--most", "3"], "--most is an option of hmz epics alone"],
  ["a file without a name", ["trace", "-o", ""], "-o takes the name of a file, and it is empty"],
  ["an epic without a name", ["export", ""], "the name of an epic is not empty; leave it out for the newest one"],
  ["one word too many", ["trace", "last", "last"], "'last' is one argument too many"],
  ["an option that is none", ["trace", "--froce"], "unknown option '--froce'; did you mean '--force'?"],
] as const) {
  test(`${what} is told how it is written`, async () => {
    const { cwd } = withRun();
    assert.deepEqual(await typed(["epics", ...argv], { cwd }), {
      status: 2,
      stdout: "",
      stderr: `${USAGE}hmz epics: error: ${said}\n`,
    });
  });
}

test("a name that means several is refused by each of them, and by a program with the same words", async () => {
  const { cwd } = withRun();
  epicIn(cwd).end({ how: "done", usage });
  for (const verb of ["show", "trace", "export", "resume"]) {
    const { status, stderr } = await typed(["epics", verb, "2"], { cwd });
    assert.equal(status, 2);
    assert.match(stderr, /^hmz epics: error: '2' means 2 epics: say more of its name\n {2}2\S+\n {2}2\S+\n$/);
  }
  const { epics } = new Hmz({ workspace: cwd, home: join(cwd, "home") });
  for (const refused of [
    epics.trace("2"),
    epics.export("2"),
    epics.trace("no"),
    epics.export("last", { file: "/dev/null" }),
  ]) {
    await assert.rejects(refused, Refused);
  }
});

test("a run that was cut before its first line cannot say what to resume", async () => {
  const cwd = fresh();
  const parent = new Home(join(cwd, "home")).epicsOf(cwd);
  mkdirSync(join(parent, "20260102T000000.000Z-bbbbbb"), { recursive: true });
  writeFileSync(join(parent, "20260102T000000.000Z-bbbbbb", "epic.jsonl"), "");
  assert.deepEqual(await typed(["epics", "resume"], { cwd }), {
    status: 2,
    stdout: "",
    stderr:
      "hmz epics: error: the record of 20260102T000000.000Z-bbbbbb does not say what was run: it was cut before its first line was whole\n",
  });
});

const FLOW = `import { agent, env, flow, z } from "hmz/flows";
export const counts = flow(
  { resumable: true, agents: { builder: agent() }, envs: { here: env() }, params: z.object({ most: z.number(), dry: z.boolean() }) },
  async (task, { agents: { builder }, envs: { here }, params: { most, dry }, ctx }) => {
    const done = Number(ctx.state.get("done", 0));
    console.log(JSON.stringify({ task, done, most, dry, budget: ctx.budget, here: here.workdir, resumed: ctx.resumed, effort: builder.effort, model: builder.model }));
    await builder.run(task, { env: here });
    ctx.state.set("done", done + 1);
    if (done === 0) throw new Error("not yet");
  },
);
`;

test("resume runs it again as it was asked for, exits as exec does, and is itself a run that can be shown", async (t) => {
  const cwd = fresh();
  mkdirSync(join(cwd, ".hmz/flows"), { recursive: true });
  mkdirSync(join(cwd, "here"));
  writeFileSync(join(cwd, ".hmz/flows/counts.ts"), FLOW);
  writeFileSync(join(cwd, "a.json"), JSON.stringify({ scenes: [{ steps: [{ say: "said" }] }] }));
  const printed: string[] = [];
  t.mock.method(console, "log", (line: string) => void printed.push(line));
  const env = { HUMANIZE_PRICES: "off" };
  const asked = [
    "-a",
    "builder=native/scripted/a.json",
    "-e",
    `here=local${join(cwd, "here")}`,
    "-p",
    "budget.cost=5,budget.graceful.cost=false,budget.duration=1h,most=3,dry=true",
  ];
  const task = "count\n-- twice";
  const first = await typed(["exec", "-f", "counts", ...asked, "--", task], { cwd, env });
  assert.equal(first.status, 1, first.stderr);
  const elsewhere = fresh();
  const [directory = ""] = await new Hmz({ workspace: cwd, home: join(cwd, "home") }).epics.find("last");
  // From any directory: it runs where it ran.
  const second = await typed(["epics", "resume", directory], {
    cwd: elsewhere,
    env: { ...env, HUMANIZE_HOME: join(cwd, "home") },
  });
  assert.equal(second.status, 0, second.stderr);
  const said = printed.map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(said[0], { ...said[0], task, done: 0, most: 3, dry: true, here: join(cwd, "here"), resumed: false });
  assert.deepEqual(said[1], { ...said[0], done: 1, resumed: true });
  const { stdout } = await typed(["epics", "show"], { cwd });
  assert.match(stdout, new RegExp(`^picked up {2}${directory.split("/").at(-1)}$`, "m"));
  assert.match(stdout, /^resumable {2}yes: hmz epics resume [0-9a-f]{6}$/m);
});

test("what is shown fits eighty columns, but for what a person copies", async () => {
  const cwd = fresh();
  const epic = epicIn(cwd, { task: "a task of many words ".repeat(20), flow: "a-flow-with-a-name" });
  for (let call = 1; call <= 6; call += 1) {
    epic.record({
      kind: "called",
      at: 2,
      call,
      under: call - 1,
      flow: "planner:a-step-of-a-plan",
      task: "think about it ".repeat(9),
    });
    const turn = {
      at: 3,
      agent: "the_planner_of_it",
      cli: "claude",
      model: "opus",
      session: `5f0c8f0e-0000-4000-8000-00000000000${call}`,
      call,
      turn: call,
    } as const;
    epic.record({
      kind: "opened",
      at: 3,
      call,
      agent: turn.agent,
      cli: "claude",
      provider: "an-account",
      session: turn.session,
      parent: "5f0c8f0e-0000-4000-8000-000000000000",
    });
    epic.record({ ...turn, kind: "begins", text: "x", conversation: 1 });
    const spent = { input: 123_456, cache_read: 9_876_543, cache_write: 12_345, output: 54_321 };
    epic.record({ ...turn, kind: "result", text: "\u001b[2J", tokens: { opus: 54_321 }, spent, cost: 123.45 });
    epic.record({ ...turn, kind: "failed", text: "no", error: "E" });
    epic.record({ ...turn, kind: "ends", text: "", seconds: 4_000 });
  }
  epic.end({
    how: "failed",
    usage,
    error: { name: "HarnessRefused", message: "the words of why it was refused ".repeat(6) },
  });
  for (const columns of [undefined, 80, 60]) {
    const { stdout } = await typed(["epics", "show"], { cwd, ...(columns === undefined ? {} : { columns }) });
    // oxlint-disable-next-line no-control-regex
    const plain = stdout.replace(/\u001b\[\d+m/g, "");
    const wide = plain.split("\n").filter((line) => line.length > (columns ?? 80) && !line.includes("/"));
    assert.deepEqual(wide, []);
    assert.ok(!plain.includes("\u001b"));
  }
});

test("the help fits a screen, and ends with an example", async () => {
  const { stdout } = await typed(["epics", "--help"]);
  const lines = stdout.trimEnd().split("\n");
  assert.ok(lines.length <= 30, String(lines.length));
  assert.ok(lines.every((line) => line.length <= 80));
  assert.match(stdout, /\nExample:\n {2}hmz epics trace last -o run\.json\n$/);
});
