/** The same task for fresh sessions until the night's budget is spent, then a note on what was done. */
import { agent, budget, BudgetExceeded, flow, load, localEnv, z } from "hmz/flows";

export const nightly = flow(
  {
    agents: { worker: agent() },
    envs: { workspace: localEnv() },
    params: z.object({
      tokens: z.number().int().positive().default(2_000_000).describe("output tokens; a turn is cut off at them"),
      usd: z.number().positive().default(20).describe("money; the turn that reaches it may finish"),
    }),
  },
  async (task, { agents: { worker }, envs: { workspace }, params: { tokens, usd }, ctx }) => {
    // #region limits
    const night = budget({ outputTokens: tokens, cost: usd, graceful: { outputTokens: false, cost: true } });
    const ralph = await load("ralph_loop");
    try {
      await ralph(task, { agents: { agent: worker }, envs: { workspace }, budget: night });
    } catch (error) {
      // Where this call's own budget is spent too, the next turn is refused, and the run ends here.
      if (!(error instanceof BudgetExceeded)) throw error;
    }
    // #endregion
    const { cost, outputTokens } = ctx.usage;
    await worker.run("Write NIGHT.md: what the last commits changed, and what is left to do.", { env: workspace });
    return { cost, outputTokens };
  },
);
