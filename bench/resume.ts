/**
 * A run picks up a journal of 10,000 calls and 100,000 records of their state: to the first line of the flow. Floor:
 * reading the file and parsing each line.
 */

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flow } from "hmz/flows";
import { startRun } from "../src/engine/run.ts";
import { openJournal, readJournal } from "../src/home/journal.ts";
import { instantSetup } from "./instant.ts";
import { paired, report } from "./measure.ts";

const CALLS = 10_000;
const STATES = 100_000;

const directory = mkdtempSync(join(tmpdir(), "hmz-bench-resume-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const earlier = join(directory, "earlier.jsonl");
writeFileSync(earlier, journalText());
console.log(`\n${(statSync(earlier).size / 1e6).toFixed(1)} MB, ${CALLS} calls, ${STATES} state records`);

const trouble = (error: Error): never => {
  throw error;
};

let firstLine: () => void = () => {};
let ended: Promise<unknown> | undefined;
const resumed = flow({ name: "resumed", resumable: true }, async (_task, { ctx }) => {
  firstLine();
  if (!ctx.resumed || ctx.state.get("k0") === undefined) throw new Error("nothing was picked up");
});

const figures = await paired([
  {
    name: "hmz: picked up, to the flow's first line",
    count: 1,
    run: async () => {
      const journal = openJournal({
        path: join(directory, "resume.jsonl"),
        earlier: readJournal(earlier).records,
        trouble,
      });
      await new Promise<void>((resolve, reject) => {
        firstLine = resolve;
        const setup = { ...instantSetup([]), flow: resumed, task: "go", budget: undefined };
        ended = startRun(setup, journal).result;
        ended.catch(reject);
      });
    },
  },
  { name: "  of it: the journal is read", count: 1, run: () => void readJournal(earlier) },
  {
    name: "floor: read, split, JSON.parse each line",
    count: 1,
    run: async () => {
      // What the round before left running is not this one's to pay for.
      await ended;
      let records = 0;
      for (const line of readFileSync(earlier, "utf8").split("\n")) if (line !== "" && JSON.parse(line)) records++;
      if (records !== CALLS + STATES + 1) throw new Error(`${records} records`);
    },
  },
]);
report(
  "resume",
  figures.map(({ name, min, median, max }) => ({ name, min: min / 1_000, median: median / 1_000, max: max / 1_000 })),
  "ms",
);

/** As a run leaves it that was killed: each call sets ten keys of its own. */
function journalText(): string {
  const lines = ['{"t":"journal","v":1}'];
  for (let id = 1; id <= CALLS; id++) {
    const digest = id.toString(16).padStart(32, "0");
    lines.push(JSON.stringify({ t: "call", id, parent: id === 1 ? 0 : 1, digest, seq: 0, ref: "bench:resumed" }));
    for (let key = 0; key < STATES / CALLS; key++) {
      lines.push(JSON.stringify({ t: "set", id, key: `k${key}`, value: { round: key, said: "the review is done" } }));
    }
  }
  return `${lines.join("\n")}\n`;
}
