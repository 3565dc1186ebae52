/** Functions called around every model and tool call of a role's agents, and after each run. */

import type { FlowContext } from "./context.ts";
import type { Session } from "./agent.ts";
import type { Usage } from "./budget.ts";

/** A message of the conversation, in the shape of the AI SDK's model messages. */
export interface Message {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: unknown;
}

export interface ModelRequest {
  readonly messages: readonly Message[];
  /** The tools on offer, by name. */
  readonly tools: readonly string[];
  readonly settings: Readonly<Record<string, unknown>>;
}

export interface ModelResponse {
  readonly text: string;
  readonly toolCalls: readonly { readonly id: string; readonly tool: string; readonly input: unknown }[];
}

interface Around {
  readonly ctx: FlowContext;
  readonly session: Session;
}

export interface ModelCall extends Around {
  readonly request: ModelRequest;
}

export interface ToolCall extends Around {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly messages: readonly Message[];
}

export interface RunDone extends Around {
  readonly said: string;
  readonly messages: readonly Message[];
  readonly usage: Usage;
}

type Answer<T> = T | undefined | Promise<T | undefined>;

/** Five lists, each run in order; the first answer other than `undefined` wins, a promise is awaited. */
export interface Callbacks {
  /** A response: the model is not called; `{ request }`: it is called with that one instead. */
  readonly beforeModel?: readonly ((call: ModelCall) => Answer<ModelResponse | { readonly request: ModelRequest }>)[];
  /** A response that stands in place of the model's. */
  readonly afterModel?: readonly ((call: ModelCall & { readonly response: ModelResponse }) => Answer<ModelResponse>)[];
  /** The tool's result: the tool is not run. */
  readonly beforeTool?: readonly ((call: ToolCall) => unknown)[];
  /** A result that stands in place of the tool's. */
  readonly afterTool?: readonly ((call: ToolCall & { readonly result: unknown }) => unknown)[];
  /** Returns nothing: it saves, or sums up. */
  readonly afterRun?: readonly ((done: RunDone) => void | Promise<void>)[];
}
