/**
 * What Claude Code writes with `--output-format stream-json`, one object a line, and what it reads. Members keep the
 * names that they have on the wire. A line of a kind that is not known here is `unknown`, never an error: each release
 * adds some.
 */

import { countOf, fieldsOf, listOf, textOf, type Fields } from "./fields.ts";

/** Tokens of one model call, as `usage` in a message has them. */
export interface WireUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
}

/** Tokens of one model, as `modelUsage` in a result has them. */
export interface WireModelUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadInputTokens: number;
  readonly cacheCreationInputTokens: number;
}

export type WireBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: Fields }
  | { readonly type: "tool_result"; readonly tool_use_id: string; readonly text: string; readonly is_error: boolean }
  | { readonly type: "unknown" };

export interface WireResult {
  readonly type: "result";
  readonly subtype: string;
  readonly is_error: boolean;
  readonly result: string;
  readonly errors: readonly string[];
  readonly stop_reason: string;
  /** `completed`, `api_error`, `aborted_streaming`, `aborted_tools`, `prompt_too_long`, …; `""` where not said. */
  readonly terminal_reason: string;
  readonly api_error_status: number | undefined;
  /** `connection_failed`, `usage_limit_reached`, …; `""` where not said. */
  readonly api_error: string;
  readonly session_id: string;
  /** By model, cumulative over the process, and over a resume and a fork. */
  readonly modelUsage: Readonly<Record<string, WireModelUsage>>;
  /** By model, since the result before; absent in older releases. */
  readonly model_usage_since_last_result: Readonly<Record<string, WireModelUsage>> | undefined;
  readonly structured_output?: unknown;
}

export type WireControlRequest =
  | {
      readonly subtype: "can_use_tool";
      readonly tool_name: string;
      readonly input: Fields;
    }
  | {
      readonly subtype: "hook_callback";
      readonly event: string;
      readonly tool_name: string;
      readonly tool_input: Fields;
    }
  | { readonly subtype: "mcp_message"; readonly server_name: string; readonly message: Fields }
  | { readonly subtype: "unknown"; readonly name: string };

/** Where a task of the background, or a sub-agent, has got to. */
export interface WireTask {
  readonly type: "task";
  readonly subtype: "task_started" | "task_progress" | "task_updated" | "task_notification";
  readonly task_id: string;
  readonly tool_use_id: string;
  readonly is_backgrounded: boolean;
  /** `completed`, `failed`, `stopped`, `killed`, …; `""` where not said. */
  readonly status: string;
  /** What a sub-agent said in the end. */
  readonly summary: string;
}

export type WireMessage =
  | {
      readonly type: "init";
      readonly session_id: string;
      readonly model: string;
      readonly permissionMode: string;
    }
  | {
      readonly type: "assistant";
      readonly id: string;
      /** The line's own, under which the CLI writes it into the conversation's file; `""` where it tells none. */
      readonly uuid: string;
      readonly model: string;
      readonly content: readonly WireBlock[];
      readonly usage: WireUsage;
      /** The tool use that started the sub-agent which said it; `""` for the agent. */
      readonly parent_tool_use_id: string;
      /** `authentication_failed`, `rate_limit`, `model_not_found`, …; `""` for an answer of the model. */
      readonly error: string;
    }
  | { readonly type: "user"; readonly content: readonly WireBlock[]; readonly parent_tool_use_id: string }
  /** The tokens of a model call, while its answer streams. */
  | {
      readonly type: "stream_usage";
      /** `""` in all but the first event of an answer. */
      readonly id: string;
      readonly model: string;
      readonly usage: Fields;
      readonly parent_tool_use_id: string;
    }
  | WireResult
  | { readonly type: "control_request"; readonly request_id: string; readonly request: WireControlRequest }
  | { readonly type: "control_cancel_request"; readonly request_id: string }
  | {
      readonly type: "control_response";
      readonly request_id: string;
      /** `undefined` for a success. */
      readonly error: string | undefined;
      readonly response: Fields;
    }
  | { readonly type: "command_lifecycle"; readonly command_uuid: string; readonly state: string }
  | WireTask
  | { readonly type: "background_tasks_changed"; readonly task_ids: readonly string[] }
  | {
      readonly type: "api_retry";
      readonly attempt: number;
      readonly max_retries: number;
      readonly error_status: number | undefined;
      readonly error: string;
    }
  | {
      readonly type: "rate_limit_event";
      readonly status: string;
      readonly resetsAt: number;
      readonly rateLimitType: string;
    }
  | { readonly type: "notification"; readonly text: string }
  | { readonly type: "permission_denied"; readonly tool_name: string; readonly message: string }
  | { readonly type: "unknown"; readonly name: string };

/** What a line of the CLI says. Never throws. */
export function parseMessage(value: unknown): WireMessage {
  const line = fieldsOf(value);
  const type = textOf(line["type"]);
  switch (type) {
    case "system":
      return parseSystem(line);
    case "assistant": {
      const message = fieldsOf(line["message"]);
      return {
        type,
        id: textOf(message["id"]),
        uuid: textOf(line["uuid"]),
        model: textOf(message["model"]),
        content: parseContent(message["content"]),
        usage: parseUsage(message["usage"]),
        parent_tool_use_id: textOf(line["parent_tool_use_id"]),
        error: textOf(line["error"]),
      };
    }
    case "user":
      return {
        type,
        content: parseContent(fieldsOf(line["message"])["content"]),
        parent_tool_use_id: textOf(line["parent_tool_use_id"]),
      };
    case "stream_event":
      return parseStreamEvent(line);
    case "result":
      return parseResult(line);
    case "control_request":
      return { type, request_id: textOf(line["request_id"]), request: parseControlRequest(fieldsOf(line["request"])) };
    case "control_cancel_request":
      return { type, request_id: textOf(line["request_id"]) };
    case "control_response": {
      const response = fieldsOf(line["response"]);
      return {
        type,
        request_id: textOf(response["request_id"]),
        error: response["subtype"] === "success" ? undefined : textOf(response["error"]) || "refused",
        response: fieldsOf(response["response"]),
      };
    }
    case "command_lifecycle":
      return { type, command_uuid: textOf(line["command_uuid"]), state: textOf(line["state"]) };
    case "rate_limit_event": {
      const info = fieldsOf(line["rate_limit_info"]);
      return {
        type,
        status: textOf(info["status"]),
        resetsAt: countOf(info["resetsAt"]),
        rateLimitType: textOf(info["rateLimitType"]),
      };
    }
    default:
      return { type: "unknown", name: type };
  }
}

function parseSystem(line: Fields): WireMessage {
  const subtype = textOf(line["subtype"]);
  switch (subtype) {
    case "init":
      return {
        type: "init",
        session_id: textOf(line["session_id"]),
        model: textOf(line["model"]),
        permissionMode: textOf(line["permissionMode"]),
      };
    case "task_started":
    case "task_progress":
    case "task_updated":
    case "task_notification":
      return {
        type: "task",
        subtype,
        task_id: textOf(line["task_id"]),
        tool_use_id: textOf(line["tool_use_id"]),
        is_backgrounded: line["is_backgrounded"] === true,
        status: textOf(line["status"]) || textOf(fieldsOf(line["patch"])["status"]),
        summary: textOf(line["summary"]),
      };
    case "background_tasks_changed":
      return {
        type: subtype,
        task_ids: listOf(line["tasks"]).map((task) => textOf(fieldsOf(task)["task_id"])),
      };
    case "api_retry":
      return {
        type: subtype,
        attempt: countOf(line["attempt"]),
        max_retries: countOf(line["max_retries"]),
        error_status: typeof line["error_status"] === "number" ? line["error_status"] : undefined,
        error: textOf(line["error"]),
      };
    case "notification":
      return { type: subtype, text: textOf(line["text"]) };
    case "permission_denied":
      return { type: subtype, tool_name: textOf(line["tool_name"]), message: textOf(line["message"]) };
    default:
      return { type: "unknown", name: `system/${subtype}` };
  }
}

function parseStreamEvent(line: Fields): WireMessage {
  const event = fieldsOf(line["event"]);
  const parent_tool_use_id = textOf(line["parent_tool_use_id"]);
  if (event["type"] === "message_start") {
    const message = fieldsOf(event["message"]);
    return {
      type: "stream_usage",
      id: textOf(message["id"]),
      model: textOf(message["model"]),
      usage: fieldsOf(message["usage"]),
      parent_tool_use_id,
    };
  }
  if (event["type"] === "message_delta") {
    return { type: "stream_usage", id: "", model: "", usage: fieldsOf(event["usage"]), parent_tool_use_id };
  }
  return { type: "unknown", name: "stream_event" };
}

function parseResult(line: Fields): WireResult {
  const since = line["model_usage_since_last_result"];
  const status = line["api_error_status"];
  return {
    type: "result",
    subtype: textOf(line["subtype"]),
    is_error: line["is_error"] === true,
    result: textOf(line["result"]),
    errors: listOf(line["errors"]).map(textOf),
    stop_reason: textOf(line["stop_reason"]),
    terminal_reason: textOf(line["terminal_reason"]),
    api_error_status: typeof status === "number" ? status : undefined,
    api_error: textOf(line["api_error"]),
    session_id: textOf(line["session_id"]),
    modelUsage: parseModelUsage(line["modelUsage"]),
    model_usage_since_last_result: since === undefined ? undefined : parseModelUsage(since),
    ...(line["structured_output"] === undefined ? {} : { structured_output: line["structured_output"] }),
  };
}

function parseModelUsage(value: unknown): Readonly<Record<string, WireModelUsage>> {
  const models: Record<string, WireModelUsage> = {};
  for (const [model, usage] of Object.entries(fieldsOf(value))) {
    const counts = fieldsOf(usage);
    models[model] = {
      inputTokens: countOf(counts["inputTokens"]),
      outputTokens: countOf(counts["outputTokens"]),
      cacheReadInputTokens: countOf(counts["cacheReadInputTokens"]),
      cacheCreationInputTokens: countOf(counts["cacheCreationInputTokens"]),
    };
  }
  return models;
}

export function parseUsage(value: unknown): WireUsage {
  const usage = fieldsOf(value);
  return {
    input_tokens: countOf(usage["input_tokens"]),
    output_tokens: countOf(usage["output_tokens"]),
    cache_read_input_tokens: countOf(usage["cache_read_input_tokens"]),
    cache_creation_input_tokens: countOf(usage["cache_creation_input_tokens"]),
  };
}

function parseControlRequest(request: Fields): WireControlRequest {
  const subtype = textOf(request["subtype"]);
  switch (subtype) {
    case "can_use_tool":
      return { subtype, tool_name: textOf(request["tool_name"]), input: fieldsOf(request["input"]) };
    case "hook_callback": {
      const input = fieldsOf(request["input"]);
      return {
        subtype,
        event: textOf(input["hook_event_name"]),
        tool_name: textOf(input["tool_name"]),
        tool_input: fieldsOf(input["tool_input"]),
      };
    }
    case "mcp_message":
      return { subtype, server_name: textOf(request["server_name"]), message: fieldsOf(request["message"]) };
    default:
      return { subtype: "unknown", name: subtype };
  }
}

function parseContent(content: unknown): readonly WireBlock[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listOf(content).map((value): WireBlock => {
    const block = fieldsOf(value);
    switch (block["type"]) {
      case "text":
        return { type: "text", text: textOf(block["text"]) };
      case "thinking":
        return { type: "thinking", thinking: textOf(block["thinking"]) };
      case "tool_use":
        return {
          type: "tool_use",
          id: textOf(block["id"]),
          name: textOf(block["name"]),
          input: fieldsOf(block["input"]),
        };
      case "tool_result":
        return {
          type: "tool_result",
          tool_use_id: textOf(block["tool_use_id"]),
          text: parseContent(block["content"])
            .flatMap((inner) => (inner.type === "text" ? [inner.text] : []))
            .join("\n"),
          is_error: block["is_error"] === true,
        };
      default:
        return { type: "unknown" };
    }
  });
}

// ── what it reads ───────────────────────────────────────────────────────────────────────────────────────────────────

/** A prompt, or a word put into the turn under way. The CLI tells by the uuid when the model has it. */
export function userLine(text: string, uuid: string): Fields {
  return { type: "user", uuid, message: { role: "user", content: text }, parent_tool_use_id: null, session_id: "" };
}

export function controlRequest(request_id: string, request: Fields): Fields {
  return { type: "control_request", request_id, request };
}

export function controlResponse(request_id: string, response: Fields): Fields {
  return { type: "control_response", response: { subtype: "success", request_id, response } };
}
