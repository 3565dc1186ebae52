/** Works on the task until the tests pass, in one turn that the flow does not let end before. */
import { agent, flow, localEnv, z } from "hmz/flows";

export const until_green = flow(
  {
    agents: { fixer: agent() },
    envs: { workspace: localEnv({ needs: ["bash"] }) },
    params: z.object({
      test: z.string().default("npm test").describe("the command that must come to status 0"),
      tries: z.number().int().min(1).default(5).describe("how often the turn is held before it may end red"),
    }),
  },
  async (task, { agents: { fixer }, envs: { workspace }, params: { test, tries } }) => {
    let green = false;
    // #region stop
    fixer.onStop(async ({ again }) => {
      const ran = await workspace.exec(test, { timeout: 600_000 });
      green = ran.status === 0;
      if (green || again >= tries) return {};
      const output = `${ran.stdout}${ran.stderr}`.slice(-4_000);
      return { block: true, reason: `\`${test}\` fails. Fix the cause, not the test.\n\n${output}` };
    });
    // #endregion
    const said = await fixer.run(task, { env: workspace });
    return { green, said };
  },
);
