/**
 * A turn of the real Claude Code on its live process, through hmz. Floor: the same program held by hand, stream-json
 * lines written and read with nothing in between; peer: a fresh process for each turn, as a shell loop does it.
 * Needs `npm run test:real` to have installed the program.
 */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { agent, flow, localEnv } from "hmz/flows";
import { startRun } from "../src/engine/run.ts";
import { scripted } from "../test/model-server/script.ts";
import { MODEL, PROGRAM, startBench } from "../test/real/claude.ts";
import { report, summary } from "./measure.ts";

const ROUNDS = 40;
const COLD_ROUNDS = 4;
const bench = await startBench();
const prompt = `say it ${scripted([{ text: "said" }])}`;
const env = { ...bench.env, IS_SANDBOX: "1", CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1" };
const common = ["--model", MODEL, "--permission-mode", "bypassPermissions", "--setting-sources", "", "--verbose"];
const streamed = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", ...common];

/** The program held by hand. */
function byHand(): { turn: () => Promise<void>; end: () => void } {
  const { workdir } = bench.setup.place;
  const child = spawn(PROGRAM, streamed, { cwd: workdir, env, stdio: ["pipe", "pipe", "ignore"] });
  let landed = (): void => {};
  createInterface({ input: child.stdout }).on("line", (line) => {
    if ((JSON.parse(line) as { type: string }).type === "result") landed();
  });
  const message = {
    type: "user",
    message: { role: "user", content: prompt },
    parent_tool_use_id: null,
    session_id: "",
  };
  return {
    turn: () =>
      new Promise((resolve) => {
        landed = resolve;
        child.stdin.write(`${JSON.stringify(message)}\n`);
      }),
    end: () => child.kill("SIGTERM"),
  };
}

function cold(): Promise<void> {
  const { workdir } = bench.setup.place;
  return new Promise((resolve) => {
    spawn(PROGRAM, ["-p", prompt, ...common], { cwd: workdir, env, stdio: "ignore" }).on("exit", () => resolve());
  });
}

async function ms(work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

const live = flow(
  { agents: { worker: agent() }, envs: { workspace: localEnv() } },
  async (_task, { agents: { worker }, envs: { workspace } }) => {
    const hand = byHand();
    const session = await worker.spawn();
    const ours = (): Promise<unknown> => worker.run(prompt, { session, env: workspace });
    const samples: Record<"ours" | "hand" | "cold", number[]> = { ours: [], hand: [], cold: [] };
    for (let round = -5; round < ROUNDS; round++) {
      // In turn, and who goes first in turn too: the machine drifts.
      const pair = [async () => samples.ours.push(await ms(ours)), async () => samples.hand.push(await ms(hand.turn))];
      for (const one of round % 2 === 0 ? pair : pair.toReversed()) await one();
      if (round < 0) samples.ours.length = samples.hand.length = 0;
    }
    for (let round = 0; round < COLD_ROUNDS; round++) samples.cold.push(await ms(cold));
    hand.end();
    report(
      "live-turn",
      [
        summary("hmz: a turn of Claude Code on its live process", samples.ours),
        summary("floor: the same, stream-json by hand", samples.hand),
        summary("peer: a process for each turn", samples.cold),
      ],
      "ms",
    );
  },
);

await startRun({
  flow: live,
  task: "",
  agents: { worker: bench.driver() },
  envs: {},
  workspace: bench.setup.place,
  outworlder: { away: () => true, ask: async () => "" },
  params: {},
  budget: undefined,
  prices: { cost: () => undefined },
  recorder: { record() {} },
  load: async () => {
    throw new Error("nothing is loaded");
  },
  keep: () => {
    throw new Error("nothing here is kept");
  },
  skills: async () => [],
}).result;
await bench.close();
