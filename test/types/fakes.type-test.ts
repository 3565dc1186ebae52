/** What `hmz/fakes` promises, held by the compiler. */

import { agent, budget, env, flow, localEnv, outworlder, z } from "hmz/flows";
import { FakeAgent, FakeEnv, type FakeSession, FakeOutworlder, runFake } from "hmz/fakes";

const plan = flow(
  {
    agents: { planner: agent({ needs: ["ask_user"] }), human: outworlder() },
    envs: { box: env({ needs: ["bash"] }), here: localEnv() },
    params: z.object({ rounds: z.number().default(1) }),
  },
  async (task, { params }) => ({ task, rounds: params.rounds }),
);

export async function tests(): Promise<void> {
  const done: { task: string; rounds: number } = await runFake(plan, "go", {
    agents: {
      planner: new FakeAgent({
        harness: "codex",
        reply: async (prompt, { outputSchema, session }) => {
          const it: FakeSession = session;
          const answer: string | undefined = await it.ask("which?", ["a"]);
          const ran: boolean = await it.tool("Bash", { command: prompt });
          return outputSchema ? { ok: ran } : answer;
        },
      }),
      human: "yes",
    },
    envs: { box: { "a.txt": "text" } },
    params: { rounds: 2 },
    budget: budget({ cost: 1 }),
    outworlder: new FakeOutworlder({ reply: ["yes", { n: 1 }, undefined] }),
    local: new FakeEnv({ run: (command, { workdir }) => ({ stdout: `${String(command)} ${workdir}` }) }),
  });
  void done;
  void runFake(plan, "go", { agents: { planner: ["one", { two: 2 }] } });
  void runFake("./plan.ts");
  // @ts-expect-error no such role
  void runFake(plan, "go", { agents: { builder: "x" } });
  // @ts-expect-error no such environment
  void runFake(plan, "go", { envs: { other: {} } });
  // @ts-expect-error not a harness
  void new FakeAgent({ harness: "clippy" });
  // @ts-expect-error not a need
  void new FakeAgent({ needs: ["shell"] });
  // @ts-expect-error a file is text or bytes
  void new FakeEnv({ files: { a: 5 } });
}
