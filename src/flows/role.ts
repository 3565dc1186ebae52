/** The roles that a flow declares: what it needs of the agents and environments that fill them. */

import type { Agent, Outworlder } from "./agent.ts";
import type { Callbacks } from "./callbacks.ts";
import type { Cli } from "./command-line.ts";
import type { Env, EnvNeed } from "./env.ts";
import type { AgentNeed, Harness, NeedsOf } from "./harness.ts";
import type { PermissionLike } from "./permission.ts";
import type { Tool } from "./tool.ts";

/** What {@link agent} returns: what a flow needs of the agent that fills a role. */
export interface AgentRole<N extends AgentNeed = AgentNeed> {
  readonly kind: "agent";
  readonly needs: readonly N[];
  readonly harness?: Harness | undefined;
  readonly permission?: PermissionLike | undefined;
  readonly skills: readonly string[];
  readonly tools: readonly Tool[];
  readonly clis: readonly Cli[];
  readonly callbacks: Callbacks;
}

/** What {@link outworlder} returns. */
export interface OutworlderRole {
  readonly kind: "outworlder";
}

/** Least amounts that a machine must have. */
export interface Resources {
  /** Logical CPUs. */
  readonly cpus?: number | undefined;
  /** Bytes, or text like `8GiB`. */
  readonly memory?: number | string | undefined;
  readonly gpus?: number | undefined;
  /** Bytes of each GPU, or text like `24GiB`. */
  readonly gpuMemory?: number | string | undefined;
  /** The image that a container starts from. */
  readonly image?: string | undefined;
}

/** What {@link env} returns. */
export interface EnvRole<N extends EnvNeed = EnvNeed> extends Resources {
  readonly kind: "env";
  /** Whether it is the workspace that the run was started in. */
  readonly local: false;
  readonly needs: readonly N[];
}

/** What {@link localEnv} returns. */
export interface LocalEnvRole<N extends EnvNeed = EnvNeed> extends Resources {
  readonly kind: "env";
  readonly local: true;
  readonly needs: readonly N[];
}

/** A role that need not be given: its view is `undefined` then. */
export interface OptionalRole<R extends AgentRole | OutworlderRole | EnvRole | LocalEnvRole> {
  readonly kind: "optional";
  readonly role: R;
}

type NeedsOfHarness<H> = H extends Harness ? NeedsOf<H> : never;
type NeedsOfTools<T> = T extends readonly [unknown, ...unknown[]] ? "tools" : T extends readonly [] ? never : "tools";
type NeedsOfCallbacks<C> =
  | ("beforeTool" extends keyof C ? "tool_callbacks" : never)
  | ("afterTool" extends keyof C ? "tool_callbacks" : never)
  | ("beforeModel" extends keyof C ? "model_callbacks" : never)
  | ("afterModel" extends keyof C ? "model_callbacks" : never);

/**
 * An agent role.
 *
 * @param options.needs What its agent must serve beyond a plain agent; each need grants its methods.
 * @param options.harness That harness, with every need in its row.
 * @param options.permission What its sessions may touch; they run under exactly this.
 * @param options.skills Skills given to its sessions: a name under the flow's `skills/`, or a git URL.
 * @param options.tools The flow's functions that its sessions offer the agent as tools.
 * @param options.clis The flow's command lines that its sessions put on the agent's PATH.
 * @param options.callbacks Functions called around its model and tool calls.
 */
export function agent<
  const N extends readonly AgentNeed[] = readonly [],
  const H extends Harness | undefined = undefined,
  const T extends readonly Tool[] = readonly [],
  const C extends Callbacks = Record<never, never>,
>(
  options: {
    readonly needs?: N;
    readonly harness?: H;
    readonly permission?: PermissionLike;
    readonly skills?: readonly string[];
    readonly tools?: T;
    readonly clis?: readonly Cli[];
    readonly callbacks?: C & Callbacks;
  } = {},
): AgentRole<N[number] | NeedsOfHarness<H> | NeedsOfTools<T> | NeedsOfCallbacks<C>> {
  const { needs = [], harness, permission, skills = [], tools = [], clis = [], callbacks = {} } = options;
  return {
    kind: "agent",
    // What tools, callbacks and a harness imply is added where the flow is defined, and mistakes are said there.
    needs: needs as readonly never[],
    harness,
    permission,
    skills,
    tools,
    clis,
    callbacks,
  };
}

/** A role for the person outside the run. Filled by the run. */
export function outworlder(): OutworlderRole {
  return { kind: "outworlder" };
}

/** An environment role: a working directory on a machine, filled with `-e`. */
export function env<const N extends readonly EnvNeed[] = readonly []>(
  options: Resources & { readonly needs?: N } = {},
): EnvRole<N[number]> {
  const { needs = [], ...resources } = options;
  return { kind: "env", local: false, needs: needs as readonly N[number][], ...resources };
}

/** The workspace that the run was started in. Filled by the run. */
export function localEnv<const N extends readonly EnvNeed[] = readonly []>(
  options: Resources & { readonly needs?: N } = {},
): LocalEnvRole<N[number]> {
  const { needs = [], ...resources } = options;
  return { kind: "env", local: true, needs: needs as readonly N[number][], ...resources };
}

/** A role that need not be given. */
export function optional<const R extends AgentRole<never> | AgentRole | OutworlderRole | EnvRole | LocalEnvRole>(
  role: R,
): OptionalRole<R> {
  return { kind: "optional", role };
}

/** The agent roles of a declaration, by name. */
export type AgentRoles = Readonly<
  Record<string, AgentRole | OutworlderRole | OptionalRole<AgentRole> | OptionalRole<OutworlderRole>>
>;
/** The environment roles of a declaration, by name. */
export type EnvRoles = Readonly<
  Record<string, EnvRole | LocalEnvRole | OptionalRole<EnvRole> | OptionalRole<LocalEnvRole>>
>;

/** The view that a role is handed as. */
export type ViewOf<R> =
  R extends OptionalRole<infer Inner>
    ? ViewOf<Inner> | undefined
    : R extends OutworlderRole
      ? Outworlder
      : R extends AgentRole<infer N>
        ? Agent<N>
        : R extends EnvRole<infer N> | LocalEnvRole<infer N>
          ? Env<N>
          : never;

/** What a caller may give for a role. */
type GivenFor<R> = Exclude<ViewOf<R>, undefined>;

/** Roles that a caller may leave out: optional ones, and those that the run fills. */
type MayBeLeftOut<R> = R extends { readonly kind: "optional" }
  ? true
  : R extends OutworlderRole
    ? true
    : R extends { readonly local: true }
      ? true
      : false;

type LeftOut<Roles> = { [K in keyof Roles]: MayBeLeftOut<Roles[K]> extends true ? K : never }[keyof Roles];

/** What a call is given for a record of roles; any views, checked as the call is made, where the roles are unknown. */
export type GivenForAll<Roles, Any> = string extends keyof Roles
  ? Readonly<Record<string, Any | undefined>>
  : GivenForEach<Roles>;

type GivenForEach<Roles> = {
  readonly [K in Exclude<keyof Roles, LeftOut<Roles>>]: GivenFor<Roles[K]>;
} & {
  readonly [K in LeftOut<Roles>]?: GivenFor<Roles[K]> | undefined;
};

/** The views of a record of roles. */
export type ViewsOf<Roles> = { readonly [K in keyof Roles]: ViewOf<Roles[K]> };
