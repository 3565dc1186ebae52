/** The task for each file on its own, a few at a time, each turn under a limit of its own. */
import { agent, CostExceeded, flow, localEnv, z } from "hmz/flows";

export const each_file = flow(
  {
    agents: { worker: agent() },
    envs: { workspace: localEnv({ needs: ["shell"] }) },
    params: z.object({
      files: z.string().default("*.ts").describe("which files, as git ls-files takes it"),
      usd: z.number().positive().default(0.5).describe("the most that one file may cost"),
      at_once: z.number().int().min(1).max(16).default(4),
    }),
  },
  async (task, { agents: { worker }, envs: { workspace }, params: { files, usd, at_once }, ctx }) => {
    const listed = await workspace.exec(["git", "ls-files", "-z", "--", files]);
    if (listed.status !== 0) throw new Error(`git ls-files: ${listed.stderr}`);
    const left = listed.stdout.split("\0").filter((path) => path !== "");
    const done: string[] = [];
    const cut: string[] = [];

    // #region group
    await ctx.group(async (group) => {
      for (let lane = 0; lane < at_once; lane++) {
        void group.run(async () => {
          for (let path = left.shift(); path !== undefined; path = left.shift()) {
            try {
              await worker.run(`In ${path} alone:\n\n${task}`, {
                env: workspace,
                budget: { cost: usd, graceful: false },
              });
              done.push(path);
            } catch (error) {
              // The file's own limit, and not the run's: the next file has its own again.
              const runIsSpent = ctx.usage.cost >= (ctx.budget.cost ?? Infinity);
              if (!(error instanceof CostExceeded) || runIsSpent) throw error;
              cut.push(path);
            }
          }
        });
      }
    });
    // #endregion
    return { done, cut };
  },
);
