/** The eleven moments that a flow may hang a hook on, what each is given and what it may answer. */

import type { z } from "zod";
import type { FlowContext } from "./context.ts";
import type { Session } from "./agent.ts";

/** The moments, by name. */
export const HOOK_KINDS = [
  "session_start",
  "user_prompt_submit",
  "pre_tool_use",
  "permission_request",
  "notification",
  "stop",
  "session_end",
  "subagent_start",
  "subagent_stop",
  "ask_user",
  "outworlder_run",
] as const;

/** One of {@link HOOK_KINDS}. */
export type HookKind = (typeof HOOK_KINDS)[number];

/** On every hook's parameter. */
export interface HookParams {
  /** The context of the flow that the agent belongs to. */
  readonly ctx: FlowContext;
  /** The session that the moment arrived in. */
  readonly session: Session;
}

export interface SessionStartHookParams extends HookParams {}
export interface SessionStartHookResult {
  /** Text put before the prompt, a blank line between. */
  readonly context?: string;
}

export interface UserPromptSubmitHookParams extends HookParams {
  readonly prompt: string;
}
export interface UserPromptSubmitHookResult {
  /** Refuses the prompt: `run` throws `SessionError` with the reason. */
  readonly block?: boolean;
  readonly reason?: string;
  /** Text put after the prompt, a blank line between. */
  readonly context?: string;
}

export interface PreToolUseHookParams extends HookParams {
  /** The tool as the harness names it. */
  readonly tool: string;
  /** Its arguments; `{}` where the harness gives none, `{ about }` where only its output line is known. */
  readonly input: Readonly<Record<string, unknown>>;
}
export interface PreToolUseHookResult {
  /** Refuses the tool, on harnesses that gate tools through their own hooks. */
  readonly block?: boolean;
  /** What the agent is told; `refused by a hook` where empty. */
  readonly reason?: string;
}

export interface PermissionRequestHookParams extends PreToolUseHookParams {}
export interface PermissionRequestHookResult {
  /** Default `true`. */
  readonly allow?: boolean;
  readonly reason?: string;
}

export interface NotificationHookParams extends HookParams {
  readonly message: string;
}

export interface StopHookParams extends HookParams {
  /** The agent's last text. */
  readonly said: string;
  /** How many times a stop hook has already kept this turn going. */
  readonly again: number;
}
export interface StopHookResult {
  /** With a reason that is not empty: the reason is the next prompt of the same turn. */
  readonly block?: boolean;
  readonly reason?: string;
}

export interface SessionEndHookParams extends HookParams {}

export interface SubagentStartHookParams extends HookParams {
  readonly subagent: string;
  readonly task: string;
}
export interface SubagentStartHookResult {
  readonly context?: string;
}

export interface SubagentStopHookParams extends HookParams {
  readonly subagent: string;
  readonly said: string;
}
export interface SubagentStopHookResult {
  readonly block?: boolean;
  readonly reason?: string;
}

export interface AskUserHookParams extends HookParams {
  readonly question: string;
  readonly options: readonly string[];
}
export interface AskUserHookResult {
  /** Need not be one of the options; `undefined` leaves the question unanswered. */
  readonly answer?: string;
}

export interface OutworlderRunHookParams extends HookParams {
  readonly prompt: string;
  readonly outputSchema?: z.ZodType;
}
export interface OutworlderRunHookResult {
  /** What the outworlder's `run` returns: text, or a value of the schema. */
  readonly output: unknown;
}

/** What each moment's hook is given. */
export interface HookParamsOf {
  session_start: SessionStartHookParams;
  user_prompt_submit: UserPromptSubmitHookParams;
  pre_tool_use: PreToolUseHookParams;
  permission_request: PermissionRequestHookParams;
  notification: NotificationHookParams;
  stop: StopHookParams;
  session_end: SessionEndHookParams;
  subagent_start: SubagentStartHookParams;
  subagent_stop: SubagentStopHookParams;
  ask_user: AskUserHookParams;
  outworlder_run: OutworlderRunHookParams;
}

/** What each moment's hook may answer. */
export interface HookResultOf {
  session_start: SessionStartHookResult;
  user_prompt_submit: UserPromptSubmitHookResult;
  pre_tool_use: PreToolUseHookResult;
  permission_request: PermissionRequestHookResult;
  notification: Record<string, never>;
  stop: StopHookResult;
  session_end: Record<string, never>;
  subagent_start: SubagentStartHookResult;
  subagent_stop: SubagentStopHookResult;
  ask_user: AskUserHookResult;
  outworlder_run: OutworlderRunHookResult;
}

/** A hook: one parameter in, a plain object out, or nothing for "no change". */
export type HookFn<K extends HookKind> = (
  params: HookParamsOf[K],
) => K extends "outworlder_run"
  ? HookResultOf[K] | Promise<HookResultOf[K]>
  : HookResultOf[K] | void | Promise<HookResultOf[K] | void>;

/** Hangs a hook on a moment, in place of the one that hung there; `null` takes it away. */
export type HangHook<K extends HookKind> = (fn: HookFn<K> | null) => void;
