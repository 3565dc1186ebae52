/** A function of the flow's own, put in front of an agent as a tool. */

import type { z } from "zod";

/**
 * What a role declares in `tools`, or a session offers with `offers`.
 *
 * The agent reaches for it by `name`, knowing of it only what `about` and the schema of `takes` say. `call` runs in the
 * flow's process, as the flow, and the turn waits for it: a string is what the agent reads, `undefined` reads `done`,
 * anything else is JSON. What it throws is answered to the agent as the tool failing; the turn goes on.
 */
export interface Tool<S extends z.ZodObject | undefined = z.ZodObject | undefined> {
  readonly name: string;
  readonly about: string;
  readonly takes?: S;
  // A method, so that a tool of one schema is also a `Tool` of any: its input was validated by `takes` before.
  call(input: S extends z.ZodObject ? z.output<S> : undefined): unknown;
}

/** A tool, frozen; its `call` is given what `takes` made of the agent's arguments, or nothing without `takes`. */
export function tool<S extends z.ZodObject | undefined = undefined>(declared: {
  readonly name: string;
  readonly about: string;
  readonly takes?: S;
  readonly call: (input: S extends z.ZodObject ? z.output<S> : undefined) => unknown;
}): Tool<S> {
  return Object.freeze({ ...declared });
}

/** Whether a value has a tool's shape. */
export function isTool(value: unknown): value is Tool {
  if (typeof value !== "object" || value === null) return false;
  const { name, about, call } = value as Partial<Tool>;
  return typeof name === "string" && name !== "" && typeof about === "string" && typeof call === "function";
}
