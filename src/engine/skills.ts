/** The skills of a call's agents: resolved once a run, before the flow's function runs. */

import type { FlowDefinition } from "../flows/definition.ts";
import type { Call, Handed } from "./call.ts";
import type { Skill, SkillResolver } from "./ports.ts";
import { agentOf } from "./view.ts";

/** What the roles of a run's flows name, each role of each flow resolved once. */
export class Skills {
  readonly #resolve: SkillResolver;
  readonly #resolved = new Map<FlowDefinition, Map<string, Promise<readonly Skill[]>>>();

  constructor(resolve: SkillResolver) {
    this.#resolve = resolve;
  }

  /**
   * Gives the agents of a call the skills that their roles name. `undefined` where none names any: a call without
   * skills waits for nothing.
   */
  given({ definition }: Call, { agents }: Handed): Promise<unknown> | undefined {
    const waiting: Promise<void>[] = [];
    for (const role of definition.agents) {
      if (role.kind !== "agent" || role.skills.length === 0) continue;
      const agent = agentOf(agents[role.name]);
      if (!agent) continue;
      waiting.push(this.#of(definition, role.name).then((skills) => void (agent.family.skills = skills)));
    }
    return waiting.length === 0 ? undefined : Promise.all(waiting);
  }

  #of(flow: FlowDefinition, role: string): Promise<readonly Skill[]> {
    const roles = this.#resolved.get(flow) ?? new Map<string, Promise<readonly Skill[]>>();
    this.#resolved.set(flow, roles);
    const known = roles.get(role);
    if (known) return known;
    const resolving = this.#resolve(flow, role);
    roles.set(role, resolving);
    // A flow that catches the refusal and calls again is answered anew.
    resolving.catch(() => roles.delete(role));
    return resolving;
  }
}
