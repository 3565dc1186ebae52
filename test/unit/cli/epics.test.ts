import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createEpic, type EpicWriter } from "../../../src/home/epic.ts";
import { Home } from "../../../src/home/paths.ts";
import { fresh, typed } from "./in-process.ts";

function epicIn(cwd: string, task = "fix it"): EpicWriter {
  return createEpic({
    home: new Home(join(cwd, "home")),
    workspace: cwd,
    began: {
      flow: "twice",
      ref: "twice:twice",
      task,
      resumable: true,
      agents: [{ agent: "builder", backend: "claude", model: "opus", effort: "high", provider: "work" }],
      envs: ["gpu=local/tmp"],
      params: { rounds: 2 },
      budget: { cost: 5 },
    },
    trouble: (error) => assert.fail(error),
  });
}

const usage = { duration: 62_000, cost: 1.25, outputTokens: 1_500 };

test("no run yet is said, and is no failure", async () => {
  const cwd = fresh();
  assert.deepEqual(await typed(["epics"], { cwd }), {
    status: 0,
    stdout: "",
    stderr: `no run was started in ${cwd}\n`,
  });
  assert.equal((await typed(["epics", "show"], { cwd })).stderr, `hmz epics: error: no run was started in ${cwd}\n`);
});

test("a list says of each run its flow, how it ended, its cost and its task", async () => {
  const cwd = fresh();
  const done = epicIn(cwd);
  done.end({ how: "done", usage });
  const going = epicIn(cwd, "second\nthing");
  const { stdout } = await typed(["epics"], { cwd });
  const lines = stdout.trimEnd().split("\n");
  assert.match(lines.find((line) => line.startsWith(done.name)) ?? "", / done +\$1\.25 +0s +twice +fix it$/);
  assert.match(lines.find((line) => line.startsWith(going.name)) ?? "", / going +twice +second thing$/);
  const one = await typed(["epics", "--most", "1"], { cwd });
  assert.match(one.stdout, /\nand 1 more: hmz epics --most 0\n$/);
  assert.equal((await typed(["epics", "--most", "many"], { cwd })).status, 2);
  going.end({ how: "stopped", usage });
});

test("a run is shown whole: who worked, what it spent, what it called, how it ended", async () => {
  const cwd = fresh();
  const epic = epicIn(cwd, "fix it\nplease");
  const turn = { at: 1, agent: "builder", cli: "claude", model: "opus", session: "s1", call: 0, turn: 1 } as const;
  epic.record({ kind: "opened", at: 1, call: 0, agent: "builder", cli: "claude", provider: "work", session: "s1" });
  epic.record({ ...turn, kind: "begins", text: "fix it", conversation: 1 });
  epic.record({ kind: "called", at: 2, call: 1, under: 0, flow: "plan:plan", task: "think" });
  epic.record({ kind: "called", at: 3, call: 2, under: 1, flow: "plan:step", task: "step" });
  epic.record({ kind: "returned", at: 9, call: 1, flow: "plan:plan", how: "failed" });
  epic.record({ ...turn, kind: "result", text: "ok", tokens: { opus: 1_500 }, spent: { output: 1_500 }, cost: 1.25 });
  epic.record({ ...turn, kind: "ends", text: "", seconds: 62 });
  epic.end({ how: "failed", usage, error: { name: "HarnessRefused", message: "\u001b[2Jno" } });

  const { status, stdout } = await typed(["epics", epic.name.slice(-6)], { cwd });
  assert.equal(status, 0);
  for (const said of [
    "flow       twice (twice:twice)",
    `workspace  ${cwd}`,
    "ended      failed: HarnessRefused: ␛[2Jno",
    "spent      $1.25, 1.5k output tokens, 1m 02s of turns",
    'budget     {"cost":5}',
    'params     {"rounds":2}',
    "env        gpu=local/tmp",
    "  fix it\n  please",
    "  builder  claude@work/opus:high  1 turn, 1.5k output tokens, $1.25, 1m 02s",
    "  builder  claude@work  s1",
    "  plan:plan failed 7s think\n    plan:step did not return step",
  ]) {
    assert.ok(stdout.includes(`${said}\n`), `${said}\n---\n${stdout}`);
  }
  const json = JSON.parse((await typed(["epics", "show", epic.directory, "--json"], { cwd })).stdout) as {
    state: string;
  };
  assert.equal(json.state, "failed");
});

test("a name that means none, or two, is refused", async () => {
  const cwd = fresh();
  for (const epic of [epicIn(cwd), epicIn(cwd)]) epic.end({ how: "done", usage });
  assert.match((await typed(["epics", "nothing"], { cwd })).stderr, /no epic is called 'nothing': see hmz epics/);
  assert.match(
    (await typed(["epics", "2"], { cwd })).stderr,
    /'2' means 2 epics: say more of its name\n {2}2\S+\n {2}2\S+\n$/,
  );
});

test("a directory that is no epic is not listed, and one with an empty record is left unfinished", async () => {
  const cwd = fresh();
  const parent = new Home(join(cwd, "home")).epicsOf(cwd);
  mkdirSync(join(parent, "20260101T000000.000Z-aaaaaa"), { recursive: true });
  mkdirSync(join(parent, "20260102T000000.000Z-bbbbbb"));
  writeFileSync(join(parent, "20260102T000000.000Z-bbbbbb", "epic.jsonl"), "");
  const { stdout } = await typed(["epics"], { cwd });
  assert.match(stdout, /^20260102T000000\.000Z-bbbbbb {2}left unfinished\n$/);
  assert.match((await typed(["epics", "show"], { cwd })).stdout, /began {6}2026-01-02T00:00:00\.000Z/);
});

test("a name that means many lists five of them, one a line; an empty one means none", async () => {
  const cwd = fresh();
  for (let count = 0; count < 7; count += 1) epicIn(cwd).end({ how: "done", usage });
  const { status, stderr } = await typed(["epics", "show", "2"], { cwd });
  assert.equal(status, 2);
  assert.match(stderr, /^hmz epics: error: '2' means 7 epics: .*\n(?: {2}2\S+\n){5} {2}and 2 more\n$/);
  for (const argv of [
    ["epics", "show", ""],
    ["epics", ""],
  ]) {
    const empty = await typed(argv, { cwd });
    assert.equal(empty.status, 2);
    assert.match(empty.stderr, /hmz epics: error: the name of an epic is not empty/);
  }
});

for (const most of ["-1", "1.5", "many", "", "1e3"]) {
  test(`--most ${JSON.stringify(most)} is told what it takes`, async () => {
    const { status, stderr } = await typed(["epics", "--most", most]);
    assert.equal(status, 2);
    assert.ok(stderr.endsWith(`error: --most takes a whole number, 0 for all; '${most}' is none\n`), stderr);
  });
}

test("a home that is a file is said, and not read as one without epics", async () => {
  const cwd = fresh();
  const file = join(cwd, "file");
  writeFileSync(file, "");
  mkdirSync(join(cwd, "half"));
  writeFileSync(join(cwd, "half/epics"), "");
  for (const [home, said] of [
    [file, file],
    [join(cwd, "half"), join(cwd, "half/epics")],
  ] as const) {
    for (const argv of [["epics"], ["epics", "--all"], ["epics", "show"], ["epics", "abc"]]) {
      assert.deepEqual(await typed(argv, { cwd, env: { HUMANIZE_HOME: home } }), {
        status: 2,
        stdout: "",
        stderr: `hmz epics: error: ${said} is a file, not a directory\n`,
      });
    }
  }
});

test("turns are shown under the call that they were taken in, and an agent that was handed on is not called idle", async () => {
  const cwd = fresh();
  const epic = epicIn(cwd);
  epic.record({ kind: "called", at: 2, call: 1, under: 0, flow: "plan:plan", task: "think" });
  for (let number = 1; number <= 3; number += 1) {
    const turn = { at: 3, cli: "claude", model: "opus", session: "s1", turn: number } as const;
    const of = { ...turn, agent: number < 3 ? "a" : "b", call: 1 };
    epic.record({ ...of, kind: "begins", text: "x", conversation: 1 });
    epic.record({ ...of, kind: "result", text: "ok", tokens: { opus: 100 }, spent: { output: 100 }, cost: 0.5 });
    epic.record({ ...of, kind: "ends", text: "", seconds: 2 });
  }
  epic.record({ kind: "returned", at: 9, call: 1, flow: "plan:plan", how: "done" });
  epic.end({ how: "done", usage });
  const { stdout } = await typed(["epics", "show"], { cwd });
  assert.match(
    stdout,
    /^ {2}plan:plan done 7s, \$1\.50, 300 output tokens think\n {4}a: 2 turns, 200 output tokens, \$1\.00, 4s\n {4}b: 1 turn, 100 output tokens, \$0\.50, 2s$/m,
  );
  assert.match(stdout, /^ {2}builder {2}claude@work\/opus:high {2}no turn in this flow itself$/m);
  assert.doesNotMatch(stdout, /no turn$/m);
});
