/** Making an outworlder that the flow itself answers for. */

import type { Outworlder as OutworlderView } from "./agent.ts";
import { asking } from "./ambient.ts";
import { FlowRuntimeError } from "./errors.ts";

export type Outworlder = OutworlderView;

export const Outworlder = {
  /** An outworlder answered by the flow, through `onOutworlderRun`; away until that hook hangs. */
  new(): OutworlderView {
    const caller = asking.getStore();
    if (!caller) throw new FlowRuntimeError("Outworlder.new() is called from inside a run, by the flow that answers");
    return caller.newOutworlder();
  },
};
