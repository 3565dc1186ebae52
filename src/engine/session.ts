/** A session: one conversation of one agent, closed exactly once. */

import type { Agent, Session } from "../flows/agent.ts";
import type { Usage } from "../flows/budget.ts";
import { SessionError, UnsupportedOperation } from "../flows/errors.ts";
import type { Forks } from "../flows/harness.ts";
import type { Tool } from "../flows/tool.ts";
import { isTool } from "../flows/tool.ts";
import { type AgentRecord, skillsOf } from "./agent.ts";
import { asFlow } from "./call.ts";
import { bound } from "./callbacks.ts";
import { within } from "./deadline.ts";
import { hook } from "./hooks.ts";
import type { Place, SessionDriver } from "./ports.ts";
import type { KeptSession } from "./state.ts";
import type { Turn } from "./turn.ts";

const NOTHING = {};

/** How long a session's end waits for its hook: the end of its run waits for the session's. */
const SESSION_END_MS = 30_000;

export class SessionRecord {
  readonly agent: AgentRecord;
  readonly forkOf: SessionRecord | undefined;
  /** The kept conversation that it carries on. */
  readonly carries: KeptSession | undefined;
  /** How many turns the parent had taken when this fork was asked for. */
  readonly #parentTurns: number;
  /** The session's place among its role's, from 1, for people. */
  readonly conversation: number;
  driver: SessionDriver | undefined;
  /** Where the last turn worked. */
  place: Place | undefined;
  /** Turns that the harness has taken. */
  turns = 0;
  under: Turn | undefined;
  /** What the session offers beside its role's tools. */
  offered: readonly Tool[] | undefined;
  #cost = 0;
  #outputTokens = 0;
  #duration = 0;
  #closing: Promise<void> | undefined;
  #begun = false;
  #view: WeakRef<Session> | undefined;
  /** A fork holds its parent open until its own first turn. */
  #parent: Session | undefined;

  constructor(agent: AgentRecord, from: { readonly forkOf?: SessionRecord; readonly carries?: KeptSession } = NOTHING) {
    const { forkOf, carries } = from;
    this.agent = agent;
    this.forkOf = forkOf;
    this.carries = carries;
    this.#parentTurns = forkOf?.turns ?? 0;
    this.#parent = forkOf?.view;
    const { call, role } = agent.family;
    this.conversation = call.run.nextConversation(role);
    call.holds(this);
  }

  get closed(): boolean {
    return this.#closing !== undefined;
  }

  /** Whether its first turn has begun: its start and its end are heard of then. */
  get begun(): boolean {
    return this.#begun;
  }

  begins(): void {
    this.#begun = true;
    this.#parent = undefined;
  }

  get usage(): Usage {
    return { duration: this.#duration, cost: this.#cost, outputTokens: this.#outputTokens };
  }

  spent(cost: number, outputTokens: number): void {
    this.#cost += cost;
    this.#outputTokens += outputTokens;
  }

  lasted(ms: number): void {
    this.#duration += ms;
  }

  /** The tools on offer: the role's, and those that the session offers. */
  get tools(): readonly Tool[] {
    const { tools } = this.agent.grant;
    return this.offered
      ? [...tools.filter((tool) => !this.offered?.some(({ name }) => name === tool.name)), ...this.offered]
      : tools;
  }

  /** The driver's side of it, opened by its first turn. */
  opened(place: Place): SessionDriver {
    const { call, driver, role } = this.agent.family;
    const { permission, callbacks } = this.agent.grant;
    const skills = skillsOf(this.agent);
    if (this.driver) {
      this.#assertMovable(driver.forks, driver.harness, place, "move");
      return this.driver;
    }
    if (this.forkOf) {
      if (driver.forks === "never") throw new UnsupportedOperation(`${driver.harness} cannot fork a session`);
      this.#assertMovable(driver.forks, driver.harness, place, "fork");
      if (this.forkOf.turns > this.#parentTurns) {
        throw new SessionError(
          `${role}: the session it was forked from has taken a turn since; fork it again, and take the fork's first turn before the parent's next`,
        );
      }
    }
    const { carries } = this;
    if (carries) this.#assertCarriable(carries, place);
    const parent = this.forkOf?.driver;
    if (this.forkOf?.closed && !this.#parent) throw new SessionError(`${role}: the session to fork is over`);
    this.driver = driver.open({
      role,
      permission,
      skills,
      callbacks: bound(callbacks, (fn) =>
        asFlow(call, () => fn({ ctx: call.context, session: this.view }), this.under?.cancellation),
      ),
      ...(parent ? { forkOf: parent } : {}),
      ...(carries ? { carries } : {}),
    });
    return this.driver;
  }

  #assertCarriable({ harness }: KeptSession, { machine }: Place): void {
    const { driver } = this.agent.family;
    if (driver.harness !== harness) {
      throw new UnsupportedOperation(`${driver.harness} cannot carry on a conversation ${harness} kept`);
    }
    if (machine.backend !== "local") {
      throw new UnsupportedOperation(
        `${harness} cannot carry a kept conversation onto another machine its CLI runs on`,
      );
    }
  }

  #assertMovable(forks: Forks, harness: string, place: Place, verb: "move" | "fork"): void {
    const from = verb === "fork" ? this.forkOf?.place : this.place;
    if (!from || (from.machine === place.machine && from.workdir === place.workdir)) return;
    if (from.machine !== place.machine) {
      throw new UnsupportedOperation(`${harness} cannot ${verb} a session onto another machine`);
    }
    if (forks === "never") throw new UnsupportedOperation(`${harness} cannot ${verb} a session`);
    if (forks === "in-place") {
      throw new UnsupportedOperation(`${harness} cannot ${verb} a session into another workdir`);
    }
  }

  /** The view that a flow holds; made again where the flow holds none any more, as a hook at its end is given. */
  get view(): Session {
    const held = this.#view?.deref();
    if (held) return held;
    const view = new SessionView(this);
    this.#view = new WeakRef(view);
    if (!this.closed) forgotten.register(view, this, this);
    return view;
  }

  /** Interrupts a turn under way, tells the session's end, ends its processes. Once, however often it is asked. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    forgotten.unregister(this);
    const { call, hooks } = this.agent.family;
    this.under?.cancel(new SessionError(`${this.agent.family.role}: the session is over`));
    await this.under?.comesToRest();
    try {
      if (this.#begun) {
        const fn = hook(hooks, "session_end");
        const told = fn && asFlow(call, async () => fn({ ctx: call.context, session: this.view }));
        if (told) {
          await within(told, SESSION_END_MS, () => {
            call.run.notice(
              this,
              `a session_end hook did not end within ${SESSION_END_MS / 1_000} s; nothing waits for it`,
            );
          });
        }
      }
    } catch (error) {
      call.run.notice(this, `a session_end hook failed: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      await this.driver?.close().catch((error: unknown) => {
        call.run.notice(this, `closing the session failed: ${error instanceof Error ? error.message : String(error)}`);
      });
      call.drops(this);
    }
  }
}

/** Sessions whose view nothing references any more are closed. The record must not hold its view. */
const forgotten = new FinalizationRegistry<SessionRecord>((session) => void session.close());

let recordOf: (view: unknown) => SessionRecord | undefined;

class SessionView implements Session {
  readonly #session: SessionRecord;

  constructor(session: SessionRecord) {
    this.#session = session;
    Object.freeze(this);
  }

  static {
    recordOf = (view) => (typeof view === "object" && view !== null && #session in view ? view.#session : undefined);
  }

  get agent(): Agent {
    return this.#session.agent.view as Agent;
  }

  get usage(): Usage {
    return this.#session.usage;
  }

  get takesTools(): boolean {
    return this.#session.agent.family.driver.serves.has("tools");
  }

  offers(tools: readonly Tool[] | null): void {
    const session = this.#session;
    const { driver, role } = session.agent.family;
    if (session.closed) throw new SessionError(`${role}: the session is over`);
    if (tools === null) {
      session.offered = undefined;
      return;
    }
    if (!this.takesTools) throw new UnsupportedOperation(`${role}: ${driver.harness} takes no tools of a flow's own`);
    if (!Array.isArray(tools) || !tools.every(isTool)) throw new TypeError(`${role}: offers takes an array of tools`);
    if (new Set(tools.map(({ name }) => name)).size < tools.length) {
      throw new TypeError(`${role}: offers names one tool twice`);
    }
    session.offered = [...tools];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.close();
  }
}

/** The session behind a view; `undefined` for a value that is none. */
export function sessionOf(view: unknown): SessionRecord | undefined {
  return recordOf(view);
}
