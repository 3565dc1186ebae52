/** The events of a run, for whoever shows or writes them. */

export { isTurnEvent, TOKEN_KINDS } from "../engine/events.ts";
export type { RunEvent, Tokens, TurnEvent } from "../engine/events.ts";
export { toJsonEvent } from "../home/json-event.ts";
