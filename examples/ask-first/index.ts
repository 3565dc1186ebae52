/** Plans, asks the person whether to go on, and does the work; where nobody is there, it leaves out what is risky. */
import { agent, flow, localEnv, outworlder, z } from "hmz/flows";

// #region decision
const Decision = z.object({
  go: z.boolean().default(true).describe("whether the plan is carried out"),
  remarks: z.string().default("Change no file format and no public name.").describe("what to mind"),
});
// #endregion

export const ask_first = flow(
  {
    agents: { worker: agent({ needs: ["ask_user"] }), person: outworlder() },
    envs: { workspace: localEnv() },
  },
  async (task, { agents: { worker, person }, envs: { workspace } }) => {
    // #region ask-user
    // What the worker asks in the middle of a turn; `undefined` tells it that nobody answers.
    worker.onAskUser(async ({ question, options }) => {
      if (person.away) return {};
      return { answer: await person.run([question, ...options.map((option) => `- ${option}`)].join("\n")) };
    });
    // #endregion
    const session = await worker.spawn();
    const plan = await worker.run(`Plan this, and change nothing yet:\n\n${task}`, { session, env: workspace });
    // #region decide
    // Away, this is the schema's defaults at once: every field has one.
    const { go, remarks } = await person.run(`${plan}\n\nGo on?`, { outputSchema: Decision });
    if (!go) return "left as it was";
    return worker.run(`Carry the plan out. ${remarks}`, { session, env: workspace });
    // #endregion
  },
);
