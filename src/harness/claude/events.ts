/** What Claude Code says, as the events of a turn. */

import type { HarnessEvent } from "../../engine/events.ts";
import type { Fields } from "./fields.ts";
import { textOf } from "./fields.ts";
import type { WireMessage, WireResult } from "./protocol.ts";

export type Told =
  | { readonly kind: "event"; readonly event: HarnessEvent }
  | { readonly kind: "subagent-started"; readonly subagent: string; readonly task: string }
  | { readonly kind: "subagent-stopped"; readonly subagent: string; readonly said: string };

/** The tools that start a sub-agent: the name changed. */
const SUBAGENT_TOOLS = new Set(["Agent", "Task"]);

interface Subagent {
  readonly name: string;
  readonly about: string;
  /** Whether its tool gave its result before it was done. */
  background: boolean;
  said: string;
}

/** Follows one turn. */
export class Narrator {
  readonly #subagents = new Map<string, Subagent>();
  /** The tools in use, by the id of the use. */
  readonly #tools = new Map<string, string>();
  /** The agent's own last text. */
  lastText = "";

  tell(message: WireMessage): readonly Told[] {
    switch (message.type) {
      case "assistant":
        return this.#assistant(message);
      case "user":
        return message.content.flatMap((block) =>
          block.type === "tool_result"
            ? [...this.#came(block, message.parent_tool_use_id), ...this.#resultOf(block.tool_use_id, block.text)]
            : [],
        );
      case "task": {
        const subagent = this.#subagents.get(message.tool_use_id);
        if (subagent === undefined) return [];
        if (message.subtype === "task_started") subagent.background = message.is_backgrounded;
        if (message.subtype !== "task_notification") return [];
        // Older releases give the task's name in place of a report; the tool's own result has that.
        const report = message.summary === subagent.about ? "" : message.summary;
        if (report === "" && subagent.said === "" && !subagent.background) return [];
        return this.#stopped(message.tool_use_id, report || subagent.said);
      }
      case "api_retry":
        return notice(
          `the model's API failed (${message.error_status ?? message.error}); try ${message.attempt} of ${message.max_retries}`,
        );
      case "rate_limit_event":
        return message.status === "allowed" || message.status === ""
          ? []
          : notice(`rate limit: ${message.status}${message.rateLimitType === "" ? "" : `, ${message.rateLimitType}`}`);
      case "permission_denied":
        return notice(`${message.tool_name} was refused: ${oneLine(message.message, 200)}`);
      default:
        return [];
    }
  }

  /** The last word of the turn. */
  answer(result: WireResult): string {
    return result.result === "" ? this.lastText : result.result;
  }

  #assistant(message: Extract<WireMessage, { type: "assistant" }>): readonly Told[] {
    // It stands for a failed model call; the turn's own error says what it says.
    if (message.error !== "") return [];
    const whose = message.parent_tool_use_id;
    const by = whose === "" ? {} : { whose };
    return message.content.flatMap((block): readonly Told[] => {
      if (block.type === "text") {
        if (block.text === "") return [];
        const subagent = this.#subagents.get(whose);
        if (subagent !== undefined) subagent.said = block.text;
        else if (whose === "") this.lastText = block.text;
        if (message.model === "<synthetic>") return notice(block.text);
        return [event({ kind: "text", text: block.text, ...by })];
      }
      if (block.type === "thinking") {
        return block.thinking === "" ? [] : [event({ kind: "reasoning", text: block.thinking, ...by })];
      }
      if (block.type !== "tool_use") return [];
      const { id, name, input } = block;
      this.#tools.set(id, name);
      const used = event({ kind: "tool", text: toolLine(name, input), tool: name, input, use: id, ...by });
      if (!SUBAGENT_TOOLS.has(name)) return [used];
      const subagent = textOf(input["subagent_type"]) || "general-purpose";
      const task = textOf(input["prompt"]) || textOf(input["description"]);
      const about = textOf(input["description"]) || task;
      this.#subagents.set(id, { name: subagent, about, background: false, said: "" });
      return [
        used,
        event({ kind: "subagent", text: oneLine(`${subagent}: ${about}`, LINE), whose: id }),
        { kind: "subagent-started", subagent, task },
      ];
    });
  }

  /** What came of a tool: why it failed, the first line of what a command or a tool of the flow's own said. */
  #came(result: ToolResult, whose: string): readonly Told[] {
    const { tool_use_id: use, is_error: failed } = result;
    const tool = this.#tools.get(use);
    if (tool === undefined) return [];
    this.#tools.delete(use);
    const telling = failed || tool === "Bash" || tool.startsWith("mcp__");
    // The reason of a refusal is marked up for the model.
    const text = telling ? oneLine(firstLine(result.text.replace(/<\/?tool_use_error>/g, "")), LINE) : "";
    return [event({ kind: "tool-ends", text, tool, use, failed, ...(whose === "" ? {} : { whose }) })];
  }

  #resultOf(use: string, text: string): readonly Told[] {
    const subagent = this.#subagents.get(use);
    if (subagent === undefined || subagent.background) return [];
    // Older releases put remarks for the agent after the report.
    return this.#stopped(use, subagent.said || text.replace(/\nagentId: [^]*$/, ""));
  }

  #stopped(use: string, said: string): readonly Told[] {
    const subagent = this.#subagents.get(use);
    if (subagent === undefined) return [];
    this.#subagents.delete(use);
    return [
      event({ kind: "subagent-ends", text: oneLine(`${subagent.name}: ${said}`, LINE), whose: use }),
      { kind: "subagent-stopped", subagent: subagent.name, said },
    ];
  }
}

type ToolResult = Extract<Extract<WireMessage, { type: "user" }>["content"][number], { type: "tool_result" }>;

function firstLine(text: string): string {
  return text.trim().split(/[\r\n]+/)[0] ?? "";
}

function event(event: HarnessEvent): Told {
  return { kind: "event", event };
}

function notice(text: string): readonly Told[] {
  return [event({ kind: "notice", text: oneLine(text, 400) })];
}

/** How long a line about a tool may be. */
const LINE = 120;

/** The members that say what a tool was given, the most telling first. */
const TELLING = [
  "command",
  "file_path",
  "path",
  "pattern",
  "query",
  "url",
  "description",
  "prompt",
  "skill",
  "question",
];

/** One line for people: the tool and what it was given, at most 120 characters. */
export function toolLine(tool: string, input: Fields): string {
  const name = tool.replace(/^mcp__humanize__/, "");
  const telling = TELLING.map((member) => input[member]).find((value) => typeof value === "string" && value !== "");
  const given = typeof telling === "string" ? telling : Object.keys(input).length === 0 ? "" : JSON.stringify(input);
  return oneLine(given === "" ? name : `${name} ${given}`, LINE);
}

function oneLine(text: string, limit: number): string {
  const line = text
    .slice(0, limit * 4)
    .replaceAll(/\s+/g, " ")
    .trim();
  if (line.length <= limit && text.length <= limit * 4) return line;
  // Cut between characters, not inside one.
  return `${Array.from(line)
    .slice(0, limit - 1)
    .join("")
    .slice(0, limit - 1)
    .replace(/[\uD800-\uDBFF]$/, "")}…`;
}
