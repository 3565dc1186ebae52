/** The OpenAI Chat Completions dialect. */

import { contentText, list, object, string, type Json } from "./json.ts";
import { freshId, type Outlet, type Reply } from "./outlet.ts";
import { pieces, type Said, type Tool } from "./script.ts";

export function readChat(body: Json): { readonly conversation: readonly Said[]; readonly tools: readonly Tool[] } {
  const conversation = list(body["messages"]).flatMap((message): readonly Said[] => {
    const { role, content } = object(message);
    const text = contentText(content);
    return role === "user" || role === "assistant" || role === "tool" ? [{ by: role, text }] : [];
  });
  const tools = list(body["tools"]).map((tool) => {
    const { name, parameters } = object(object(tool)["function"]);
    return { name: string(name), schema: object(parameters) };
  });
  return { conversation, tools };
}

export async function sayChat(reply: Reply, out: Outlet): Promise<void> {
  const { step, tokens, model } = reply;
  const prompt = tokens.input + tokens.cacheRead;
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: tokens.output,
    total_tokens: prompt + tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cacheRead },
    completion_tokens_details: { reasoning_tokens: tokens.reasoning },
  };
  const calls = reply.calls.map((call) => ({
    id: freshId("call_"),
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.input) },
  }));
  const finish = calls.length > 0 ? "tool_calls" : "stop";
  const common = { id: freshId("chatcmpl-"), created: 1, model };
  if (!reply.stream) {
    const message = {
      role: "assistant",
      content: step.text ?? null,
      ...(step.think === undefined ? {} : { reasoning_content: step.think }),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
    out.told = tokens;
    out.json(200, {
      ...common,
      object: "chat.completion",
      choices: [{ index: 0, message, finish_reason: finish }],
      usage,
    });
    return;
  }
  const chunk = (delta: Json, finish_reason: string | null = null): void =>
    out.event({ ...common, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
  out.open();
  chunk({ role: "assistant", content: "" });
  if (step.sseError !== undefined) {
    out.event({ error: step.sseError });
    out.end();
    return;
  }
  if (step.think !== undefined) chunk({ reasoning_content: step.think });
  for (const content of step.text === undefined ? [] : pieces(step)) {
    await out.piece();
    chunk({ content });
  }
  for (const [index, call] of calls.entries()) chunk({ tool_calls: [{ index, ...call }] });
  chunk({}, finish);
  out.event({ ...common, object: "chat.completion.chunk", choices: [], usage });
  out.told = tokens;
  out.event("[DONE]");
  out.end();
}
