/** hmz as a library. What a flow imports is `hmz/flows`. */

import { loadsOutsideAnyRun } from "../flows/ambient.ts";
import { Hmz } from "./hmz.ts";

// `load` of a program that is no flow finds what the current directory's flows are.
loadsOutsideAnyRun((ref) => new Hmz().flows.load(ref));

export { Hmz };
export type { EpicFileOptions, EpicShelf, TracedEpic } from "./epic-shelf.ts";
export type { Flows } from "./hmz.ts";
export { Run } from "./run.ts";
export type { RunOptions } from "./prepare.ts";
export type { PlacedMachine } from "./drivers.ts";
export type { ProfileChoice } from "./profile.ts";
export { Refused } from "./refused.ts";
export type { ListedFlow } from "../catalog/index.ts";
export type { AgentDriver, Machine, OutworlderDriver } from "../engine/ports.ts";
export type { CallEvent, Ending, HarnessEvent, OpenedEvent, RunEvent, Tokens, TurnEvent } from "../engine/events.ts";
export type { LiveCall } from "../engine/run.ts";
export type { Epic, EpicAgent, EpicCall, EpicSession, EpicState, EpicSummary, EpicUsage } from "../home/epics.ts";
export type { ExportedEpic, LeftOut } from "../home/export.ts";
export type { TraceCounts } from "../home/trace.ts";
