/**
 * One turn: the model is called, the tools that it asks for are run, their results are given back, until it asks for
 * none. Loaded with the first turn: it brings the AI SDK with it.
 */

import {
  streamText,
  type AssistantModelMessage,
  type ModelMessage,
  type SystemModelMessage,
  type ToolModelMessage,
} from "ai";
import { aroundModel, aroundTool, type ToolOutcome } from "../engine/around.ts";
import type { BoundCallbacks } from "../engine/callbacks.ts";
import type { Tokens } from "../engine/events.ts";
import { interruptible } from "../engine/interruptible.ts";
import type { Answer, Skill, TurnHost } from "../engine/ports.ts";
import type { ModelRequest, ModelResponse } from "../flows/callbacks.ts";
import { HarnessDropped, HarnessUnrecoverable } from "../flows/errors.ts";
import type { Permission } from "../flows/permission.ts";
import type { Conversation } from "./conversation.ts";
import { failureOf } from "./failure.ts";
import type { OpenedModel, Price } from "./model.ts";
import type { ToldSkill } from "./skills.ts";
import { wasSteered, type Steering } from "./steering.ts";
import { schemaNote, systemPrompt } from "./system-prompt.ts";
import { Toolbox } from "./tools/toolbox.ts";

// What the SDK warns of is told as a notice of the turn; its own way would write to our standard error.
(globalThis as { AI_SDK_LOG_WARNINGS?: unknown }).AI_SDK_LOG_WARNINGS = false;

export type Reasoning = "provider-default" | "none" | "minimal" | "low" | "medium" | "high";

export interface TurnOptions {
  readonly prompt: string;
  readonly host: TurnHost;
  /** Aborted where the turn is stopped, or its session closed. In place of the host's. */
  readonly signal: AbortSignal;
  readonly conversation: Conversation;
  readonly steering: Steering;
  readonly model: OpenedModel;
  /** As the agent's spec names the model, for messages. */
  readonly spec: string;
  readonly reasoning: Reasoning;
  readonly retries: number;
  readonly mostSteps: number;
  readonly permission: Permission;
  readonly skills: readonly Skill[];
  /** What the skills say of themselves. */
  readonly told: readonly ToldSkill[];
  readonly callbacks: BoundCallbacks;
}

/**
 * Takes one turn to its end.
 *
 * @throws HarnessError, of the leaf that says why it failed; the signal's reason where that was aborted. The
 * conversation keeps what was done until then.
 */
export async function takeTurn(options: TurnOptions): Promise<Answer> {
  const { signal, conversation, steering } = options;
  signal.throwIfAborted();
  const stop = (): void => steering.interrupt(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  const before = conversation.length;
  try {
    return await new Turn(options).run();
  } catch (error) {
    signal.throwIfAborted();
    conversation.forgetUnanswered(before);
    throw error;
  } finally {
    steering.close();
    signal.removeEventListener("abort", stop);
  }
}

interface Call {
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  /** Why it cannot be run: the model called a tool that is not there, or gave it what it does not take. */
  readonly problem?: string;
}

/** What one model call came to. */
interface Step {
  readonly messages: readonly AssistantModelMessage[];
  readonly text: string;
  readonly calls: readonly Call[];
}

class Turn {
  readonly #options: TurnOptions;
  readonly #toolbox: Toolbox;
  readonly #system: string;
  readonly #noticed = new Set<string>();

  constructor(options: TurnOptions) {
    const { place, tools } = options.host.setup;
    this.#options = options;
    this.#toolbox = new Toolbox(place, options.permission, tools, options.skills);
    this.#system = systemPrompt({ workdir: place.workdir, tools: this.#toolbox.names, skills: options.told });
  }

  async run(): Promise<Answer> {
    const { prompt, host, conversation, steering, spec, mostSteps } = this.#options;
    const { schema } = host.setup;
    conversation.prompt(schema === undefined ? prompt : prompt + schemaNote(schema));
    let said = "";
    for (let steps = 0; steps < mostSteps; steps++) {
      this.#options.signal.throwIfAborted();
      for (const line of steering.take()) {
        conversation.steer(line);
        host.event({ kind: "took", text: line });
      }
      const signal = steering.step();
      const step = await this.#unlessSteered(() => this.#think(signal), signal);
      if (step === undefined) continue;
      conversation.say(step.messages);
      if (step.text !== "") said = step.text;
      if (step.calls.length > 0) await this.#unlessSteered(() => this.#useAll(step.calls, signal), signal);
      else if (steering.end()) return { text: said };
    }
    throw new HarnessUnrecoverable(
      `${spec} took ${mostSteps} steps in one turn and came to no end: ask for less at once`,
    );
  }

  /** What a step came to, or `undefined` where a steer interrupted it and the turn goes on from there. */
  async #unlessSteered<T>(step: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await step();
    } catch (error) {
      this.#options.signal.throwIfAborted();
      if (error === signal.reason && wasSteered(signal)) return undefined;
      throw error;
    }
  }

  async #think(signal: AbortSignal): Promise<Step> {
    const { callbacks, conversation, host, reasoning } = this.#options;
    const request: ModelRequest = {
      messages: conversation.messages,
      tools: this.#toolbox.names,
      settings: { system: this.#system, reasoning },
    };
    // What a callback may still replace has not been said yet.
    const live = (callbacks.afterModel ?? []).length === 0;
    const modelled = await aroundModel({
      callbacks,
      request,
      call: (request) => this.#ask(request, signal, live),
      view: viewOf,
      signal,
    });
    const step = modelled.by === "model" ? modelled.answer : standingIn(modelled.response);
    if (step.text !== "" && (modelled.by === "callback" || !live)) host.event({ kind: "text", text: step.text });
    return step;
  }

  /** Calls the model once. Whatever the callbacks changed in the request holds. */
  async #ask(request: ModelRequest, signal: AbortSignal, live: boolean): Promise<Step> {
    const { host, model, retries, spec, conversation } = this.#options;
    const fail = (error: unknown): Error => failureOf(error, { model: spec, secrets: model.secrets });
    const { instructions, messages, ...settings } = this.#settingsOf(request);
    const answered = streamText({
      model: model.model,
      instructions,
      messages,
      tools: Object.fromEntries(Object.entries(this.#toolbox.offered).filter(([name]) => request.tools.includes(name))),
      maxRetries: retries,
      abortSignal: signal,
      providerOptions: model.providerOptions,
      // Failures come with the stream; without this the SDK writes them to the console too.
      onError: () => {},
      ...settings,
    });
    const blocks = new Map<string, string>();
    const thoughts = new Map<string, string>();
    const calls: Call[] = [];
    let text = "";
    let failure: { readonly error: unknown } | undefined;
    let finish = "";
    try {
      for await (const part of answered.stream) {
        switch (part.type) {
          case "start-step":
            for (const warning of part.warnings) this.#notice(noticeOf(warning));
            break;
          case "text-delta":
            blocks.set(part.id, (blocks.get(part.id) ?? "") + part.text);
            break;
          case "reasoning-delta":
            thoughts.set(part.id, (thoughts.get(part.id) ?? "") + part.text);
            break;
          case "text-end": {
            const block = blocks.get(part.id) ?? "";
            blocks.delete(part.id);
            text += block;
            if (live && block !== "") host.event({ kind: "text", text: block });
            break;
          }
          case "reasoning-end": {
            const thought = thoughts.get(part.id) ?? "";
            thoughts.delete(part.id);
            if (thought !== "") host.event({ kind: "reasoning", text: thought });
            break;
          }
          case "tool-call":
            calls.push({
              id: part.toolCallId,
              tool: part.toolName,
              input: part.input,
              ...(part.invalid === true ? { problem: problemOf(part.error) } : {}),
            });
            break;
          case "finish-step":
            finish = part.finishReason;
            this.#spent(part.usage);
            break;
          case "error":
            failure ??= { error: part.error };
            break;
          default:
            break;
        }
      }
    } catch (error) {
      failure ??= { error };
    }
    if (signal.aborted) {
      // What was said until then stays said. Thoughts are not kept: without their end no provider takes them back.
      const cut = [...blocks.values()].join("");
      if ((text + cut).trim() !== "") conversation.say([{ role: "assistant", content: text + cut }]);
      if (live && cut !== "") host.event({ kind: "text", text: cut });
      throw signal.reason;
    }
    if (failure !== undefined) throw fail(failure.error);
    switch (finish) {
      case "length":
        this.#notice(`${spec} reached its output limit: its answer is cut off`);
        break;
      case "content-filter":
        throw new HarnessUnrecoverable(`the content filter of ${spec} stopped the answer: word the prompt another way`);
      case "error":
      case "interrupted":
        throw new HarnessDropped(`the connection to ${spec} broke in the middle of an answer; try again`);
      default:
        break;
    }
    try {
      const { messages } = await answered.response;
      return { messages: messages.filter((message) => message.role === "assistant"), text, calls };
    } catch (error) {
      throw fail(error);
    }
  }

  #settingsOf(request: ModelRequest) {
    const { model } = this.#options;
    const { system, reasoning, temperature, maxOutputTokens } = request.settings;
    const instructions: SystemModelMessage = {
      role: "system",
      content: typeof system === "string" ? system : this.#system,
      ...(model.cacheMark === undefined ? {} : { providerOptions: model.cacheMark }),
    };
    const messages = [...(request.messages as readonly ModelMessage[])];
    const last = messages.at(-1);
    if (last !== undefined && model.cacheMark !== undefined) {
      messages[messages.length - 1] = { ...last, providerOptions: { ...last.providerOptions, ...model.cacheMark } };
    }
    return {
      instructions,
      messages,
      reasoning: (reasoning as Reasoning | undefined) ?? "provider-default",
      ...(typeof temperature === "number" ? { temperature } : {}),
      ...(typeof maxOutputTokens === "number" ? { maxOutputTokens } : {}),
    };
  }

  #notice(text: string): void {
    if (this.#noticed.has(text)) return;
    this.#noticed.add(text);
    this.#options.host.event({ kind: "notice", text });
  }

  #spent(usage: Usage): void {
    const { host, model } = this.#options;
    const tokens = tokensOf(usage);
    if (Object.keys(tokens).length === 0) return;
    host.spent({
      model: model.name,
      tokens,
      ...(model.price === undefined ? {} : { cost: costOf(tokens, model.price) }),
    });
  }

  /** Runs the tools that one answer asks for: side by side where none of them can be in another's way. */
  async #useAll(calls: readonly Call[], signal: AbortSignal): Promise<void> {
    const { conversation, steering } = this.#options;
    const messages = conversation.messages;
    // By the call and not by its id: some servers give two calls one id.
    const outcomes = new Map<Call, ToolOutcome>();
    let failure: { readonly error: unknown } | undefined;
    const use = async (call: Call): Promise<void> => {
      try {
        outcomes.set(call, await this.#use(call, messages, signal));
      } catch (error) {
        if (signal.aborted) return;
        // A hook or a callback failed, which fails the turn: what still runs beside it is of no use any more.
        failure ??= { error };
        steering.interrupt(error);
      }
    };
    for (let at = 0; at < calls.length && !signal.aborted;) {
      const rest = calls.slice(at);
      const alone = rest.findIndex((call) => !this.#toolbox.besides(call.tool));
      const batch = rest.slice(0, alone === -1 ? rest.length : Math.max(1, alone));
      await Promise.all(batch.map(use));
      at += batch.length;
    }
    // A call without a result is refused by every provider, with all that is said after it.
    const message: ToolModelMessage = {
      role: "tool",
      content: calls.map((call) => {
        const { text, failed } = outcomes.get(call) ?? { text: "interrupted before it had ended", failed: true };
        return {
          type: "tool-result",
          toolCallId: call.id,
          toolName: call.tool,
          output: { type: failed ? "error-text" : "text", value: text },
        };
      }),
    };
    conversation.say([message]);
    if (failure !== undefined) throw failure.error;
    signal.throwIfAborted();
  }

  async #use(call: Call, messages: readonly ModelMessage[], signal: AbortSignal): Promise<ToolOutcome> {
    const { host, callbacks } = this.#options;
    const { id, tool, problem } = call;
    const input = recordOf(call.input);
    host.event({ kind: "tool", text: this.#toolbox.line(tool, input), tool, input, use: id });
    if (problem !== undefined) return { text: problem, failed: true };
    const verdict = await interruptible(host.preToolUse(tool, input), signal);
    if (!verdict.allow) return { text: verdict.reason || `${tool} was refused`, failed: true };
    const outcome = await aroundTool({
      callbacks,
      use: { id, tool, input: call.input, messages },
      run: () => this.#toolbox.run(tool, call.input, signal),
      signal,
    });
    host.event({ kind: "tool-ends", ...this.#toolbox.outcome(tool, outcome), tool, use: id });
    return outcome;
  }
}

function viewOf(step: Step): ModelResponse {
  return { text: step.text, toolCalls: step.calls.map(({ id, tool, input }) => ({ id, tool, input })) };
}

/** A response that a callback gave, as if the model had said it. */
function standingIn({ text, toolCalls }: ModelResponse): Step {
  const content: Exclude<AssistantModelMessage["content"], string> = [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...toolCalls.map(({ id, tool, input }) => ({
      type: "tool-call" as const,
      toolCallId: id,
      toolName: tool,
      input,
    })),
  ];
  return {
    messages: content.length === 0 ? [] : [{ role: "assistant", content }],
    text,
    calls: toolCalls,
  };
}

interface Usage {
  readonly inputTokens: number | undefined;
  readonly inputTokenDetails: {
    readonly noCacheTokens: number | undefined;
    readonly cacheReadTokens: number | undefined;
    readonly cacheWriteTokens: number | undefined;
  };
  readonly outputTokens: number | undefined;
  readonly outputTokenDetails: { readonly reasoningTokens: number | undefined };
}

/** The tokens of one model call. Input is without what was read from or written to a cache; output is with reasoning. */
function tokensOf(usage: Usage): Tokens {
  const { noCacheTokens, cacheReadTokens, cacheWriteTokens } = usage.inputTokenDetails;
  const input =
    noCacheTokens ??
    (usage.inputTokens === undefined
      ? undefined
      : Math.max(0, usage.inputTokens - (cacheReadTokens ?? 0) - (cacheWriteTokens ?? 0)));
  const { reasoningTokens } = usage.outputTokenDetails;
  return {
    ...(input === undefined ? {} : { input }),
    ...(usage.outputTokens === undefined ? {} : { output: usage.outputTokens }),
    ...(cacheReadTokens === undefined ? {} : { cache_read: cacheReadTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cache_write: cacheWriteTokens }),
    ...(reasoningTokens === undefined ? {} : { reasoning: reasoningTokens }),
  };
}

/** Reasoning is part of the output, and priced with it. */
function costOf(tokens: Tokens, price: Price): number {
  const kinds = ["input", "output", "cache_read", "cache_write"] as const;
  return kinds.reduce((sum, kind) => sum + ((tokens[kind] ?? 0) * (price[kind] ?? 0)) / 1e6, 0);
}

function recordOf(input: unknown): Readonly<Record<string, unknown>> {
  return typeof input === "object" && input !== null && !Array.isArray(input)
    ? (input as Readonly<Record<string, unknown>>)
    : { input };
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : "the tool does not take this input";
}

function noticeOf(warning: { readonly type: string }): string {
  const { feature, setting, details, message } = warning as Readonly<Record<string, unknown>>;
  const about = [feature, setting].find((word) => typeof word === "string");
  const words = [about, details, message].filter((word) => typeof word === "string");
  return words.length === 0 ? warning.type : `${warning.type}: ${words.join(": ")}`;
}
