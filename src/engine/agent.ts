/** An agent as a call holds it: a driver under the grant of the role that it fills. */

import type { Agent } from "../flows/agent.ts";
import type { Callbacks } from "../flows/callbacks.ts";
import type { Cli } from "../flows/command-line.ts";
import type { AgentRoleDefinition } from "../flows/definition.ts";
import type { AgentNeed, Harness } from "../flows/harness.ts";
import type { HookFn, HookKind } from "../flows/hooks.ts";
import type { Permission } from "../flows/permission.ts";
import type { Tool } from "../flows/tool.ts";
import type { Call } from "./call.ts";
import type { AgentDriver, Skill } from "./ports.ts";

/** Exactly what a role declared: nothing else of the driver's is reached through a view. */
export interface Grant {
  readonly needs: ReadonlySet<AgentNeed>;
  readonly permission: Permission;
  /** The skills that it was narrowed to; left out where it carries all of its family's. */
  readonly skills?: readonly Skill[];
  readonly tools: readonly Tool[];
  readonly clis: readonly Cli[];
  readonly callbacks: Callbacks;
}

export type Hooks = { [K in HookKind]?: HookFn<K> };

/** What an agent shares with those derived from it: the driver, the hooks, and whose sessions they may use. */
export interface Family {
  readonly kind: "agent";
  readonly driver: AgentDriver;
  readonly call: Call;
  readonly role: string;
  readonly hooks: Hooks;
  /** The moments that a hook hangs on: made anew when that changes, so that a turn that began keeps its own. */
  hung: ReadonlySet<HookKind>;
  /** What the role names, resolved before the flow's function runs. */
  skills: readonly Skill[];
}

export interface AgentRecord {
  readonly family: Family;
  readonly grant: Grant;
  /** How a flow holds it; made once. */
  view?: Agent;
}

/**
 * Why an agent cannot put a role's command lines on its PATH; `undefined` where it can, or there are none.
 *
 * @param shelves As its driver says; left out where there is no driver yet.
 */
export function unshelved(clis: readonly Cli[], harness: Harness, shelves?: boolean): string | undefined {
  if (clis.length === 0) return undefined;
  if (harness === "litellm") return "declares clis, and litellm has no shell to run them from";
  if (shelves ?? true) return undefined;
  return `declares clis, and this release puts none on the PATH of ${harness}; offer their commands as tools`;
}

/** The agent that fills a role of a call. */
export function filledAgent(
  call: Call,
  role: AgentRoleDefinition,
  driver: AgentDriver,
  needs: ReadonlySet<AgentNeed> = role.needs,
): AgentRecord {
  const { permission, tools, clis, callbacks } = role;
  return {
    family: { kind: "agent", driver, call, role: role.name, hooks: {}, hung: new Set(), skills: [] },
    grant: { needs, permission, tools, clis, callbacks },
  };
}

/** The skills that an agent's sessions carry. */
export function skillsOf({ family, grant }: AgentRecord): readonly Skill[] {
  return grant.skills ?? family.skills;
}
