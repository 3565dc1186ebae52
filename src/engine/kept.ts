/** Conversations that a call keeps in its state: copied as they stand, carried on by new sessions. */

import type { Session } from "../flows/agent.ts";
import { SessionError, StateNotSerializable, UnsupportedOperation } from "../flows/errors.ts";
import type { Call } from "./call.ts";
import { isOutworlderSession } from "./outworlder.ts";
import { SessionRecord, sessionOf } from "./session.ts";
import type { KeptSession, StateSessions } from "./state.ts";
import { agentOf } from "./view.ts";

/** What a call's state may keep: its own sessions. */
export function sessionsKeptBy(call: Call): StateSessions {
  return {
    isSession: (value) => sessionOf(value) !== undefined || isOutworlderSession(value),
    assertKeepable: (value) => assertKeepable(call, value),
    keep: (sessions) => keptAll(call, sessions),
    carriedOn: (kept) => carriedOn(call, kept),
  };
}

function assertKeepable(call: Call, value: unknown): void {
  const session = sessionOf(value);
  if (!session) throw new StateNotSerializable("an outworlder's session cannot be kept in a flow's state");
  const { driver, role, call: own } = session.agent.family;
  const why = (): string | undefined => {
    if (own !== call) return "a session is kept only in the state of the flow call it is of";
    if (session.closed) return "the session to keep is over";
    if (session.under) return "a turn of the session to keep is under way";
    if (session.turns === 0 && !session.carries) return "the session to keep has taken no turn to carry on from";
    if (driver.forks === "never") return `${driver.harness} cannot fork a session`;
    if (session.place && session.place.machine.backend !== "local") {
      return `${driver.harness} keeps a conversation on another machine, not here`;
    }
    return undefined;
  };
  const said = why();
  if (said !== undefined) throw new StateNotSerializable(`${role}: ${said}`);
}

/** Copies all of them; where one cannot be, takes the copies of the others away again. */
function keptAll(call: Call, sessions: readonly unknown[]): ReadonlyMap<unknown, KeptSession> {
  const all = new Map<unknown, KeptSession>();
  const discards: (() => void)[] = [];
  try {
    for (const view of sessions) {
      const session = sessionOf(view) as SessionRecord;
      // Carried on and not gone on yet: it is still what was kept.
      all.set(view, session.turns === 0 && session.carries ? session.carries : copied(call, session, discards));
    }
    return all;
  } catch (error) {
    for (const discard of discards) discard();
    throw error;
  }
}

function copied(call: Call, session: SessionRecord, discards: (() => void)[]): KeptSession {
  const { driver: agent, role } = session.agent.family;
  const { driver } = session;
  if (!driver?.keep)
    throw new StateNotSerializable(`${role}: ${agent.harness} keeps no conversation that can be copied`);
  try {
    const kept = call.run.keep(agent.harness);
    discards.push(() => kept.discard());
    driver.keep(kept.directory);
    return { harness: agent.harness, id: driver.id, at: kept.directory, role };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    const worded = error instanceof UnsupportedOperation ? said : `the conversation cannot be kept: ${said}`;
    throw new StateNotSerializable(`${role}: ${worded}`, { cause: error });
  }
}

function carriedOn(call: Call, kept: KeptSession): Session {
  const agent = agentOf(call.handed?.agents[kept.role]);
  if (!agent) {
    throw new SessionError(`${kept.role}: no agent fills the role that the session was kept of`);
  }
  return new SessionRecord(agent, { carries: kept }).view;
}
