/** Three attempts side by side, each in a copy of its own; the first whose tests pass is laid over the workspace. */
import { agent, flow, localEnv } from "hmz/flows";

export const attempts = flow(
  {
    agents: { builder: agent() },
    envs: { workspace: localEnv({ needs: ["bash", "temp_clone", "git"] }) },
  },
  async (task, { agents: { builder }, envs: { workspace } }) => {
    // #region copies
    const tried = await Promise.all(
      ["plain", "careful", "bold"].map(async (manner) => {
        const copy = await workspace.deriveTempClone(manner);
        await builder.run(`Be ${manner}. ${task}`, { env: copy });
        const { status } = await copy.exec("npm test");
        return { copy, passes: status === 0 };
      }),
    );
    // #endregion
    const best = tried.find(({ passes }) => passes);
    if (!best) return "none of the three passes";
    // #region rewind
    const before = await workspace.snapshot("before-attempts");
    await workspace.exec(["cp", "-a", `${best.copy.workdir}/.`, workspace.workdir]);
    const { status } = await workspace.exec("npm test");
    if (status !== 0) await workspace.rewind(before);
    // #endregion
    return status === 0 ? "done" : "it passes in the copy alone";
  },
);
