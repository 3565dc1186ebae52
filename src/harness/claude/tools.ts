/** The flow's own tools, as an MCP server whose messages go through the CLI's own pipes: no socket, no program. */

import type { OfferedTool } from "../../engine/ports.ts";
import { fieldsOf, textOf, type Fields } from "./fields.ts";

/** The server's name; the CLI calls its tools `mcp__humanize__<name>`. */
export const FLOW_SERVER = "humanize";

export function isFlowTool(name: string): boolean {
  return name.startsWith(`mcp__${FLOW_SERVER}__`);
}

const PROTOCOL = "2025-06-18";

/** The answer to one JSON-RPC message; one to a notification too, for the CLI waits for it. */
export async function answerMcp(message: Fields, tools: readonly OfferedTool[]): Promise<Fields> {
  const id = message["id"] ?? 0;
  const params = fieldsOf(message["params"]);
  const result = (result: Fields): Fields => ({ jsonrpc: "2.0", id, result });
  const method = textOf(message["method"]);
  if (method.startsWith("notifications/")) return result({});
  switch (method) {
    case "initialize":
      return result({
        protocolVersion: textOf(params["protocolVersion"]) || PROTOCOL,
        capabilities: { tools: {} },
        serverInfo: { name: FLOW_SERVER, version: "1" },
      });
    case "ping":
      return result({});
    case "tools/list":
      return result({
        tools: tools.map(({ name, about, schema }) => ({
          name,
          description: about,
          inputSchema: schema,
          // Else the model would have to search for them first.
          _meta: { "anthropic/alwaysLoad": true },
        })),
      });
    case "tools/call": {
      const name = textOf(params["name"]);
      const tool = tools.find((tool) => tool.name === name);
      if (tool === undefined) return failure(id, -32602, `no tool ${name}`);
      const { text, failed } = await tool.call(params["arguments"] ?? {});
      return result({ content: [{ type: "text", text }], isError: failed });
    }
    default:
      return failure(id, -32601, `no method ${method}`);
  }
}

function failure(id: unknown, code: number, message: string): Fields {
  return { jsonrpc: "2.0", id, error: { code, message } };
}
