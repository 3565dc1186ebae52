/** One turn of a fake agent: five budgets deep, two hooks, a recorder on. Floor: a plain sketch; peer: AI SDK 7. */

import { generateText } from "ai";
import { agent, type Flow, flow } from "hmz/flows";
import { startRun } from "../src/engine/run.ts";
import { instantSetup } from "./instant.ts";
import { paired, report } from "./measure.ts";
import { answering } from "./mock-model.ts";

const DEEP = 5;

let turns: (count: number) => Promise<void> = async () => {};

/** Flows that call one another until they are five deep, each call under a budget of its own. */
const deep: Flow = flow({ agents: { builder: agent() } }, async (left, { agents: { builder } }) => {
  if (Number(left) > 1) return deep(String(Number(left) - 1), { agents: { builder }, budget: { cost: 1_000 } });
  const session = await builder.spawn();
  builder.onUserPromptSubmit(() => ({}));
  builder.onStop(() => ({ block: false }));
  const options = { session };
  turns = async (count) => {
    for (let turn = 0; turn < count; turn++) await builder.run("go", options);
  };
  await measured();
  return undefined;
}) as unknown as Flow;

async function measured(): Promise<void> {
  const figures = await paired([
    { name: "hmz: a turn, 5 budgets deep, 2 hooks, recorded", count: 20_000, run: (count) => turns(count) },
    { name: "floor: a plain async sketch of the same", count: 20_000, run: sketch },
    {
      name: "peer: AI SDK 7 generateText, a mock model",
      count: 500,
      run: async (count) => {
        for (let turn = 0; turn < count; turn++) await generateText({ model: answering, prompt: "go" });
      },
    },
  ]);
  report("turn", figures);
}

/** The least that the same work can cost: five counters, two awaited functions, four records, one awaited answer. */
async function sketch(count: number): Promise<void> {
  const spent = [0, 0, 0, 0, 0];
  const limits = [1_000, 1_000, 1_000, 1_000, 1_000];
  const records: unknown[] = [];
  const hook = async (): Promise<object> => ({});
  const answer = async (): Promise<string> => "done";
  for (let turn = 0; turn < count; turn++) {
    for (let level = 0; level < 5; level++) if ((spent[level] ?? 0) >= (limits[level] ?? 0)) throw new Error("spent");
    records.push({ kind: "begins", at: Date.now() });
    await hook();
    const said = await answer();
    for (let level = 0; level < 5; level++) spent[level] = (spent[level] ?? 0) + 0.000_01;
    await hook();
    records.push({ kind: "result", at: Date.now(), text: said }, { kind: "ends", at: Date.now() });
    records.length = 0;
  }
}

await startRun({ ...instantSetup(["builder"]), flow: deep, task: String(DEEP), budget: { cost: 1_000 } }).result;
