/** One agent works and another reviews, until the reviewer says that it is done or the budget is spent. */
import { agent, flow, localEnv, z } from "hmz/flows";

const Review = z.object({
  done: z.boolean().describe("whether the task is done, with nothing left to fix"),
  notes: z.string().describe("what is left to do or to fix, for whoever works on it next"),
});

export const rlar = flow(
  { agents: { actor: agent(), reviewer: agent() }, envs: { workspace: localEnv() }, resumable: true },
  async (task, { agents: { actor, reviewer }, envs: { workspace }, ctx }) => {
    for (;;) {
      const notes = ctx.state.get<string>("notes");
      const reviewed = notes === undefined ? "" : `\n\nThe last review of the work so far says:\n\n${notes}`;
      const said = await actor.run(`${task}${reviewed}`, { env: workspace });
      const review = await reviewer.run(
        `Review the work on this task as it stands in your working directory. Change nothing.\n\n${task}`,
        { env: workspace, outputSchema: Review },
      );
      if (review.done) {
        ctx.state.delete("notes");
        return said;
      }
      ctx.state.set("notes", review.notes);
    }
  },
);
