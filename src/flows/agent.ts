/** Agents and sessions as a flow sees them: each view has exactly the methods that its role's needs grant. */

import type { z } from "zod";
import type { Budget, BudgetLike, Usage } from "./budget.ts";
import type { AnyEnv } from "./env.ts";
import type { AgentNeed, Harness } from "./harness.ts";
import type { HangHook } from "./hooks.ts";
import type { PermissionLike } from "./permission.ts";
import type { Tool } from "./tool.ts";

declare const granted: unique symbol;

/** Known to the compiler alone: which needs a view was granted, so that a view lacking one is refused for a role. */
export interface Granted<N extends string> {
  readonly [granted]?: { readonly [K in N]: true };
}

/** Options of one turn. */
export interface RunOptions {
  /** A session of this agent. Left out: a fresh one, for this turn alone. */
  readonly session?: Session | undefined;
  /** Where the turn works. Left out: the run's own workspace. */
  readonly env?: AnyEnv | undefined;
  /** A limit on this one turn, applied with every budget above it. */
  readonly budget?: BudgetLike | Budget | undefined;
  /** Interrupts the turn when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** What every agent is, whatever its role needs. */
export interface PlainAgent {
  /** The role it fills. */
  readonly role: string;
  /** What it runs on. */
  readonly harness: Harness;
  /** The model, as written in `-a`. */
  readonly model: string;
  /** The effort in the harness's own words; `""` where none was given. */
  readonly effort: string;
  /** The account that its turns run as; `""` for the one this machine's CLI is signed into. */
  readonly provider: string;

  /** Opens a session with no turns. Starts nothing: the first turn does. */
  spawn(): Promise<Session>;
  /**
   * Takes a turn; resolves to the agent's last message, or to a value of `outputSchema`.
   *
   * @throws BudgetExceeded where a budget of the turn, of the call or of one above is spent.
   * @throws SessionError where the session is over, busy or another agent's, or a hook refused the prompt.
   * @throws OutputSchemaError where the answer is not of the schema.
   * @throws CapabilityNotGranted where the prompt is a `/goal` or a `/loop` that the role did not declare.
   * @throws HarnessError where the harness could not take the turn.
   */
  run<S extends z.ZodType>(prompt: string, options: RunOptions & { readonly outputSchema: S }): Promise<z.output<S>>;
  run(prompt: string, options?: RunOptions): Promise<string>;
  /**
   * Opens a session that carries on from where `session` stands; `session` is unchanged.
   *
   * @throws SessionError where it is over, another agent's, or has taken no turn.
   */
  fork(session: Session): Promise<Session>;

  /** Before the first prompt of a session. */
  onSessionStart: HangHook<"session_start">;
  /** Before each prompt that the flow sends. */
  onUserPromptSubmit: HangHook<"user_prompt_submit">;
  /** Before a tool; it may refuse it where the harness lets hooks gate tools. */
  onPreToolUse: HangHook<"pre_tool_use">;
  /** The harness tells its user something. */
  onNotification: HangHook<"notification">;
  /** The agent would end its turn; a reason keeps it going. */
  onStop: HangHook<"stop">;
  /** A session was closed. */
  onSessionEnd: HangHook<"session_end">;
}

/** The methods that a need grants. */
interface GrantedBy {
  goal: unknown;
  loop: unknown;
  steering: {
    /**
     * Puts text into the turn that `session` is taking: at its next opportunity, or, with `queued: false`, at once,
     * interrupting the current step.
     */
    steer(prompt: string, options: { readonly session: Session; readonly queued?: boolean }): Promise<void>;
  };
  permission_request: { onPermissionRequest: HangHook<"permission_request"> };
  subagent_start: { onSubagentStart: HangHook<"subagent_start"> };
  subagent_stop: { onSubagentStop: HangHook<"subagent_stop"> };
  ask_user: { onAskUser: HangHook<"ask_user"> };
  tools: unknown;
  tool_callbacks: unknown;
  model_callbacks: unknown;
}

/** The intersection of what each need grants, taken need by need: a union of the grants would collapse. */
type Methods<N extends AgentNeed> = (N extends AgentNeed ? (member: GrantedBy[N]) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;

/** An agent of a role that needs `N`. */
export type Agent<N extends AgentNeed = never> = PlainAgent &
  Granted<N> & {
    /**
     * The same agent under a narrower grant; it shares the original's hooks and sessions.
     *
     * @throws CapabilityNotGranted where the grant would be wider.
     */
    derive(narrower: {
      readonly permission?: PermissionLike | undefined;
      readonly skills?: readonly string[] | undefined;
    }): Agent<N>;
  } & ([N] extends [never] ? unknown : Methods<N>);

/** The person outside the run, or one that the flow itself answers for. */
export interface Outworlder extends Agent {
  /** Whether nobody is there to answer. */
  readonly away: boolean;
  /** Answers for an outworlder made with `Outworlder.new()`. */
  onOutworlderRun: HangHook<"outworlder_run">;
}

/** One conversation of one agent: its history, and nothing of where it works. */
export interface Session {
  /** Whose it is. */
  readonly agent: Agent;
  /** What its turns have spent, current on every read. */
  readonly usage: Usage;
  /** Whether the flow's own tools can reach this session's harness. */
  readonly takesTools: boolean;
  /** Offers tools from the next turn on, in place of those it offered; `null` takes them back. */
  offers(tools: readonly Tool[] | null): void;
  /** Closes it early: `await using`. Otherwise it is closed with its flow call, or when nothing references it. */
  [Symbol.asyncDispose](): Promise<void>;
}
