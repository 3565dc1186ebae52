/** Two agents take turns on one task, each reviewing and furthering the other's work, until the budget is spent. */
import { agent, flow, localEnv } from "hmz/flows";

const CHASE = `Another agent and you take turns on this task, in the same directory. Review what stands there as if
somebody else wrote it: fix what is wrong, then take the work further.`;

export const flame_chase = flow(
  { agents: { first_chaser: agent(), second_chaser: agent() }, envs: { workspace: localEnv() }, resumable: true },
  async (task, { agents: { first_chaser, second_chaser }, envs: { workspace }, ctx }) => {
    const chasers = [first_chaser, second_chaser] as const;
    let turn = ctx.state.get<0 | 1>("turn", 0);
    for (;;) {
      await chasers[turn].run(`${task}\n\n${CHASE}`, { env: workspace });
      turn = turn === 0 ? 1 : 0;
      ctx.state.set("turn", turn);
    }
  },
);
