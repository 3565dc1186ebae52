/** The same task for one session, again and again, until the budget is spent. */
import { agent, flow, localEnv, type Session, StateNotSerializable } from "hmz/flows";

export const stateful_ralph = flow(
  { agents: { agent: agent() }, envs: { workspace: localEnv() }, resumable: true },
  async (task, { agents, envs, ctx }) => {
    const session = ctx.state.get<Session>("session") ?? (await agents.agent.spawn());
    for (;;) {
      await agents.agent.run(task, { session, env: envs.workspace });
      try {
        ctx.state.set("session", session);
      } catch (error) {
        // Not every harness can keep a conversation; with one that cannot, a resumed run begins another.
        if (!(error instanceof StateNotSerializable)) throw error;
      }
    }
  },
);
