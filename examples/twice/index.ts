/** Two passes: do the work, then read it back and fix what is wrong. */
import { agent, flow, localEnv } from "hmz/flows";

export const twice = flow(
  { agents: { builder: agent() }, envs: { workspace: localEnv() } },
  async (task, { agents: { builder }, envs: { workspace } }) => {
    const session = await builder.spawn();
    await builder.run(task, { session, env: workspace });
    await builder.run("Review what you did; fix anything wrong.", { session, env: workspace });
  },
);
