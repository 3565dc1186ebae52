/** What a called flow is handed: every role checked against what is given, before anything of the flow runs. */

import type { EnvNeed } from "../flows/env.ts";
import type { AgentRoleDefinition, EnvRoleDefinition, OutworlderRoleDefinition } from "../flows/definition.ts";
import {
  CapabilityMissing,
  HarnessMismatch,
  MissingRole,
  PermissionTooNarrow,
  RequirementError,
  ResourceUnmet,
} from "../flows/errors.ts";
import { agentOf, agentView } from "./view.ts";
import { filledAgent, unshelved } from "./agent.ts";
import type { Call, Handed } from "./call.ts";
import { envOf, type EnvRecord, envView, rootEnv } from "./environment.ts";
import { outworlderOf, type OutworlderRecord, outworlderView } from "./outworlder.ts";
import type { AgentDriver, Place, RunSetup } from "./ports.ts";

type Given = Readonly<Record<string, unknown>>;

/** What another flow's call hands over: its own agents and environments, re-granted exactly what the callee declares. */
export function handedOver(call: Call, agents: Given, envs: Given): Handed {
  const { ref, definition } = call;
  assertDeclared(ref, "agent", definition.agents, agents);
  assertDeclared(ref, "environment", definition.envs, envs);
  const filled: Record<string, unknown> = {};
  for (const role of definition.agents) {
    const given = agents[role.name] ?? undefined;
    const view = role.kind === "agent" ? handedAgent(call, role, given) : handedOutworlder(call, role, given);
    if (view !== undefined) filled[role.name] = view;
  }
  const places: Record<string, unknown> = {};
  for (const role of definition.envs) {
    const view = handedEnv(call, role, envs[role.name] ?? undefined);
    if (view !== undefined) places[role.name] = view;
  }
  return { agents: filled, envs: places };
}

function assertDeclared(
  ref: string,
  kind: "agent" | "environment",
  roles: readonly { readonly name: string }[],
  given: Given,
): void {
  if (typeof given !== "object" || given === null) {
    throw new RequirementError(`${ref}: ${kind}s are given as an object, one for each role`);
  }
  for (const name of Object.keys(given)) {
    if (!roles.some((role) => role.name === name)) {
      const known = roles.map((role) => `'${role.name}'`).join(", ");
      throw new RequirementError(`${ref} has no ${kind} role '${name}'; available roles are ${known || "none"}`);
    }
  }
}

function handedAgent(call: Call, role: AgentRoleDefinition, given: unknown): unknown {
  const { ref } = call;
  if (given === undefined) {
    if (role.optional) return undefined;
    throw new MissingRole(`${ref}: no agent was given for '${role.name}'`);
  }
  const person = outworlderOf(given);
  if (person && person.call.run === call.run) {
    if (role.needs.size > 0 || role.harness) {
      throw new CapabilityMissing(`${ref}: '${role.name}' asks for what no outworlder can do`);
    }
    return outworlderView({ ...person, call, role: role.name });
  }
  const agent = agentOf(given);
  if (!agent || agent.family.call.run !== call.run) {
    throw new RequirementError(
      `${ref}: '${role.name}' was given ${printed(given)}, which is not an agent the run handed out`,
    );
  }
  const { driver } = agent.family;
  if (role.harness && driver.harness !== role.harness) {
    throw new HarnessMismatch(`${ref}: '${role.name}' is ${role.harness}, and the agent given is ${driver.harness}`);
  }
  const lacking = [...role.needs].filter((need) => !agent.grant.needs.has(need) || !driver.serves.has(need));
  if (lacking.length > 0) {
    throw new CapabilityMissing(
      `${ref}: '${role.name}' needs ${lacking.join(", ")}, which the agent given was not granted`,
    );
  }
  if (!agent.grant.permission.covers(role.permission)) {
    throw new PermissionTooNarrow(
      `${ref}: '${role.name}' needs ${role.permission}, and the agent given holds ${agent.grant.permission}`,
    );
  }
  return agentView(filledAgent(call, role, driver));
}

function handedOutworlder(call: Call, role: OutworlderRoleDefinition, given: unknown): unknown {
  const { ref, run } = call;
  if (given === undefined) return outworlderView(run.person(call, role.name));
  const agent = agentOf(given);
  if (agent) {
    throw new CapabilityMissing(`${ref}: '${role.name}' is an Outworlder, and ${agent.family.role} is an agent`);
  }
  const person = outworlderOf(given);
  if (!person || person.call.run !== run) {
    throw new RequirementError(
      `${ref}: '${role.name}' was given ${printed(given)}, which is not an agent the run handed out`,
    );
  }
  return outworlderView({ ...person, call, role: role.name });
}

function handedEnv(call: Call, role: EnvRoleDefinition, given: unknown): unknown {
  const { ref, run } = call;
  if (given === undefined) {
    if (role.local) {
      assertPlace(ref, role, run.workspace);
      return envView(workspaceEnv(call, role));
    }
    if (role.optional) return undefined;
    throw new MissingRole(`${ref}: no environment was given for '${role.name}'`);
  }
  const env = envOf(given);
  if (!env || env.call.run !== run) {
    throw new RequirementError(
      `${ref}: '${role.name}' was given ${printed(given)}, which is not an environment the run handed out`,
    );
  }
  if (role.local && env.place.machine.backend !== "local") {
    throw new CapabilityMissing(
      `${ref}: '${role.name}' is a LocalEnv, and the environment given is ${specOf(env.place)}, which is not this machine`,
    );
  }
  const lacking = [...role.needs].filter((need) => !env.needs.has(need));
  if (lacking.length > 0) {
    throw new CapabilityMissing(
      `${ref}: '${role.name}' needs ${lacking.join(", ")}, which the environment given was not granted`,
    );
  }
  assertResources(ref, role, env.place);
  return envView({ ...env, call, role: role.name, needs: role.needs });
}

function workspaceEnv(call: Call, role: EnvRoleDefinition): EnvRecord {
  const place = call.run.workspace;
  return rootEnv(call, role.name, place, role.needs);
}

function specOf({ machine, workdir }: Place): string {
  return `${machine.backend}${machine.provider ? `@${machine.provider}` : ""}${workdir}`;
}

function assertPlace(ref: string, role: EnvRoleDefinition, place: Place): void {
  // `rewind` grants nothing by itself: what a machine has to serve is `git`, which is named where it is asked for.
  const lacking = [...role.needs].filter((need) => need !== "rewind" && !place.machine.serves.has(need));
  if (lacking.length > 0) {
    throw new CapabilityMissing(
      `${ref}: '${role.name}' needs ${lacking.join(", ")}, which ${specOf(place)} does not support${becauseOf(place, lacking)}`,
    );
  }
  assertResources(ref, role, place);
}

/** Why a machine serves none of the needs, where it says so. */
function becauseOf({ machine }: Place, needs: readonly EnvNeed[]): string {
  const reasons = needs.flatMap((need) => machine.lacks?.(need) ?? []);
  return reasons.length > 0 ? `: ${[...new Set(reasons)].join("; ")}` : "";
}

function assertResources(ref: string, role: EnvRoleDefinition, { machine }: Place): void {
  const short = [
    [role.cpus, "cpus", "CPUs"],
    [role.memory, "memory", "bytes of memory"],
    [role.gpus, "gpus", "GPUs"],
    [role.gpuMemory, "gpuMemory", "bytes of memory per GPU"],
  ] as const;
  for (const [needed, size, what] of short) {
    // Only what is needed is looked at: a machine's GPUs are told by a program that takes a second.
    const there = needed > 0 ? machine.size[size] : 0;
    if (needed > there) {
      throw new ResourceUnmet(`${ref}: '${role.name}' needs ${needed} ${what}, and the environment given has ${there}`);
    }
  }
}

function printed(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "object" || typeof value === "function" ? `this ${typeof value}` : String(value);
}

// ── the top call ────────────────────────────────────────────────────────────────────────────────────────────────────

/** What the top call is handed: drivers and machines, granted what the flow declares. */
export function handedToTop(call: Call, setup: RunSetup): Handed {
  const { ref, definition } = call;
  const { agents, envs, fullView = false } = setup;
  assertDeclared(ref, "agent", definition.agents, agents);
  assertDeclared(ref, "environment", definition.envs, envs);
  const filled: Record<string, unknown> = {};
  for (const role of definition.agents) {
    if (role.kind === "outworlder") {
      if (agents[role.name]) {
        throw new RequirementError(
          `${ref}: '${role.name}' is assigned automatically by the runtime and cannot be set with -a`,
        );
      }
      filled[role.name] = outworlderView(call.run.person(call, role.name));
      continue;
    }
    const driver = agents[role.name];
    if (driver) filled[role.name] = agentView(topAgent(call, role, driver, fullView));
    else if (!role.optional) {
      throw new MissingRole(`${ref} needs an agent for '${role.name}'; specify each with -a ROLE=CLI/MODEL:EFFORT`);
    }
  }
  const places: Record<string, unknown> = {};
  for (const role of definition.envs) {
    const place = role.local ? call.run.workspace : envs[role.name];
    if (role.local && envs[role.name]) {
      throw new RequirementError(
        `${ref}: '${role.name}' is the workspace the run started in and cannot be set with -e`,
      );
    }
    if (!place) {
      if (role.optional) continue;
      throw new MissingRole(
        `${ref} needs an environment for '${role.name}'; specify each with -e ROLE=BACKEND[@PROVIDER]/WORKDIR`,
      );
    }
    assertPlace(ref, role, place);
    places[role.name] = envView(rootEnv(call, role.name, place, role.needs));
  }
  return { agents: filled, envs: places };
}

function topAgent(call: Call, role: AgentRoleDefinition, driver: AgentDriver, fullView: boolean) {
  const { ref } = call;
  if (role.harness && driver.harness !== role.harness) {
    throw new HarnessMismatch(`${ref}: '${role.name}' requires ${role.harness}, but got ${driver.harness}`);
  }
  const lacking = [...role.needs].filter((need) => !driver.serves.has(need));
  if (lacking.length > 0) {
    throw new CapabilityMissing(
      `${ref}: '${role.name}' needs ${lacking.join(", ")}, which ${driver.harness} does not support`,
    );
  }
  const why = unshelved(role.clis, driver.harness, driver.shelves);
  if (why !== undefined) throw new CapabilityMissing(`${ref}: '${role.name}' ${why}`);
  return filledAgent(call, role, driver, fullView ? driver.serves : role.needs);
}

/** The person that the run was started by, as a call's role. */
export function runsPerson(call: Call, role: string, setup: RunSetup, as: string): OutworlderRecord {
  return { kind: "outworlder", call, role, answers: { by: "run", driver: setup.outworlder, as } };
}
