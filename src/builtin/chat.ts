/** A conversation with one agent. */
import { agent, flow, HarnessError, localEnv, outworlder } from "hmz/flows";

export const chat = flow(
  { agents: { assistant: agent(), human: outworlder() }, envs: { workspace: localEnv() } },
  async (task, { agents: { assistant, human }, envs: { workspace } }) => {
    const session = await assistant.spawn();
    // The first turn's failure ends the run: an agent that cannot take it will hardly take the next.
    let said = await assistant.run(task, { session, env: workspace });
    while (!human.away) {
      const line = await human.run(said);
      if (line.trim() === "") break;
      try {
        said = await assistant.run(line, { session, env: workspace });
      } catch (error) {
        if (!(error instanceof HarnessError)) throw error;
        said = `The turn failed: ${error.message}`;
      }
    }
    return said;
  },
);
