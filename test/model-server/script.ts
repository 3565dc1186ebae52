/**
 * The language in which a prompt says what the model will answer to it.
 *
 * A prompt holds `SCRIPT[step, step, …]TPIRCS`, a JSON array. Step k answers the k-th model call after that prompt, so
 * the server keeps no conversation: one serves any number of agents, and a script survives a resume and a fork. Scripts
 * nest: a sub-agent's prompt may hold its own inside the tool call that starts it.
 */

import { list, object, string, type Json } from "./json.ts";

/** A call of one of the agent's own tools. */
export type ScriptedCall =
  /** The agent's shell tool, whatever it is called. */
  | { readonly sh: string }
  /** The agent's file-writing tool: path, content. */
  | { readonly write: readonly [string, string] }
  /** A tool by its own name. */
  | { readonly tool: string; readonly input?: Json }
  /** A tool that the flow offers, whatever the harness puts before its name. */
  | { readonly offered: string; readonly input?: Json };

/** One answer of the model, or one way not to give it. Every member may stand with every other. */
export interface Step {
  readonly text?: string;
  /** Reasoning, before the text. */
  readonly think?: string;
  readonly sh?: string;
  readonly write?: readonly [string, string];
  readonly tool?: string;
  readonly offered?: string;
  /** Of `tool` and `offered`. */
  readonly input?: Json;
  /** Several calls in one answer. */
  readonly calls?: readonly ScriptedCall[];
  readonly usage?: Partial<ServedTokens>;
  /** The text is streamed in so many pieces (2), so many milliseconds apart (0). */
  readonly chunks?: number;
  readonly chunkMs?: number;
  /** Milliseconds before anything is sent. */
  readonly delay?: number;
  /** Never answers. */
  readonly hang?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** An HTTP error. */
  readonly status?: number;
  readonly type?: string;
  readonly code?: string;
  readonly message?: string;
  /** Seconds. */
  readonly retryAfter?: number;
  /** The connection is closed before any byte, after the headers, or after the first piece of text. */
  readonly drop?: "before" | "headers" | "mid";
  /** An error event inside a stream that began well. */
  readonly sseError?: { readonly type: string; readonly message: string; readonly code?: string };
  /** The step stands for the first so many tries; after them the next one answers. */
  readonly times?: number;
}

export interface ServedTokens {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Part of the output. */
  readonly reasoning: number;
}

export const USUAL_TOKENS: ServedTokens = { input: 100, output: 20, cacheRead: 30, cacheWrite: 10, reasoning: 5 };

/** What a model call past the end of its script, or without one, is answered. */
export const UNSCRIPTED = "NOTHING-SCRIPTED";

/** One message of the conversation, whatever the dialect. */
export interface Said {
  readonly by: "user" | "assistant" | "tool";
  readonly text: string;
}

/** A tool on offer, whatever the dialect. */
export interface Tool {
  readonly name: string;
  readonly schema: Json;
  /** Takes text in place of arguments. */
  readonly custom?: boolean;
  readonly namespace?: string;
}

export interface Call {
  readonly name: string;
  readonly input: Json;
  /** In place of `input`, for a custom tool. */
  readonly plain?: string;
  readonly namespace?: string;
}

const OPENS = "SCRIPT";
const CLOSES = "TPIRCS";

/** The text that a prompt carries its script in. */
export function scripted(steps: readonly Step[]): string {
  return `${OPENS}${JSON.stringify(steps)}${CLOSES}`;
}

/** The scripts at the top level of a text: brackets inside strings are no brackets. */
export function scriptsIn(text: string): readonly string[] {
  const found: string[] = [];
  for (let at = text.indexOf(`${OPENS}[`); at >= 0; at = text.indexOf(`${OPENS}[`, at)) {
    const start = at + OPENS.length;
    const end = closing(text, start);
    if (end < 0 || !text.startsWith(CLOSES, end + 1)) {
      at = start;
      continue;
    }
    found.push(text.slice(start, end + 1));
    at = end + 1 + CLOSES.length;
  }
  return found;
}

function closing(text: string, start: number): number {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === "\\") at++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "[" || char === "{") depth++;
    else if ((char === "]" || char === "}") && --depth === 0) return at;
  }
  return -1;
}

/** Which step of the conversation's last script is due, and where it stands; `undefined` where there is no script. */
export function dueStep(
  conversation: readonly Said[],
): { readonly steps: readonly Step[]; readonly at: number; readonly script: string } | undefined {
  for (let from = conversation.length - 1; from >= 0; from--) {
    const said = conversation[from];
    if (said?.by !== "user") continue;
    const script = scriptsIn(said.text).at(-1);
    if (script === undefined) continue;
    const at = conversation.slice(from + 1).filter((later) => later.by === "assistant").length;
    return { steps: readSteps(script), at, script };
  }
  return undefined;
}

function readSteps(script: string): readonly Step[] {
  try {
    // A scripted step is written by our own tests, so its fields are taken as they stand.
    return list(JSON.parse(script)).map((step) => object(step) as Step);
  } catch (error) {
    return [{ status: 400, message: `the prompt's script is no JSON: ${String(error)}` }];
  }
}

const SHELLS =
  /^(bash|shell|exec_command|shell_command|local_shell|run_shell_command|run_terminal_cmd|run_terminal_command|execute|exec|terminal|run_command)$/i;
const WRITERS = /^(write|write_file|writefile|create_file|file_write|str_replace_editor)$/i;

/** The tool calls of a step, fitted to the tools on offer. */
export function callsOf(step: Step, tools: readonly Tool[]): readonly Call[] {
  return (step.calls ?? [step as Partial<ScriptedCall>]).flatMap((call) => fitted(object(call), tools));
}

function fitted(call: Json, tools: readonly Tool[]): readonly Call[] {
  if (typeof call["sh"] === "string") {
    const tool = tools.find((tool) => SHELLS.test(tool.name)) ?? { name: "bash", schema: {} };
    return [using(tool, argumentsFor(tool.schema, [[["command", "cmd", "script"], call["sh"]]]), call["sh"])];
  }
  if (Array.isArray(call["write"])) {
    const tool = tools.find((tool) => WRITERS.test(tool.name)) ?? { name: "write", schema: {} };
    const [path, content] = call["write"];
    const wanted: Wanted = [
      [["file_path", "filePath", "path", "absolute_path"], path],
      [["content", "file_text", "contents"], content],
    ];
    return [using(tool, argumentsFor(tool.schema, wanted))];
  }
  if (typeof call["tool"] === "string") {
    const name = call["tool"];
    return [using(tools.find((tool) => tool.name === name) ?? { name, schema: {} }, object(call["input"]))];
  }
  if (typeof call["offered"] === "string") {
    const name = call["offered"];
    const tool = tools.find((tool) => tool.name === name || tool.name.endsWith(`_${name}`));
    return [using(tool ?? { name, schema: {} }, object(call["input"]))];
  }
  return [];
}

function using(tool: Tool, input: Json, plain?: string): Call {
  return {
    name: tool.name,
    input,
    ...(tool.custom === true ? { plain: plain ?? string(input["input"]) } : {}),
    ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }),
  };
}

type Wanted = readonly (readonly [names: readonly string[], value: unknown])[];

/** Arguments under the names that the tool's schema has, with something in each field that it requires. */
function argumentsFor(schema: Json, wanted: Wanted): Json {
  const properties = object(schema["properties"]);
  const input: Record<string, unknown> = {};
  for (const [names, value] of wanted) {
    const name = names.find((name) => name in properties) ?? names[0] ?? "";
    input[name] = object(properties[name])["type"] === "array" ? ["bash", "-lc", value] : value;
  }
  for (const name of list(schema["required"]).map(string)) {
    if (!(name in input)) input[name] = somethingOf(object(properties[name]));
  }
  return input;
}

function somethingOf(schema: Json): unknown {
  const choices = list(schema["enum"]);
  if (choices.length > 0) return choices[0];
  switch (string(schema["type"]).toLowerCase()) {
    case "boolean":
      return false;
    case "number":
    case "integer":
      return 1;
    case "array":
      return [];
    case "object":
      return {};
    default:
      return "scripted";
  }
}

/** The text of a step in the pieces that it is streamed in. */
export function pieces(step: Step): readonly string[] {
  const text = step.text ?? "";
  const size = Math.max(1, Math.ceil(text.length / Math.max(1, step.chunks ?? 2)));
  const cut: string[] = [];
  for (let at = 0; at < text.length; at += size) cut.push(text.slice(at, at + size));
  return cut;
}
