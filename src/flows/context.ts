/** What a flow call knows of itself. */

import type { Budget, Graceful, Usage } from "./budget.ts";
import type { AnyFlow } from "./flow.ts";

/**
 * What a resumable flow keeps. Values are JSON: what is read back is the round trip of what was set. A value changed in
 * place is not recorded; set it again.
 */
export interface FlowState {
  get<T = unknown>(key: string): T | undefined;
  get<T>(key: string, fallback: T): T;
  /** Recorded before it returns. Throws `StateNotSerializable` for a value that JSON cannot hold. */
  set(key: string, value: unknown): void;
  /** Whether the key was there. */
  delete(key: string): boolean;
  has(key: string): boolean;
  keys(): IterableIterator<string>;
  readonly size: number;
  [Symbol.iterator](): IterableIterator<[string, unknown]>;
}

/** Runs functions side by side as one: the first failure interrupts the others, waits for them, then rejects. */
export interface Group {
  /** Starts a member. Its promise settles as the member does; the group waits for it in any case. */
  run<T>(fn: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Aborted when a member fails, or when what is above the group is. */
  readonly signal: AbortSignal;
}

/** The effective budget: for each limit, the least that any budget of the chain leaves this call. */
export interface EffectiveBudget extends Budget {
  readonly graceful: boolean | Graceful;
}

/** A call's own context. A flow that calls another ten times holds ten; each also counts what is spent under it. */
export interface FlowContext<S extends FlowState | undefined = FlowState | undefined> {
  /** The flow being called. */
  readonly flow: AnyFlow;
  /** Built on each read. */
  readonly budget: EffectiveBudget;
  /** What this call and every call under it has spent. Built on each read. */
  readonly usage: Usage;
  /** Of a resumable flow. */
  readonly state: S;
  /** Whether this call picked up a call of an earlier run. */
  readonly resumed: boolean;
  /** Aborted when the call is cancelled: its run stopped, its deadline passed, its caller ended. */
  readonly signal: AbortSignal;
  /** Structured concurrency: resolves to what `fn` returns, once every member has come to an end. */
  group<T>(fn: (group: Group) => Promise<T> | T): Promise<T>;
}
