/** Writing an epic: the record of one run. */

import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type Ending, isTurnEvent, type RunEvent } from "../engine/events.ts";
import type { Recorder } from "../engine/ports.ts";
import type { Usage } from "../flows/budget.ts";
import { appender } from "./appender.ts";
import { flushedAtExit } from "./exit-flush.ts";
import { toJsonEvent } from "./json-event.ts";
import { makeDirectory } from "./make-directory.ts";
import { thisOwner } from "./owner.ts";
import { type Home, workspacePath } from "./paths.ts";

/** The files of an epic. */
export const EPIC_FILES = {
  /** The run's own events, one JSON object a line. */
  record: "epic.jsonl",
  /** The turn stream: the objects of `--json`, one a line. */
  events: "events.jsonl",
  /** The journal of a resumable run. */
  journal: "resume.jsonl",
  /** The programs that ran meanwhile, where the run was profiled. */
  profile: "profile.jsonl",
  /** There for as long as the run goes; names the process that holds it. */
  held: ".held",
} as const;

/** What a run is, written before anything of it runs. */
export interface Began {
  /** As it was named: a ref, a path. */
  readonly flow: string;
  readonly ref: string;
  readonly task: string;
  readonly resumable: boolean;
  /** The name of the epic that this run picked up. */
  readonly picked_up?: string;
  readonly agents: readonly BeganAgent[];
  /** `role=spec`, as on the command line. */
  readonly envs: readonly string[];
  readonly params: unknown;
  /** Absent for a run without one. */
  readonly budget?: unknown;
}

export interface BeganAgent {
  /** The role. */
  readonly agent: string;
  /** The harness. */
  readonly backend: string;
  readonly model: string;
  readonly effort: string;
  readonly provider: string;
}

/** How a run ended. */
export interface Ended {
  readonly how: Ending;
  readonly usage: Usage;
  /** What a run that failed or was stopped says of it. */
  readonly error?: unknown;
}

/** The record of a run under way. */
export interface EpicWriter extends Recorder {
  /** The name of its directory: `<stamp>-<hex6>`. */
  readonly name: string;
  /** Absolute. */
  readonly directory: string;
  /** Writes what was spent and how it ended, and lets go of the epic. Never throws; only the first call counts. */
  end(ended: Ended): void;
}

/**
 * Makes the epic of a run that begins now.
 *
 * @param options.trouble Told once of a record that could not be written. The run goes on without it.
 * @throws Error where its directory or files cannot be made.
 */
export function createEpic(options: {
  readonly home: Home;
  readonly workspace: string;
  readonly began: Began;
  readonly trouble: (error: Error) => void;
}): EpicWriter {
  const { home, workspace, began } = options;
  let told = false;
  const trouble = (error: Error): void => {
    if (told) return;
    told = true;
    options.trouble(error);
  };
  const directory = freshDirectory(home.epicsOf(workspace));
  // Before the record: an epic that can be listed is held already.
  writeFileSync(join(directory, EPIC_FILES.held), JSON.stringify(thisOwner()), { mode: 0o600 });
  const record = appender(join(directory, EPIC_FILES.record), false, trouble);
  const events = appender(join(directory, EPIC_FILES.events), true, trouble);
  const write = (event: string, seconds: number, fields: object): void => {
    record.append({ event, at: new Date(seconds * 1000).toISOString(), ...fields });
  };
  write("began", Date.now() / 1000, { workspace: workspacePath(workspace), ...began });

  const unlisten = flushedAtExit(events.flush);
  let ended = false;
  return {
    name: basename(directory),
    directory,
    record(event) {
      if (ended) return;
      try {
        if (isTurnEvent(event)) events.append(toJsonEvent(event));
        else write(event.kind, event.at, fieldsOf(event));
      } catch (error) {
        trouble(error as Error);
      }
    },
    end({ how, usage, error }) {
      if (ended) return;
      ended = true;
      unlisten();
      const now = Date.now() / 1000;
      try {
        // The stream first: who reads `ended` finds every event.
        events.close();
        write("usage", now, { cost: usage.cost, output_tokens: usage.outputTokens, seconds: usage.duration / 1000 });
        write("ended", now, { how, ...(error === undefined ? {} : { error }) });
        record.close();
        rmSync(join(directory, EPIC_FILES.held), { force: true });
      } catch (error) {
        trouble(error as Error);
      }
    },
  };
}

function fieldsOf(event: Exclude<RunEvent, { turn: number }>): object {
  switch (event.kind) {
    case "called":
      return { flow: event.flow, task: event.task, call: event.call, under: event.under };
    case "returned":
      return { flow: event.flow, call: event.call, how: event.how };
    case "opened": {
      const { agent, cli, session, call, parent } = event;
      const provider = event.provider === "" ? "local" : event.provider;
      return {
        agent,
        backend: cli,
        provider,
        session,
        name: `${agent}-${cli}@${provider}-${session}`,
        call,
        ...(parent === undefined ? {} : { parent }),
      };
    }
    default:
      return {};
  }
}

/** `%Y%m%dT%H%M%S.mmmZ`, so that names sort by time. */
function stampOf(at: Date): string {
  return at.toISOString().replace(/[-:]/g, "");
}

function freshDirectory(parent: string): string {
  makeDirectory(parent, 0o700);
  for (;;) {
    const directory = join(parent, `${stampOf(new Date())}-${randomBytes(3).toString("hex")}`);
    try {
      mkdirSync(directory, { mode: 0o700 });
      return directory;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}
