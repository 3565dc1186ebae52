/**
 * 1,000 and 10,000 sessions of fake agents, ten turns each, all at once; and what a parked session holds in memory. Floor:
 * a plain async sketch; peer: AI SDK 7, as many conversations at once.
 */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { generateText } from "ai";
import { agent, flow, type Session } from "hmz/flows";
import { startRun } from "../src/engine/run.ts";
import { instantSetup } from "./instant.ts";
import { report, summary } from "./measure.ts";
import { answering } from "./mock-model.ts";

const TURNS = 10;
const ROUNDS = 3;
/** The peer is a hundred times slower for each turn: a part of the crowd says as much. */
const PEER_SESSIONS = 500;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

async function ms(work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

const crowd = flow({ agents: { worker: agent() } }, async (_task, { agents: { worker } }) => {
  const ours = (sessions: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: sessions }, async () => {
        const session = await worker.spawn();
        for (let turn = 0; turn < TURNS; turn++) await worker.run("go", { session });
      }),
    );
  for (const sessions of [1_000, 10_000]) {
    const samples: Record<"ours" | "floor" | "peer", number[]> = { ours: [], floor: [], peer: [] };
    for (let round = -1; round < ROUNDS; round++) {
      const taken = [
        await ms(() => ours(sessions)),
        await ms(() => sketch(sessions)),
        await ms(() => peer(PEER_SESSIONS)),
      ];
      if (round < 0) continue;
      samples.ours.push(taken[0] as number);
      samples.floor.push(taken[1] as number);
      samples.peer.push(((taken[2] as number) * sessions) / PEER_SESSIONS);
    }
    report(
      `crowd: ${sessions} sessions × ${TURNS} turns`,
      [
        summary("hmz", samples.ours),
        summary("floor: a plain async sketch", samples.floor),
        summary(`peer: AI SDK 7, from ${PEER_SESSIONS} sessions`, samples.peer),
      ],
      "ms",
    );
  }

  const parked: Session[] = [];
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < 10_000; index++) {
    const session = await worker.spawn();
    await worker.run("go", { session });
    parked.push(session);
  }
  collect();
  const bytes = (process.memoryUsage().heapUsed - before) / parked.length;
  console.log(`  a parked session, one turn taken: ${Math.round(bytes)} bytes of heap`);
});

async function sketch(sessions: number): Promise<void> {
  const answer = async (): Promise<string> => "done";
  let spent = 0;
  await Promise.all(
    Array.from({ length: sessions }, async () => {
      const history: string[] = [];
      for (let turn = 0; turn < TURNS; turn++) {
        if (spent > 1_000) throw new Error("spent");
        history.push(await answer());
        spent += 0.000_01;
      }
    }),
  );
}

async function peer(sessions: number): Promise<void> {
  await Promise.all(
    Array.from({ length: sessions }, async () => {
      for (let turn = 0; turn < TURNS; turn++) await generateText({ model: answering, prompt: "go" });
    }),
  );
}

await startRun({ ...instantSetup(["worker"]), flow: crowd, task: "go", budget: { cost: 1_000 } }).result;
