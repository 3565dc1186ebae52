/** A flow's own tools and command lines, made ready for a harness. */

import type { Cli } from "../flows/command-line.ts";
import type { Tool } from "../flows/tool.ts";
import { asFlow, type Call } from "./call.ts";
import type { Cancellation } from "./cancellation.ts";
import type { OfferedTool, ShelvedCli } from "./ports.ts";
import { jsonSchema } from "./schema.ts";

const NO_ARGUMENTS = Object.freeze({ type: "object", properties: {}, additionalProperties: false });

/**
 * The tool as a harness is told of it. What it throws is the tool failing, in words the agent can act on.
 *
 * @param turn What the tool's own turns and calls end with: nobody waits for them any more.
 */
export function offered(tool: Tool, call: Call, turn: Cancellation): OfferedTool {
  const { name, about, takes } = tool;
  return {
    name,
    about,
    schema: takes ? jsonSchema(takes) : NO_ARGUMENTS,
    async call(input) {
      try {
        const read = await takes?.safeParseAsync(input ?? {});
        if (read && !read.success) {
          const why = read.error.issues.map(({ path, message }) => `${path.map(String).join(".") || name}: ${message}`);
          return { text: `${name} was called wrongly: ${why.join("; ")}`, failed: true };
        }
        return { text: spoken(await asFlow(call, async () => tool.call(read?.data as never), turn)), failed: false };
      } catch (error) {
        return { text: `${name} failed: ${said(error)}`, failed: true };
      }
    },
  };
}

/** The command line as a harness is told of it, run as a tool is. */
export function shelved(cli: Cli, call: Call, turn: Cancellation): ShelvedCli {
  const { name, about } = cli;
  return {
    name,
    about,
    async run(argv) {
      try {
        return await asFlow(call, async () => cli.run(argv), turn);
      } catch (error) {
        return { status: 1, stdout: "", stderr: `${name}: ${said(error)}\n` };
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

function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
