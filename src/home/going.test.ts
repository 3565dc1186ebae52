import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { goneRuns, noteGoing } from "./going.ts";

test("a run that ended without a word is found by its mark, one that goes is not", (t) => {
  const machine = mkdtempSync(join(tmpdir(), "hmz-going-"));
  t.after(() => rmSync(machine, { recursive: true }));
  assert.deepEqual(goneRuns(machine), []);
  const end = noteGoing(machine, "mine");
  assert.deepEqual(goneRuns(machine), []);
  // The pid lives, but what has it now started at another time.
  writeFileSync(join(machine, "going", "1.json"), JSON.stringify({ pid: process.pid, start: 1, mark: "theirs" }));
  writeFileSync(join(machine, "going", "2.json"), '{"pid":');
  const gone = goneRuns(machine);
  assert.deepEqual(gone.map(({ mark }) => mark).sort(), ["", "theirs"]);
  for (const run of gone) run.forget();
  assert.deepEqual(goneRuns(machine), []);
  end();
  assert.deepEqual(readdirSync(join(machine, "going")), []);
});
