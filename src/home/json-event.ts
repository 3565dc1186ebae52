/** An event of the turn stream as it is written: to `events.jsonl`, and to stdout by `--json`. */

import type { Tokens, TurnEvent } from "../engine/events.ts";

/** The ten keys that every object has, and those that some have beside them. */
export interface JsonEvent {
  /** Unix seconds. */
  readonly at: number;
  /** The role. */
  readonly agent: string;
  /** The harness. */
  readonly cli: string;
  readonly model: string;
  /** The harness's id of the conversation, `""` until it named one. */
  readonly session: string;
  readonly kind: TurnEvent["kind"];
  readonly text: string;
  /** The sub-agent that said it, `""` for the agent. */
  readonly whose: string;
  /** Output tokens by model, on `result` alone. */
  readonly tokens: Readonly<Record<string, number>>;
  /** Tokens by kind, on `result` alone. */
  readonly spent: Tokens;
  /** The flow call that the turn is of; 0 is the top one. */
  readonly call: number;
  /** The turn's number in its run, from 1. */
  readonly turn: number;
  /** USD, on a `result` whose model has a price. */
  readonly cost?: number;
  readonly tool?: string;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly use?: string;
  /** Whether a tool failed, on `tool-ends`. */
  readonly failed?: boolean;
  /** Which of the agent's conversations, on `begins`. */
  readonly conversation?: number;
  /** The name of the error, on `failed`. */
  readonly error?: string;
  /** How long the turn took, on `ends`. */
  readonly seconds?: number;
}

export function toJsonEvent(event: TurnEvent): JsonEvent {
  const result = event.kind === "result";
  return {
    at: event.at,
    agent: event.agent,
    cli: event.cli,
    model: event.model,
    session: event.session,
    kind: event.kind,
    text: event.text,
    whose: "whose" in event ? (event.whose ?? "") : "",
    tokens: result ? event.tokens : {},
    spent: result ? event.spent : {},
    call: event.call,
    turn: event.turn,
    ...extras(event),
  };
}

function extras(event: TurnEvent): Partial<JsonEvent> {
  switch (event.kind) {
    case "begins":
      return { conversation: event.conversation };
    case "tool":
      return { tool: event.tool, input: event.input, ...(event.use === undefined ? {} : { use: event.use }) };
    case "tool-ends":
      return { tool: event.tool, failed: event.failed, ...(event.use === undefined ? {} : { use: event.use }) };
    case "result":
      return event.cost === undefined ? {} : { cost: event.cost };
    case "failed":
      return { error: event.error };
    case "ends":
      return { seconds: event.seconds };
    default:
      return {};
  }
}
