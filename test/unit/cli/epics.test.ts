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
  assert.match((await typed(["epics", "2"], { cwd })).stderr, /'2' means 2 epics: /);
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
