/** A run that does its work in steps, each remembered, and is killed again and again: `victim.ts WORKSPACE HOME LOG`. */

import { appendFileSync } from "node:fs";
import { agent, flow, localEnv, type Session, z } from "hmz/flows";
import { FakeAgent } from "hmz/fakes";
import { Hmz } from "hmz";

const STEPS = 120;

const [workspace = "", home = "", log = ""] = process.argv.slice(2);

const said = (line: string): void => appendFileSync(log, `${line}\n`);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** One step: what it has done is in its own state before it returns, and is not done again. */
const step = flow({ name: "step", params: z.object({ n: z.number() }), resumable: true }, async (_task, given) => {
  const { n } = given.params;
  const { state } = given.ctx;
  const done = state.get<string>("done");
  if (done !== undefined) return done;
  said(`work ${n}`);
  await pause(1);
  state.set("done", `result ${n}`);
  said(`finished ${n}`);
  return `result ${n}`;
});

const victim = flow(
  {
    name: "victim",
    agents: { coder: agent() },
    envs: { repo: localEnv({ needs: ["files", "temp_clone", "scratch"] }) },
    resumable: true,
  },
  async (_task, { agents: { coder }, envs: { repo }, ctx }) => {
    const copy = await repo.deriveTempClone("work");
    const scratch = await repo.deriveScratch("notes");
    if (!ctx.state.has("session")) {
      const session = await coder.spawn();
      await coder.run("begin", { session });
      ctx.state.set("session", session);
    }
    for (let n = ctx.state.get("next", 0); n < STEPS; n++) {
      const result = await step("go", { params: { n } });
      await copy.write(`step-${n}`, result);
      if (n % 10 === 0) await scratch.write(`note-${n}`, result);
      if (n % 25 === 0) {
        const session = ctx.state.get<Session>("session");
        if (!session) throw new Error("the session is lost");
        await coder.run(`step ${n}`, { session });
      }
      ctx.state.set("next", n + 1);
      ctx.state.set("results", [...ctx.state.get<string[]>("results", []).slice(0, n), result]);
    }
    return {
      results: ctx.state.get("results"),
      files: await Promise.all(Array.from({ length: STEPS }, (_, n) => copy.readText(`step-${n}`))),
    };
  },
);

const hmz = new Hmz({ workspace, home });
const options = { agents: { coder: new FakeAgent() }, budget: { cost: 1 } };
let run = hmz.run(victim, "go", { ...options, resume: true });
try {
  await run.start();
} catch {
  // The first one has none to pick up.
  run = hmz.run(victim, "go", options);
}
const result = await run.wait();
console.log(JSON.stringify(result));
