/** The task as a goal, which the harness itself pursues until it is met. */
import { agent, flow, localEnv } from "hmz/flows";

export const goal = flow(
  { agents: { worker: agent({ needs: ["goal"] }) }, envs: { workspace: localEnv() } },
  (task, { agents: { worker }, envs: { workspace } }) => worker.run(`/goal ${task}`, { env: workspace }),
);
