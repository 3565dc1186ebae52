/** The same task for a fresh session, again and again, until the budget is spent. */
import { agent, flow, localEnv } from "hmz/flows";

export const ralph_loop = flow(
  { agents: { agent: agent() }, envs: { workspace: localEnv() } },
  async (task, { agents, envs }) => {
    for (;;) await agents.agent.run(task, { env: envs.workspace });
  },
);
