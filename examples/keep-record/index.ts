/** Runs a flow from a program, and keeps what tells why it failed. */
import type { Hmz, RunOptions } from "hmz";
import type { AnyFlow } from "hmz/flows";

// #region keep
export async function runAndKeep(hmz: Hmz, flow: string | AnyFlow, task: string, options: RunOptions) {
  const run = hmz.run(flow, task, options);
  try {
    return { result: await run.wait() };
  } catch (error) {
    // Refused before it began: there is no record of it.
    if (run.epic === undefined) throw error;
    const { file: archive } = await hmz.epics.export(run.epic);
    const { file: trace } = await hmz.epics.trace(run.epic, { file: "failed.trace.json", force: true });
    return { error, archive, trace };
  }
}
// #endregion
