/** Defining a flow, and what a flow is once it is defined. */

import { getCallSites } from "node:util";
import type { z } from "zod";
import { asking, type CallArguments, loaderOutsideAnyRun } from "./ambient.ts";
import type { PlainAgent } from "./agent.ts";
import type { BudgetLike } from "./budget.ts";
import type { FlowContext, FlowState } from "./context.ts";
import type { AnyEnv } from "./env.ts";
import { FlowRefError, FlowRuntimeError } from "./errors.ts";
import { declared, definitionOf, type FlowDefinition } from "./definition.ts";
import type { AgentRoles, EnvRoles, GivenForAll, ViewsOf } from "./role.ts";

/** The params of a flow that declares none. */
export type NoParams = z.ZodObject<Record<never, never>, z.core.$strict>;

/** What a flow declares. */
export interface Declaration<
  A extends AgentRoles = AgentRoles,
  E extends EnvRoles = EnvRoles,
  P extends z.ZodObject = z.ZodObject,
  S extends boolean = boolean,
> {
  /** The agent roles, keyed by role. */
  readonly agents?: A;
  /** The environment roles, keyed by role. */
  readonly envs?: E;
  /** The params' schema. Unknown keys are always refused. */
  readonly params?: P;
  /** Default: the name that the flow is exported under; `default` is the module's own name. */
  readonly name?: string;
  /** One line, shown in lists. Default: the first line of the module's leading comment. */
  readonly description?: string;
  /** Left out of every list; still runs and loads by its ref. */
  readonly hidden?: boolean;
  /** Keeps a journal; gives the flow a `ctx.state`. */
  readonly resumable?: S;
}

/** What a flow's function is given beside its task. */
export interface Given<A extends AgentRoles, E extends EnvRoles, P extends z.ZodObject, S extends boolean> {
  readonly agents: ViewsOf<A>;
  readonly envs: ViewsOf<E>;
  readonly params: z.output<P>;
  readonly ctx: FlowContext<S extends true ? FlowState : undefined>;
}

/** What `flow` and `load` return, whatever it declares. */
export interface AnyFlow {
  readonly name: string;
  /** `<module>:<name>`, as the flow is known to journals and lists. */
  readonly ref: string;
  readonly description: string | undefined;
  readonly hidden: boolean;
  readonly resumable: boolean;
  readonly expectedAgents: AgentRoles;
  readonly expectedEnvs: EnvRoles;
  readonly expectedParams: z.ZodObject;
}

type Required<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] };

/** A key that must be given where anything under it must, and may be left out otherwise. */
type Part<K extends string, T> = [keyof Required<T>] extends [never]
  ? { readonly [P in K]?: T }
  : // Roles or params that are not known one by one, as those of a loaded flow, or that are none at all.
    string extends keyof T
    ? { readonly [P in K]?: T }
    : { readonly [P in K]: T };

/** What a call of a flow is given. */
export type CallOptions<A extends AgentRoles, E extends EnvRoles, P extends z.ZodObject> = Part<
  "agents",
  GivenForAll<A, PlainAgent>
> &
  Part<"envs", GivenForAll<E, AnyEnv>> &
  Part<"params", z.input<P>> & {
    /** A budget of the call's own, combined with the caller's remaining one. */
    readonly budget?: BudgetLike | undefined;
    readonly signal?: AbortSignal | undefined;
  };

type Arguments<O> = [keyof Required<O>] extends [never] ? [options?: O] : [options: O];

/** A flow. Called from inside a run, it runs as part of it: `await plan(task, { agents, envs, params })`. */
export interface Flow<
  A extends AgentRoles = AgentRoles,
  E extends EnvRoles = EnvRoles,
  P extends z.ZodObject = z.ZodObject,
  R = unknown,
> extends AnyFlow {
  (task: string, ...options: Arguments<CallOptions<A, E, P>>): Promise<R>;
  readonly expectedAgents: A;
  readonly expectedEnvs: E;
  readonly expectedParams: P;
}

/**
 * Defines a flow: what it needs, and the function that is run.
 *
 * ```ts
 * export const twice = flow({ agents: { builder: agent() } }, async (task, { agents: { builder } }) => {
 *   const session = await builder.spawn();
 *   await builder.run(task, { session });
 *   await builder.run("Review what you did; fix anything wrong.", { session });
 * });
 * ```
 *
 * @throws FlowDefinitionError where the declaration is written wrong.
 */
export function flow<
  const A extends AgentRoles = Record<never, never>,
  const E extends EnvRoles = Record<never, never>,
  P extends z.ZodObject = NoParams,
  R = unknown,
  const S extends boolean = false,
>(
  declaration: Declaration<A, E, P, S>,
  run: (task: string, given: Given<A, E, P, S>) => Promise<R> | R,
): Flow<A, E, P, R> {
  const definition = declared(declaration, run, whoCalledFlow());
  return flowOf(definition) as unknown as Flow<A, E, P, R>;
}

/** The file whose code called `flow()`: a module's flows are those defined by files inside its directory. */
function whoCalledFlow(): string {
  return getCallSites(3)[2]?.scriptName ?? "";
}

function flowOf(definition: FlowDefinition): AnyFlow {
  const call = (task: string, options: CallArguments = {}): Promise<unknown> => {
    const caller = asking.getStore();
    if (!caller) {
      return Promise.reject(
        new FlowRuntimeError(
          `${definition.identity.ref}: a flow is called from inside a run; start one with new Hmz().run`,
        ),
      );
    }
    return caller.call(flow, task, options);
  };
  const flow = Object.defineProperties(call, {
    name: { get: () => definition.identity.name, enumerable: true },
    ref: { get: () => definition.identity.ref, enumerable: true },
    description: { get: () => definition.identity.description, enumerable: true },
    hidden: { value: definition.hidden, enumerable: true },
    resumable: { value: definition.resumable, enumerable: true },
    expectedAgents: { value: definition.expectedAgents, enumerable: true },
    expectedEnvs: { value: definition.expectedEnvs, enumerable: true },
    expectedParams: { value: definition.params, enumerable: true },
    [definitionOf.key]: { value: definition },
  }) as unknown as AnyFlow;
  return flow;
}

/**
 * The flow that a ref names: `:name` in the same module, `module`, `module:name`, a path, or `git+…`.
 *
 * @throws FlowRefError where the ref is malformed, or relative with no flow asking.
 * @throws FlowNotFound where it names no flow.
 * @throws FlowDefinitionError where the flow is written wrong, or its import failed.
 */
export async function load(ref: string): Promise<Flow> {
  const caller = asking.getStore();
  if (caller) return caller.load(ref);
  if (ref.startsWith(":")) {
    throw new FlowRefError(`'${ref}' is relative to the flow asking, and no flow is asking`);
  }
  const outside = loaderOutsideAnyRun();
  if (!outside) throw new FlowRuntimeError(`'${ref}': a flow is loaded inside a run, or after importing hmz`);
  return outside(ref);
}
