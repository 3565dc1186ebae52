/** A builder that asks an expert, has a flow check its work, and reads the project's own rules, all as tools. */
import { agent, flow, load, localEnv, tool, z } from "hmz/flows";

export const consult = flow(
  {
    agents: { builder: agent({ needs: ["tools"] }), expert: agent({ permission: { local: "read" } }) },
    envs: { workspace: localEnv({ needs: ["files"] }) },
  },
  async (task, { agents: { builder, expert }, envs: { workspace } }) => {
    // #region function
    const rules = tool({
      name: "rules",
      about: "read the rules that code in this project follows",
      call: () => workspace.readText("RULES.md"),
    });
    // #endregion

    // #region agent
    // One conversation with the expert for the whole task: it remembers what it was asked before.
    const asking = await expert.spawn();
    const ask = tool({
      name: "ask_expert",
      about: "ask an expert on this code base one question, and wait for the answer",
      takes: z.object({ question: z.string().describe("with the file and the line that it is about") }),
      call: ({ question }) => expert.run(question, { session: asking, env: workspace }),
    });
    // #endregion

    // #region flow
    const check = tool({
      name: "check",
      about: "have the work checked by somebody who has not seen it",
      call: async () => {
        const checks = await load(":checks");
        return checks(task, { agents: { reader: expert }, envs: { workspace } });
      },
    });
    // #endregion

    // #region offers
    const session = await builder.spawn();
    session.offers([rules, ask, check]);
    return builder.run(`${task}\n\nRead the rules first, and have your work checked before you end.`, {
      session,
      env: workspace,
    });
    // #endregion
  },
);

const Findings = z.object({ findings: z.array(z.string()) });

/** Reads the uncommitted changes, and says what is wrong with them. */
export const checks = flow(
  { agents: { reader: agent({ permission: { local: "read" } }) }, envs: { workspace: localEnv() }, hidden: true },
  (task, { agents: { reader }, envs: { workspace } }) =>
    reader.run(`List what is wrong in the uncommitted changes, which are to do this:\n\n${task}`, {
      env: workspace,
      outputSchema: Findings,
    }),
);
