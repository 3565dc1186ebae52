/** Which call the running code belongs to, and what `load` and a call reach the engine by. Not exported to flows. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Outworlder } from "./agent.ts";
import type { AnyFlow, Flow } from "./flow.ts";

/** The call that is under way, as the flows it calls see it. */
export interface Caller {
  call(flow: AnyFlow, task: string, options: CallArguments): Promise<unknown>;
  load(ref: string): Promise<Flow>;
  newOutworlder(): Outworlder;
}

/** What a call is given, before anything of it was checked. */
export interface CallArguments {
  readonly agents?: Readonly<Record<string, unknown>> | undefined;
  readonly envs?: Readonly<Record<string, unknown>> | undefined;
  readonly params?: unknown;
  readonly budget?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** The call that the running code belongs to. */
export const asking = new AsyncLocalStorage<Caller>();

let outsideAnyRun: ((ref: string) => Promise<Flow>) | undefined;

/** What `load` does where no flow is asking. Set by whoever can find flows; without it `load` is refused. */
export function loadsOutsideAnyRun(load: (ref: string) => Promise<Flow>): void {
  outsideAnyRun = load;
}

export function loaderOutsideAnyRun(): ((ref: string) => Promise<Flow>) | undefined {
  return outsideAnyRun;
}
