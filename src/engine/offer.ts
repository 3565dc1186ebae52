/** A flow's own tool, made ready for a harness to call. */

import type { Tool } from "../flows/tool.ts";
import { asFlow, type Call } from "./call.ts";
import type { OfferedTool } from "./ports.ts";
import { jsonSchema } from "./schema.ts";

const NO_ARGUMENTS = Object.freeze({ type: "object", properties: {}, additionalProperties: false });

/** The tool as a harness is told of it. What it throws is the tool failing, in words the agent can act on. */
export function offered(tool: Tool, call: Call): OfferedTool {
  const { name, about, takes } = tool;
  return {
    name,
    about,
    schema: takes ? jsonSchema(takes) : NO_ARGUMENTS,
    async call(input) {
      try {
        const read = takes?.safeParse(input ?? {});
        if (read && !read.success) {
          const why = read.error.issues.map(({ path, message }) => `${path.map(String).join(".") || name}: ${message}`);
          return { text: `${name} was called wrongly: ${why.join("; ")}`, failed: true };
        }
        return { text: spoken(await asFlow(call, async () => tool.call(read?.data as never))), failed: false };
      } catch (error) {
        return { text: `${name} failed: ${error instanceof Error ? error.message : String(error)}`, failed: true };
      }
    },
  };
}

/** What the agent reads: a string as it is, `done` for nothing, anything else as JSON. */
function spoken(result: unknown): string {
  if (typeof result === "string") return result;
  if (result === undefined || result === null) return "done";
  return JSON.stringify(result) ?? String(result);
}
