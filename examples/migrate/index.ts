/** A migration in steps, each a call of its own, that goes on where it was stopped. */
import { agent, flow, localEnv, type Session, z } from "hmz/flows";

const Plan = z.object({ modules: z.array(z.string()) });

// #region step
export const one_module = flow(
  { agents: { worker: agent() }, envs: { workspace: localEnv({ needs: ["bash"] }) }, resumable: true },
  async (module, { agents: { worker }, envs: { workspace }, ctx }) => {
    if (ctx.state.get("migrated")) return;
    await worker.run(`Migrate ${module}, and nothing else.`, { env: workspace });
    const { status, stderr } = await workspace.exec("npm test");
    if (status !== 0) throw new Error(`${module}: its tests fail: ${stderr}`);
    ctx.state.set("migrated", true);
  },
);
// #endregion

export const migrate = flow(
  { agents: { worker: agent() }, envs: { workspace: localEnv({ needs: ["bash"] }) }, resumable: true },
  async (task, { agents: { worker }, envs: { workspace }, ctx }) => {
    // #region plan
    if (!ctx.state.has("modules")) {
      const session = await worker.spawn();
      const { modules } = await worker.run(`Which modules does this touch? Read, change nothing.\n\n${task}`, {
        session,
        env: workspace,
        outputSchema: Plan,
      });
      // The conversation as it stands now: it knows the repository, and nothing of what comes next.
      ctx.state.set("knows", session);
      // Last: it says that the plan is made.
      ctx.state.set("modules", modules);
    }
    // #endregion
    // #region loop
    for (const module of ctx.state.get<string[]>("modules", [])) {
      await one_module(module, { agents: { worker }, envs: { workspace } });
    }
    // #endregion
    // #region again
    const session = ctx.state.get<Session>("knows");
    return session && worker.run("All of them are migrated. What is left to say to a reviewer?", { session });
    // #endregion
  },
);
