/** One session that is given the task once, and then told to continue until the budget is spent. */
import { agent, flow, localEnv } from "hmz/flows";

export const continue_loop = flow(
  { agents: { agent: agent() }, envs: { workspace: localEnv() } },
  async (task, { agents, envs }) => {
    const session = await agents.agent.spawn();
    await agents.agent.run(task, { session, env: envs.workspace });
    for (;;) await agents.agent.run("Continue.", { session, env: envs.workspace });
  },
);
