/** The items of a list, one turn each; what is done is kept, so that a run that is picked up goes on after it. */
import { agent, flow, localEnv } from "hmz/flows";

export const todo = flow(
  { agents: { worker: agent() }, envs: { workspace: localEnv({ needs: ["files"] }) }, resumable: true },
  async (list, { agents: { worker }, envs: { workspace }, ctx }) => {
    const text = await workspace.readText(list);
    const items = [...text.matchAll(/^- \[ \] (.+)$/gm)].map(([, item]) => item as string);
    // #region state
    const done = ctx.state.get<string[]>("done", []);
    for (const item of items.filter((item) => !done.includes(item))) {
      await worker.run(item, { env: workspace });
      done.push(item);
      // The array changed in place; what is kept is what is set.
      ctx.state.set("done", done);
    }
    // #endregion
    return done;
  },
);
