/** What runs that were killed left behind, and the note by which this one's would be found. */

import type { Home } from "../home/paths.ts";
import { sweepCopies } from "./drivers.ts";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Ends whatever runs of this user left on this machine when they were killed, then notes that this one goes. Returns
 * what takes the note away. Never fails: a machine whose directory cannot be written runs flows all the same.
 */
export async function noteRun(env: Env, home: Home): Promise<() => void> {
  const [{ machineDir }, { goneRuns, noteGoing }, { removeLostShelves }, { processMark, sweep }] = await Promise.all([
    import("../home/paths.ts"),
    import("../home/going.ts"),
    import("../home/kept.ts"),
    import("../process/tree.ts"),
  ]);
  await sweepCopies(home);
  try {
    const machine = machineDir(env);
    removeLostShelves(machine);
    for (const { mark, forget } of goneRuns(machine)) {
      if (mark !== "") await sweep(mark);
      forget();
    }
    return noteGoing(machine, processMark);
  } catch {
    return () => {};
  }
}
