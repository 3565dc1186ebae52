/** The Anthropic Messages dialect. */

import { contentText, list, object, string, type Json } from "./json.ts";
import { freshId, type Outlet, type Reply } from "./outlet.ts";
import { pieces, type Said, type Tool } from "./script.ts";

export function readMessages(body: Json): { readonly conversation: readonly Said[]; readonly tools: readonly Tool[] } {
  const conversation = list(body["messages"]).flatMap((message): readonly Said[] => {
    const { role, content } = object(message);
    const text = contentText(content);
    if (role === "assistant") return [{ by: "assistant", text }];
    const results = list(content).filter((block) => object(block)["type"] === "tool_result");
    return [
      ...(results.length > 0 ? [{ by: "tool", text: JSON.stringify(results) } as const] : []),
      ...(text === "" ? [] : [{ by: "user", text } as const]),
    ];
  });
  const tools = list(body["tools"]).map((tool) => ({
    name: string(object(tool)["name"]),
    schema: object(object(tool)["input_schema"]),
  }));
  return { conversation, tools };
}

export function messagesError(error: unknown): unknown {
  return { type: "error", error, request_id: "req_scripted" };
}

export async function sayMessages(reply: Reply, out: Outlet): Promise<void> {
  const { step, calls, tokens, model } = reply;
  const usage = {
    input_tokens: tokens.input,
    cache_creation_input_tokens: tokens.cacheWrite,
    cache_read_input_tokens: tokens.cacheRead,
    output_tokens: tokens.output,
    service_tier: "standard",
  };
  const content: Json[] = [
    ...(step.think === undefined ? [] : [{ type: "thinking", thinking: step.think, signature: "c2NyaXB0ZWQ=" }]),
    ...(step.text === undefined ? [] : [{ type: "text", text: step.text }]),
    ...calls.map((call) => ({ type: "tool_use", id: freshId("toolu_"), name: call.name, input: call.input })),
  ];
  const stop = { stop_reason: calls.length > 0 ? "tool_use" : "end_turn", stop_sequence: null };
  const message = { id: freshId("msg_"), type: "message", role: "assistant", model };
  if (!reply.stream) {
    out.told = tokens;
    out.json(200, { ...message, content, ...stop, usage });
    return;
  }
  const event = (type: string, members: Json): void => out.event({ type, ...members }, type);
  out.open();
  event("message_start", {
    message: {
      ...message,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usage, output_tokens: 1 },
    },
  });
  out.told = { ...tokens, output: 1, reasoning: 0 };
  if (step.sseError !== undefined) {
    event("error", { error: step.sseError });
    out.end();
    return;
  }
  for (const [index, block] of content.entries()) {
    event("content_block_start", { index, content_block: emptied(block) });
    if (block["type"] === "text") {
      for (const text of pieces(step)) {
        await out.piece();
        event("content_block_delta", { index, delta: { type: "text_delta", text } });
      }
    } else if (block["type"] === "thinking") {
      event("content_block_delta", { index, delta: { type: "thinking_delta", thinking: block["thinking"] } });
      event("content_block_delta", { index, delta: { type: "signature_delta", signature: block["signature"] } });
    } else {
      const partial = JSON.stringify(block["input"]);
      event("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: partial } });
    }
    event("content_block_stop", { index });
  }
  event("message_delta", { delta: stop, usage });
  out.told = tokens;
  event("message_stop", {});
  out.end();
}

function emptied(block: Json): Json {
  if (block["type"] === "text") return { type: "text", text: "" };
  if (block["type"] === "thinking") return { type: "thinking", thinking: "", signature: "" };
  return { ...block, input: {} };
}
