/** A role's callbacks as a driver has them: each called as the flow, with the context and the session of its call. */

import type { Callbacks, RunDone } from "../flows/callbacks.ts";

/** What the engine adds to whatever a callback is told. */
export type Around = Pick<RunDone, "ctx" | "session">;

type Bound<List> = List extends readonly ((told: infer Told) => infer R)[]
  ? readonly ((told: Omit<Told, keyof Around>) => R)[]
  : never;

/** The lists around model and tool calls. What follows a turn is the engine's to call. */
export type BoundCallbacks = {
  readonly [K in Exclude<keyof Callbacks, "afterRun">]?: Bound<NonNullable<Callbacks[K]>>;
};

const LISTS = ["beforeModel", "afterModel", "beforeTool", "afterTool"] as const;
const NONE: BoundCallbacks = Object.freeze({});

/** @param as Calls one as the flow, with the context and the session of its call. */
export function bound(callbacks: Callbacks, as: (call: (around: Around) => unknown) => unknown): BoundCallbacks {
  const lists = LISTS.filter((list) => callbacks[list]?.length);
  if (lists.length === 0) return NONE;
  return Object.fromEntries(
    lists.map((list) => {
      const fns = callbacks[list] as readonly ((told: unknown) => unknown)[];
      return [list, fns.map((fn) => (told: object) => as((around) => fn({ ...told, ...around })))];
    }),
  ) as BoundCallbacks;
}
