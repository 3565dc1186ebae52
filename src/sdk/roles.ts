/** Whether what was given fills the roles that a flow declares: everything that can be refused without asking a machine. */

import { unshelved } from "../engine/agent.ts";
import type { Budget } from "../flows/budget.ts";
import type {
  AgentRoleDefinition,
  EnvRoleDefinition,
  FlowDefinition,
  OutworlderRoleDefinition,
} from "../flows/definition.ts";
import { type AgentNeed, type Harness, HARNESSES } from "../flows/harness.ts";
import { Refused } from "./refused.ts";

/** What fills an agent role, as far as it is checked. */
export interface GivenAgent {
  readonly role: string;
  readonly harness: Harness;
  /** What its driver serves; left out where there is no driver yet: what its harness's row says. */
  readonly serves?: ReadonlySet<AgentNeed> | undefined;
  /** Whether its driver puts command lines on the agent's PATH; left out where there is no driver yet. */
  readonly shelves?: boolean | undefined;
}

/**
 * Refuses agents that do not fill a flow's roles.
 *
 * @param name The flow, as it was named.
 */
export function checkAgents(name: string, { agents }: FlowDefinition, given: readonly GivenAgent[]): void {
  const roles = new Map(agents.map((role) => [role.name, role]));
  const seen = new Set<string>();
  for (const { role: called } of given) {
    if (seen.has(called)) throw new Refused(`${name}: duplicate agent role '${called}'`);
    seen.add(called);
    const role = roles.get(called);
    if (!role) throw new Refused(`${name} has no agent role '${called}'; ${available(agents.filter(isAgent))}`);
    if (!isAgent(role)) {
      throw new Refused(`${name}: '${called}' is assigned automatically by the runtime and cannot be set with -a`);
    }
  }
  for (const role of agents) {
    if (isAgent(role) && !role.optional && !seen.has(role.name)) {
      throw new Refused(`${name} needs an agent for '${role.name}'; specify each with -a ROLE=CLI/MODEL:EFFORT`);
    }
  }
  for (const filled of given) {
    const role = roles.get(filled.role);
    if (role && isAgent(role)) checkFilled(name, role, filled);
  }
}

function checkFilled(name: string, role: AgentRoleDefinition, { harness, serves, shelves }: GivenAgent): void {
  const said = `${name}: '${role.name}'`;
  if (role.harness !== undefined && role.harness !== harness) {
    throw new Refused(`${said} requires ${role.harness}, but got ${harness}`);
  }
  const served = serves ?? new Set<AgentNeed>([...HARNESSES[harness].needs, ...UP_TO_THE_DRIVER]);
  const unmet = [...role.needs].filter((need) => !served.has(need));
  if (unmet.length > 0) throw new Refused(`${said} needs ${unmet.join(", ")}, which ${harness} does not support`);
  const why = unshelved(role.clis, harness, shelves);
  if (why !== undefined) throw new Refused(`${said} ${why}`);
}

/** Needs that no row lists: a driver says itself whether it serves them. */
const UP_TO_THE_DRIVER: readonly AgentNeed[] = ["tool_callbacks", "model_callbacks"];

function isAgent(role: AgentRoleDefinition | OutworlderRoleDefinition): role is AgentRoleDefinition {
  return role.kind === "agent";
}

/** Refuses environments that do not fill a flow's roles. */
export function checkEnvs(name: string, { envs }: FlowDefinition, given: readonly string[]): void {
  const roles = new Map<string, EnvRoleDefinition>(envs.map((role) => [role.name, role]));
  const seen = new Set<string>();
  for (const called of given) {
    if (seen.has(called)) throw new Refused(`${name}: duplicate environment role '${called}'`);
    seen.add(called);
    const role = roles.get(called);
    if (!role) {
      throw new Refused(
        `${name} has no environment role '${called}'; ${available(envs.filter(({ local }) => !local))}`,
      );
    }
    if (role.local) {
      throw new Refused(`${name}: '${called}' is the workspace the run started in and cannot be set with -e`);
    }
  }
  for (const role of envs) {
    if (!role.local && !role.optional && !seen.has(role.name)) {
      throw new Refused(
        `${name} needs an environment for '${role.name}'; specify each with -e ROLE=BACKEND[@PROVIDER]/WORKDIR`,
      );
    }
  }
}

function available(roles: readonly { readonly name: string }[]): string {
  if (roles.length === 0) return "it takes none";
  return `available roles are ${roles.map((role) => `'${role.name}'`).join(", ")}`;
}

/** The run's budget; one is required of every flow but `chat`. */
export function requiredBudget(name: string, given: Budget | undefined, chat: boolean): Budget {
  if (given) return given;
  if (chat) return { cost: Infinity };
  throw new Refused(
    `${name} requires a budget: specify with -p budget.cost=...,budget.duration=...,budget.output_tokens=...`,
  );
}
