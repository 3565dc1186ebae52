/** A builder works until its tests pass and a reviewer, whom it asks through a tool, has nothing left to say. */

import { agent, flow, localEnv, tool, z } from "hmz/flows";

const Verdict = z.object({ approved: z.boolean(), notes: z.string() });

export const demo = flow(
  {
    agents: { builder: agent({ needs: ["tools"] }), reviewer: agent({ permission: { local: "read" } }) },
    envs: { workspace: localEnv({ needs: ["shell"] }) },
  },
  async (task, { agents: { builder, reviewer }, envs: { workspace } }) => {
    let approved = false;

    // A function of this flow's, in front of the builder as a tool: the reviewer's turn happens inside the builder's.
    const review = tool({
      name: "review",
      about: "have the reviewer read one file and say whether it is good, or what is missing",
      takes: z.object({ path: z.string().describe("the file to have read") }),
      call: async ({ path }) => {
        const verdict = await reviewer.run(`Review ${path} for this task: ${task}`, {
          env: workspace,
          outputSchema: Verdict,
        });
        approved = verdict.approved;
        return `${approved ? "Approved" : "Sent back"}: ${verdict.notes}`;
      },
    });

    // What the builder says of its work is not believed: the flow runs the tests, and holds the turn until they pass.
    builder.onStop(async () => {
      const tests = await workspace.exec(["node", "--test"]);
      if (tests.status !== 0) return { block: true, reason: `The tests fail:\n${tests.stdout.slice(-2_000)}` };
      return approved ? {} : { block: true, reason: "The tests pass. Now call the review tool, and do what it says." };
    });

    const session = await builder.spawn();
    session.offers([review]);
    return builder.run(task, { session, env: workspace });
  },
);
