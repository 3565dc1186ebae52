/** What a flow imports. Light: zod, and nothing else of hmz. */

export { z } from "zod";
export { flow, load } from "./flow.ts";
export type { AnyFlow, CallOptions, Declaration, Flow, Given, NoParams } from "./flow.ts";
export { agent, env, localEnv, optional, outworlder } from "./role.ts";
export type {
  AgentRole,
  AgentRoles,
  EnvRole,
  EnvRoles,
  LocalEnvRole,
  OptionalRole,
  OutworlderRole,
  Resources,
} from "./role.ts";
export { Permission, PERMISSION_KINDS, permission } from "./permission.ts";
export type { PermissionKind, PermissionLike } from "./permission.ts";
export { budget, graces } from "./budget.ts";
export type { Budget, BudgetLike, Graceful, Usage } from "./budget.ts";
export { tool } from "./tool.ts";
export type { Tool } from "./tool.ts";
export { cli, command, Exit } from "./command-line.ts";
export type { Cli, CliResult, Command } from "./command-line.ts";
export { AGENT_NEEDS, HARNESSES, HARNESS_NAMES } from "./harness.ts";
export type { AgentNeed, Forks, Harness, NeedsOf, Rung } from "./harness.ts";
export { ENV_BACKENDS, ENV_NEEDS } from "./env.ts";
export type { AnyEnv, Env, EnvBackend, EnvNeed, ExecOptions, ExecResult } from "./env.ts";
export type { Agent, PlainAgent, RunOptions, Session } from "./agent.ts";
export { Outworlder } from "./outworlder.ts";
export type { EffectiveBudget, FlowContext, FlowState, Group } from "./context.ts";
export type { Callbacks, Message, ModelCall, ModelRequest, ModelResponse, RunDone, ToolCall } from "./callbacks.ts";
export { HOOK_KINDS } from "./hooks.ts";
export type {
  AskUserHookParams,
  AskUserHookResult,
  HangHook,
  HookFn,
  HookKind,
  HookParams,
  HookParamsOf,
  HookResultOf,
  NotificationHookParams,
  OutworlderRunHookParams,
  OutworlderRunHookResult,
  PermissionRequestHookParams,
  PermissionRequestHookResult,
  PreToolUseHookParams,
  PreToolUseHookResult,
  SessionEndHookParams,
  SessionStartHookParams,
  SessionStartHookResult,
  StopHookParams,
  StopHookResult,
  SubagentStartHookParams,
  SubagentStartHookResult,
  SubagentStopHookParams,
  SubagentStopHookResult,
  UserPromptSubmitHookParams,
  UserPromptSubmitHookResult,
} from "./hooks.ts";
export {
  BudgetExceeded,
  CapabilityMissing,
  CapabilityNotGranted,
  CostExceeded,
  DurationExceeded,
  EnvCommandTimeout,
  EnvConnectionError,
  EnvError,
  EnvFileNotFound,
  EnvPermissionDenied,
  EnvUnavailable,
  FlowCancelled,
  FlowDefinitionError,
  FlowDepthExceeded,
  FlowException,
  FlowLoadConflict,
  FlowNotFound,
  FlowRefError,
  FlowRuntimeError,
  HarnessContended,
  HarnessDropped,
  HarnessError,
  HarnessKilled,
  HarnessMismatch,
  HarnessMissing,
  HarnessNotInstalled,
  HarnessRefused,
  HarnessSandboxed,
  HarnessThrottled,
  HarnessUnrecoverable,
  MissingRole,
  ModelUnavailable,
  OutputSchemaError,
  OutputTokensExceeded,
  OutworlderAway,
  ParamsError,
  PermissionTooNarrow,
  RequirementError,
  ResourceUnmet,
  RewindError,
  ScratchError,
  SessionError,
  StateNotSerializable,
  TempCloneBusy,
  UnsupportedOperation,
  WorktreeError,
} from "./errors.ts";
export type { FlowExceptionJson } from "./errors.ts";
