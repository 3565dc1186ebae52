/** How a flow's params are read. */

import type { z } from "zod";
import { ParamsError } from "../flows/errors.ts";

/**
 * The params of a flow, from a mapping. Where it does not validate, each value whose field failed and which is a string
 * is read as JSON, where it is JSON, and the mapping is validated again: `rounds=5` is a number then.
 *
 * @throws ParamsError
 */
export function readParams(ref: string, schema: z.ZodObject, given: unknown): Record<string, unknown> {
  if (given === undefined) given = {};
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new ParamsError(`${ref}: params=${printed(given)} is not an object of params`);
  }
  const first = parsed(ref, schema, given);
  if (first.success) return first.data;
  const failed = new Set(first.error.issues.map((issue) => String(issue.path[0])));
  const reread = Object.entries(given).map(([key, value]): [string, unknown] => [
    key,
    failed.has(key) && typeof value === "string" ? jsonOr(value) : value,
  ]);
  const second = parsed(ref, schema, Object.fromEntries(reread));
  if (second.success) return second.data;
  throw new ParamsError(`${ref}: ${explained(second.error, Object.keys(schema.shape))}`, { cause: second.error });
}

function parsed(ref: string, schema: z.ZodObject, given: object): z.ZodSafeParseResult<Record<string, unknown>> {
  try {
    return schema.safeParse(given);
  } catch (error) {
    // A schema with asynchronous checks, or a check of the flow's that throws.
    throw new ParamsError(`${ref}: its params cannot be checked: ${(error as Error).message}`, { cause: error });
  }
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** One line: each field that failed, and why. */
function explained(error: z.ZodError, known: readonly string[]): string {
  return error.issues
    .map((issue) => {
      if (issue.code === "unrecognized_keys") {
        const strange = issue.keys.map((key) => `'${key}'`).join(", ");
        return `there is no param ${strange}; ${known.length > 0 ? `its params are ${known.join(", ")}` : "it has no params"}`;
      }
      return issue.path.length > 0 ? `${issue.path.map(String).join(".")}: ${issue.message}` : issue.message;
    })
    .join("; ");
}

function printed(value: unknown): string {
  return JSON.stringify(value) ?? typeof value;
}
