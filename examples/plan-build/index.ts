/** A planner that may only read, then a builder for each step of its plan. */
import { agent, flow, localEnv, z } from "hmz/flows";

const Plan = z.object({ steps: z.array(z.string()).describe("in order, each small enough for one commit") });

// #region planner
/** A plan of small steps. It reads; what it was given to write with, it does not get. */
export const plan = flow(
  {
    agents: { planner: agent({ permission: { local: "read", online: "none" } }) },
    envs: { source: localEnv() },
    params: z.object({ most: z.number().int().positive().default(8) }),
  },
  (task, { agents: { planner }, envs: { source }, params: { most } }) =>
    planner.run(`Plan this in at most ${most} steps. Change nothing.\n\n${task}`, { env: source, outputSchema: Plan }),
);
// #endregion

export const plan_build = flow(
  { agents: { builder: agent() }, envs: { workspace: localEnv() } },
  async (task, { agents: { builder }, envs: { workspace } }) => {
    // #region call
    const { steps } = await plan(task, {
      agents: { planner: builder },
      envs: { source: workspace },
      params: { most: 4 },
      budget: { cost: 1, duration: "15m" },
    });
    // #endregion
    for (const step of steps) await builder.run(`${step}\n\nThen commit.`, { env: workspace });
    return steps;
  },
);
