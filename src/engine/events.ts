/** The one typed event stream of a run. The epic, the terminal, `--json` and the SDK are readers of it. */

import type { Harness } from "../flows/harness.ts";

export const TOKEN_KINDS = ["input", "output", "cache_read", "cache_write", "reasoning"] as const;
export type TokenKind = (typeof TOKEN_KINDS)[number];

/** Tokens by kind; a kind that the harness does not report is absent. */
export type Tokens = { readonly [K in TokenKind]?: number };

/** What a harness says while it takes a turn. `whose` is the sub-agent that said it, `""` or absent for the agent. */
export type HarnessEvent =
  | { readonly kind: "text" | "reasoning"; readonly text: string; readonly whose?: string }
  | {
      readonly kind: "tool";
      /** One line for people: the tool and what it was given. */
      readonly text: string;
      readonly tool: string;
      readonly input: Readonly<Record<string, unknown>>;
      /** The harness's id of this use of the tool. */
      readonly use?: string;
      readonly whose?: string;
    }
  | {
      readonly kind: "tool-ends";
      /** One line for people: what came of it; empty where that says nothing. */
      readonly text: string;
      readonly tool: string;
      readonly use?: string;
      /** Whether it failed: a file that is not there, a command that ended with a status. */
      readonly failed: boolean;
      readonly whose?: string;
    }
  /** `text` says which sub-agent, and on what. */
  | { readonly kind: "subagent" | "subagent-ends"; readonly text: string; readonly whose: string }
  /** The agent asks its user something. */
  | { readonly kind: "asks"; readonly text: string }
  /** A steered line reached the agent. */
  | { readonly kind: "took"; readonly text: string }
  /** Something a person should know that is no failure: a retry, a line that could not be read. */
  | { readonly kind: "notice"; readonly text: string };

/** On every event of a turn. */
interface OfTurn {
  /** Unix seconds. */
  readonly at: number;
  /** The role. */
  readonly agent: string;
  /** `""` for what is no agent's: a notice about an environment. */
  readonly cli: Harness | "outworlder" | "";
  readonly model: string;
  /** The harness's id of the conversation, `""` until it named one. */
  readonly session: string;
  /** The flow call that the turn is of; 0 is the top one. */
  readonly call: number;
  /** The turn's number in its run, from 1. */
  readonly turn: number;
}

export type TurnEvent = OfTurn &
  (
    | HarnessEvent
    | { readonly kind: "begins"; readonly text: string; readonly conversation: number }
    | {
        readonly kind: "result";
        readonly text: string;
        /** Output tokens by model. */
        readonly tokens: Readonly<Record<string, number>>;
        readonly spent: Tokens;
        /** USD; absent where no model of the turn has a price. */
        readonly cost?: number;
      }
    | { readonly kind: "failed"; readonly text: string; readonly error: string }
    | { readonly kind: "ends"; readonly text: string; readonly seconds: number }
  );

/** How a run or a call came to its end. */
export type Ending = "done" | "failed" | "stopped" | "waiting";

export type CallEvent =
  | {
      readonly kind: "called";
      readonly at: number;
      readonly call: number;
      /** The call that called it. */
      readonly under: number;
      readonly flow: string;
      readonly task: string;
    }
  | {
      readonly kind: "returned";
      readonly at: number;
      readonly call: number;
      readonly flow: string;
      readonly how: Ending;
    };

/** A session's harness named its conversation. */
export interface OpenedEvent {
  readonly kind: "opened";
  readonly at: number;
  readonly call: number;
  readonly agent: string;
  readonly cli: Harness;
  readonly provider: string;
  readonly session: string;
  /** The session it was forked from. */
  readonly parent?: string;
}

export type RunEvent = TurnEvent | CallEvent | OpenedEvent;

/** Whether an event is of the turn stream, which `--json` writes. */
export function isTurnEvent(event: RunEvent): event is TurnEvent {
  return event.kind !== "called" && event.kind !== "returned" && event.kind !== "opened";
}
