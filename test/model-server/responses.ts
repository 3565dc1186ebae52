/** The OpenAI Responses dialect. */

import { contentText, list, object, string, type Json } from "./json.ts";
import { freshId, type Outlet, type Reply } from "./outlet.ts";
import { pieces, type Call, type Said, type ServedTokens, type Tool } from "./script.ts";

const CALLS: readonly unknown[] = ["function_call", "custom_tool_call", "local_shell_call", "reasoning"];

export function readResponses(body: Json): { readonly conversation: readonly Said[]; readonly tools: readonly Tool[] } {
  const input = body["input"];
  const items = typeof input === "string" ? [{ role: "user", content: input }] : list(input);
  const conversation: Said[] = [];
  for (const item of items.map(object)) {
    const { type, role } = item;
    if (typeof type === "string" && type.endsWith("_output")) {
      conversation.push({ by: "tool", text: JSON.stringify(item["output"] ?? "") });
    } else if (role === "assistant" || CALLS.includes(type)) {
      // One answer of the model comes back as several items: reasoning, text, calls.
      if (conversation.at(-1)?.by !== "assistant") {
        conversation.push({ by: "assistant", text: contentText(item["content"]) });
      }
    } else if (role === "user") {
      conversation.push({ by: "user", text: contentText(item["content"]) });
    }
  }
  const tools = list(body["tools"])
    .map(object)
    .flatMap((tool) => {
      if (tool["type"] !== "namespace") return [readTool(tool)];
      const namespace = string(tool["name"]);
      return list(tool["tools"]).map((inner) => ({ ...readTool(object(inner)), namespace }));
    });
  return { conversation, tools };
}

function readTool(tool: Json): Tool {
  return {
    name: string(tool["name"]) || string(tool["type"]),
    schema: object(tool["parameters"]),
    ...(tool["type"] === "custom" ? { custom: true } : {}),
  };
}

export async function sayResponses(reply: Reply, out: Outlet): Promise<void> {
  const { step, tokens, model } = reply;
  const output: Json[] = [
    ...(step.think === undefined
      ? []
      : [
          {
            type: "reasoning",
            id: freshId("rs_"),
            summary: [{ type: "summary_text", text: step.think }],
            encrypted_content: "c2NyaXB0ZWQ=",
          },
        ]),
    ...(step.text === undefined
      ? []
      : [
          {
            type: "message",
            id: freshId("msg_"),
            role: "assistant",
            status: "completed",
            content: [{ type: "output_text", text: step.text, annotations: [] }],
          },
        ]),
    ...reply.calls.map(callItem),
  ];
  const response = {
    id: freshId("resp_"),
    object: "response",
    created_at: 1,
    status: "completed",
    model,
    output,
    usage: usageOf(tokens),
    error: null,
    incomplete_details: null,
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
  };
  if (!reply.stream) {
    out.told = tokens;
    out.json(200, response);
    return;
  }
  let sequence = 0;
  const event = (type: string, members: Json): void =>
    out.event({ type, sequence_number: sequence++, ...members }, type);
  out.open();
  event("response.created", { response: { ...response, status: "in_progress", output: [], usage: null } });
  if (step.sseError !== undefined) {
    const { code, type, message } = step.sseError;
    const error = { code: code ?? type, message };
    event("response.failed", { response: { ...response, status: "failed", output: [], usage: null, error } });
    out.end();
    return;
  }
  for (const [index, item] of output.entries()) await sayItem(item, index, reply, out, event);
  event("response.completed", { response });
  out.told = tokens;
  out.end();
}

async function sayItem(
  item: Json,
  index: number,
  { step }: Reply,
  out: Outlet,
  event: (type: string, members: Json) => void,
): Promise<void> {
  const place = { item_id: item["id"], output_index: index };
  event("response.output_item.added", { output_index: index, item: begun(item) });
  if (item["type"] === "message") {
    const text = { ...place, content_index: 0 };
    event("response.content_part.added", { ...text, part: { type: "output_text", text: "", annotations: [] } });
    for (const delta of pieces(step)) {
      await out.piece();
      event("response.output_text.delta", { ...text, delta });
    }
    event("response.output_text.done", { ...text, text: step.text });
    event("response.content_part.done", { ...text, part: list(item["content"])[0] });
  } else if (item["type"] === "reasoning") {
    event("response.reasoning_summary_text.delta", { ...place, summary_index: 0, delta: step.think });
  } else if (item["type"] === "function_call") {
    event("response.function_call_arguments.delta", { ...place, delta: item["arguments"] });
    event("response.function_call_arguments.done", { ...place, arguments: item["arguments"] });
  }
  event("response.output_item.done", { output_index: index, item });
}

function begun(item: Json): Json {
  if (item["type"] === "message") return { ...item, content: [], status: "in_progress" };
  if (item["type"] === "function_call") return { ...item, arguments: "", status: "in_progress" };
  return item;
}

function callItem(call: Call): Json {
  const common = {
    call_id: freshId("call_"),
    name: call.name,
    status: "completed",
    ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
  };
  return call.plain === undefined
    ? { type: "function_call", id: freshId("fc_"), arguments: JSON.stringify(call.input), ...common }
    : { type: "custom_tool_call", id: freshId("ctc_"), input: call.plain, ...common };
}

function usageOf(tokens: ServedTokens): Json {
  const input = tokens.input + tokens.cacheRead;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: tokens.cacheRead },
    output_tokens: tokens.output,
    output_tokens_details: { reasoning_tokens: tokens.reasoning },
    total_tokens: input + tokens.output,
  };
}
