/** Agents as a flow holds them: a view grants exactly what its role declared, whatever the driver behind it could do. */

import type { z } from "zod";
import type { Agent, RunOptions, Session } from "../flows/agent.ts";
import { CapabilityNotGranted, SessionError } from "../flows/errors.ts";
import type { AgentNeed, Harness } from "../flows/harness.ts";
import type { HookFn, HookKind } from "../flows/hooks.ts";
import { Permission, type PermissionLike } from "../flows/permission.ts";
import { type AgentRecord, skillsOf } from "./agent.ts";
import type { Skill } from "./ports.ts";
import { refused } from "./refusal.ts";
import { SessionRecord, sessionOf } from "./session.ts";
import { takeTurn } from "./turn.ts";

type Options = RunOptions & { readonly outputSchema?: z.ZodType };

let recordOf: (view: unknown) => AgentRecord | undefined;

class AgentView {
  readonly #agent: AgentRecord;

  constructor(agent: AgentRecord) {
    this.#agent = agent;
    Object.freeze(this);
  }

  static {
    recordOf = (view) => (typeof view === "object" && view !== null && #agent in view ? view.#agent : undefined);
  }

  get role(): string {
    return this.#agent.family.role;
  }

  get harness(): Harness {
    return this.#agent.family.driver.harness;
  }

  get model(): string {
    return this.#agent.family.driver.model;
  }

  get effort(): string {
    return this.#agent.family.driver.effort;
  }

  get provider(): string {
    return this.#agent.family.driver.provider;
  }

  async spawn(): Promise<Session> {
    const over = this.#going();
    if (over) await over;
    return new SessionRecord(this.#agent).view;
  }

  async run(prompt: string, options: Options = {}): Promise<unknown> {
    if (typeof prompt !== "string") throw new TypeError(`${this.role}: a prompt is a string`);
    const { session: given, ...rest } = options;
    if (given !== undefined) return takeTurn(this.#agent, this.#own(given), prompt, rest);
    const over = this.#going();
    if (over) await over;
    const session = new SessionRecord(this.#agent);
    // Held until the turn is over: a view that nothing references closes its session.
    const view = session.view;
    try {
      return await takeTurn(this.#agent, session, prompt, rest);
    } finally {
      await view[Symbol.asyncDispose]();
    }
  }

  /** Resolves where the call still goes. */
  #going(): Promise<void> | undefined {
    try {
      this.#agent.family.call.assertGoing();
      return undefined;
    } catch (error) {
      return refused(this.#agent.family.call, error);
    }
  }

  async fork(session: Session): Promise<Session> {
    this.#agent.family.call.assertGoing();
    const parent = this.#own(session);
    if (parent.closed) throw new SessionError(`${this.role}: the session to fork is over`);
    if (parent.turns === 0) {
      throw new SessionError(`${this.role}: the session to fork has taken no turn to carry on from`);
    }
    return new SessionRecord(this.#agent, { forkOf: parent }).view;
  }

  derive(narrower: { readonly permission?: PermissionLike; readonly skills?: readonly string[] } = {}): Agent {
    const { family, grant } = this.#agent;
    const { permission, skills } = narrower;
    if (permission !== undefined && (typeof permission !== "object" || permission === null)) {
      throw new TypeError(`permission=${String(permission)} is not a Permission`);
    }
    const wanted = permission === undefined ? grant.permission : new Permission(permission);
    if (!grant.permission.covers(wanted)) {
      throw new CapabilityNotGranted(
        `${this.role}: ${wanted} is wider than the ${grant.permission} this agent was granted`,
      );
    }
    if (skills !== undefined && !Array.isArray(skills)) {
      throw new TypeError(`skills=${String(skills)} is not an array of skill names`);
    }
    const granted = skillsOf(this.#agent);
    const strange = (skills ?? []).filter((name) => !granted.some((skill) => isCalled(skill, name)));
    if (strange.length > 0) {
      throw new CapabilityNotGranted(
        `${this.role}: ${strange.join(", ")} is not among the skills this agent was granted`,
      );
    }
    const narrowed = skills && granted.filter((skill) => skills.some((name) => isCalled(skill, name)));
    return agentView({
      family,
      grant: { ...grant, permission: wanted, ...(narrowed ? { skills: narrowed } : {}) },
    });
  }

  async steer(prompt: string, options: { readonly session: Session; readonly queued?: boolean }): Promise<void> {
    this.#assertGranted("steering", "steer");
    const session = this.#own(options?.session);
    if (session.closed) throw new SessionError(`${this.role}: the session is over`);
    if (!session.under) throw new SessionError(`${this.role}: no turn of this session is under way to steer`);
    await session.under.steer(prompt, options.queued ?? true);
  }

  onSessionStart(fn: HookFn<"session_start"> | null): void {
    this.#hang("session_start", fn);
  }

  onUserPromptSubmit(fn: HookFn<"user_prompt_submit"> | null): void {
    this.#hang("user_prompt_submit", fn);
  }

  onPreToolUse(fn: HookFn<"pre_tool_use"> | null): void {
    this.#hang("pre_tool_use", fn);
  }

  onNotification(fn: HookFn<"notification"> | null): void {
    this.#hang("notification", fn);
  }

  onStop(fn: HookFn<"stop"> | null): void {
    this.#hang("stop", fn);
  }

  onSessionEnd(fn: HookFn<"session_end"> | null): void {
    this.#hang("session_end", fn);
  }

  onPermissionRequest(fn: HookFn<"permission_request"> | null): void {
    this.#hang("permission_request", fn, "permission_request");
  }

  onSubagentStart(fn: HookFn<"subagent_start"> | null): void {
    this.#hang("subagent_start", fn, "subagent_start");
  }

  onSubagentStop(fn: HookFn<"subagent_stop"> | null): void {
    this.#hang("subagent_stop", fn, "subagent_stop");
  }

  onAskUser(fn: HookFn<"ask_user"> | null): void {
    this.#hang("ask_user", fn, "ask_user");
  }

  #hang<K extends HookKind>(kind: K, fn: HookFn<K> | null, need?: AgentNeed): void {
    if (need) this.#assertGranted(need, `a ${kind} hook`);
    if (fn !== null && typeof fn !== "function")
      throw new TypeError(`${this.role}: a ${kind} hook is a function, or null`);
    const { family } = this.#agent;
    const hung = new Set(family.hung);
    if (fn === null) {
      delete family.hooks[kind];
      hung.delete(kind);
    } else {
      Object.assign(family.hooks, { [kind]: fn });
      hung.add(kind);
    }
    family.hung = hung;
  }

  #assertGranted(need: AgentNeed, what: string): void {
    if (!this.#agent.grant.needs.has(need)) {
      throw new CapabilityNotGranted(`${this.role}: ${what} needs ${need} on the role`);
    }
  }

  /** The session behind a view, where it is this agent's or one's that shares its family. */
  #own(given: unknown): SessionRecord {
    const session = sessionOf(given);
    if (!session || session.agent.family !== this.#agent.family) {
      throw new SessionError(`${this.role}: ${described(given)} is not one of this agent's`);
    }
    return session;
  }
}

/** The view of an agent. */
export function agentView(agent: AgentRecord): Agent {
  agent.view ??= new AgentView(agent) as unknown as Agent;
  return agent.view;
}

/** The agent behind a view; `undefined` for a value that is none. */
export function agentOf(view: unknown): AgentRecord | undefined {
  return recordOf(view);
}

/** A skill is asked for by its name, or by what the role wrote to be given it. */
function isCalled({ name, entries }: Skill, called: string): boolean {
  return name === called || entries.includes(called);
}

function described(value: unknown): string {
  const session = sessionOf(value);
  if (session) return `a session of ${session.agent.family.role}`;
  return value === null || typeof value !== "object" ? String(value) : "this object";
}
