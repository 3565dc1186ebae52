/** The seams around a model call and around a tool call, for a driver in this process. */

import { interruptible } from "./interruptible.ts";
import type { ModelRequest, ModelResponse, ToolCall } from "../flows/callbacks.ts";
import type { BoundCallbacks } from "./callbacks.ts";

/** What came of a model call: the model's own answer, or a response that a callback put in its place. */
export type Modelled<T> =
  | { readonly by: "model"; readonly answer: T }
  | { readonly by: "callback"; readonly response: ModelResponse };

/** Calls the model between its callbacks. `view` is an answer as the callbacks are shown it. */
export async function aroundModel<T>(options: {
  readonly callbacks: BoundCallbacks;
  readonly request: ModelRequest;
  readonly call: (request: ModelRequest) => Promise<T>;
  readonly view: (answer: T) => ModelResponse;
  readonly signal: AbortSignal;
}): Promise<Modelled<T>> {
  const { callbacks, call, view, signal } = options;
  let { request } = options;
  let outcome: Modelled<T> | undefined;
  for (const before of callbacks.beforeModel ?? []) {
    const said = await answerOf(() => before({ request }), signal);
    if (said === undefined) continue;
    if ("request" in said) request = said.request;
    else outcome = { by: "callback", response: said };
    break;
  }
  outcome ??= { by: "model", answer: await call(request) };
  for (const after of callbacks.afterModel ?? []) {
    const response = outcome.by === "model" ? view(outcome.answer) : outcome.response;
    const said = await answerOf(() => after({ request, response }), signal);
    if (said !== undefined) return { by: "callback", response: said };
  }
  return outcome;
}

/** Runs a tool between its callbacks. */
export async function aroundTool(options: {
  readonly callbacks: BoundCallbacks;
  readonly use: Pick<ToolCall, "id" | "tool" | "input" | "messages">;
  readonly run: () => Promise<ToolOutcome>;
  readonly signal: AbortSignal;
}): Promise<ToolOutcome> {
  const { callbacks, use, run, signal } = options;
  let outcome: ToolOutcome | undefined;
  for (const before of callbacks.beforeTool ?? []) {
    const said = await answerOf(() => before(use), signal);
    if (said === undefined) continue;
    outcome = { text: asText(said), failed: false };
    break;
  }
  outcome ??= await run();
  const { text: result } = outcome;
  for (const after of callbacks.afterTool ?? []) {
    const said = await answerOf(() => after({ ...use, result }), signal);
    if (said !== undefined) return { text: asText(said), failed: outcome.failed };
  }
  return outcome;
}

/** What a model reads of a use of a tool, and whether the tool failed. */
export interface ToolOutcome {
  readonly text: string;
  readonly failed: boolean;
}

/** What a callback answered, `null` read as nothing. It may wait for a person, so that an abort does not wait for it. */
async function answerOf<T>(callback: () => T, signal: AbortSignal): Promise<Awaited<T> | undefined> {
  signal.throwIfAborted();
  return (await interruptible(Promise.resolve(callback()), signal)) ?? undefined;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "done");
}
