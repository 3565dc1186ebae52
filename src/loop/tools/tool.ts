/** What a tool of the loop's own is. */

import type { z } from "zod";
import type { Place } from "../../engine/ports.ts";
import type { SkillFiles } from "../skills.ts";
import type { Reach } from "./reach.ts";

/** Where a tool acts. */
export interface Workplace {
  readonly place: Place;
  readonly reach: Reach;
  readonly skills: SkillFiles;
  readonly signal: AbortSignal;
}

export interface LoopTool<S extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  /** What the model is told of it. */
  readonly about: string;
  readonly takes: S;
  /** The local permission that it needs. */
  readonly needs: "read" | "all";
  /** Whether it reads files of skills, which are read whatever the permission. */
  readonly readsSkills?: true;
  /** The field that says most about a use of it, to people. */
  readonly subject: keyof z.output<S> & string;
  /** The text that the model reads. What it throws is read by the model as the tool's failure. */
  run(input: z.output<S>, at: Workplace): Promise<string>;
}

/** Keeps the type of a tool's input in its own `run`, and forgets it outside. */
export function loopTool<S extends z.ZodObject>(tool: LoopTool<S>): LoopTool {
  return tool;
}
