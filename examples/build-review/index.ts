/** One agent builds and another reviews, until the reviewer approves or the rounds are used up. */
import { agent, flow, localEnv, z } from "hmz/flows";

// #region schema
const Review = z.object({
  approved: z.boolean().describe("whether the work can be merged as it stands"),
  problems: z.array(z.object({ file: z.string(), what: z.string() })).describe("what has to change first"),
});
// #endregion

export const build_review = flow(
  {
    agents: { builder: agent(), reviewer: agent({ permission: { local: "read" } }) },
    envs: { workspace: localEnv() },
    params: z.object({ rounds: z.number().int().min(1).max(10).default(3) }),
  },
  async (task, { agents: { builder, reviewer }, envs: { workspace }, params: { rounds } }) => {
    const building = await builder.spawn();
    await builder.run(task, { session: building, env: workspace });
    for (let round = 1; ; round++) {
      // A fresh session a round: a reviewer that remembers what it said defends it.
      // #region typed
      const review = await reviewer.run(`Review the uncommitted changes. They are to do this:\n\n${task}`, {
        env: workspace,
        outputSchema: Review,
      });
      if (review.approved || round === rounds) return { round, ...review };
      // #endregion
      const problems = review.problems.map(({ file, what }) => `- ${file}: ${what}`).join("\n");
      await builder.run(`A reviewer found this. Fix it.\n\n${problems}`, { session: building, env: workspace });
    }
  },
);
