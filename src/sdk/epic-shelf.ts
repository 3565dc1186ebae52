/** The record of the runs of a workspace, or of every one. Apart from `Hmz`, so that reading it loads no engine. */

import { basename, join, resolve } from "node:path";
import type { Epic, EpicSummary } from "../home/epics.ts";
import type { ExportedEpic } from "../home/export.ts";
import type { Home } from "../home/paths.ts";
import type { TraceCounts } from "../home/trace.ts";
import { Refused } from "./refused.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Where what is made of an epic is written. */
export interface EpicFileOptions {
  /** Relative to the workspace, or absolute. */
  readonly file?: string | undefined;
  /** Replace a file that is there. */
  readonly force?: boolean | undefined;
}

/** A trace that was written. */
export interface TracedEpic extends TraceCounts {
  /** Absolute. */
  readonly file: string;
}

/**
 * The record of runs. All but `read` reject with `Refused` where the home of hmz is no directory; an epic is named by a
 * path, a name, its beginning, its last six characters, or `last`.
 */
export interface EpicShelf {
  /** Newest first; of every workspace where `everywhere`. `more` counts those past `most`. */
  list(options?: {
    readonly most?: number;
    readonly everywhere?: boolean;
  }): Promise<{ readonly epics: readonly EpicSummary[]; readonly more: number }>;
  /** The directories that a name means. */
  find(name: string): Promise<readonly string[]>;
  /** The one directory that a name means. @throws Refused where it means none, or several. */
  locate(name: string): Promise<string>;
  read(directory: string): Promise<Epic>;
  /** Why no run can pick an epic up, in a sentence; `""` where one can. */
  unresumable(directory: string): Promise<string>;
  /**
   * Writes the trace of a run, which opens in Perfetto. Default: a new file under `traces/` of the epic.
   *
   * @throws Refused where the epic is not found, or the file cannot be written.
   */
  trace(epic: string, options?: EpicFileOptions): Promise<TracedEpic>;
  /**
   * Writes a run as one file to hand on, without its secrets: `<epic>.epic.tar.gz`. Default: in the workspace's `.hmz/`.
   *
   * @throws Refused where the epic is not found, or the file cannot be written.
   */
  export(epic: string, options?: EpicFileOptions): Promise<ExportedEpic>;
}

/** How many of the epics that a name means are listed. */
const MOST_MEANT = 5;

/** The record of a workspace's runs, all asked for anew on each use. */
export function epicShelf(of: {
  readonly home: () => Promise<Home>;
  readonly workspace: () => string;
  readonly env: () => Env;
}): EpicShelf {
  const find = async (name: string): Promise<readonly string[]> => {
    const [{ findEpics }, home] = await Promise.all([import("../home/epics.ts"), of.home()]);
    return refusing(() => findEpics(home, of.workspace(), name));
  };
  const locate = async (name: string): Promise<string> => {
    const found = await find(name);
    const [directory] = found;
    if (directory === undefined) {
      throw new Refused(
        name === "last" ? `no run was started in ${of.workspace()}` : `no epic is called '${name}': see hmz epics`,
      );
    }
    if (found.length > 1) throw new Refused(severalMeant(name, found));
    return directory;
  };
  return {
    list: async ({ most, everywhere = false } = {}) => {
      const [{ listEpics }, home] = await Promise.all([import("../home/epics.ts"), of.home()]);
      return refusing(() =>
        listEpics(home, {
          ...(everywhere ? {} : { workspace: of.workspace() }),
          ...(most === undefined ? {} : { most }),
        }),
      );
    },
    find,
    locate,
    read: async (directory) => (await import("../home/epics.ts")).readEpic(directory),
    unresumable: async (directory) => {
      const [{ readSummary }, { resumableAt, UnresumableEpic }, home] = await Promise.all([
        import("../home/epics.ts"),
        import("../home/resumable.ts"),
        of.home(),
      ]);
      const { began, name } = readSummary(directory);
      if (!began.resumable) {
        return `${began.flow || name} does not support resuming, so there is no run to resume`;
      }
      try {
        resumableAt(home, { workspace: of.workspace(), epic: directory });
        return "";
      } catch (error) {
        if (error instanceof UnresumableEpic) return error.message.replace(directory, name);
        throw error;
      }
    },
    trace: async (epic, { file, force = false } = {}) => {
      const directory = await locate(epic);
      const { writeTrace } = await import("../home/trace-file.ts");
      const path = file === undefined ? undefined : resolve(of.workspace(), file);
      return refusing(() => writeTrace(directory, path, force));
    },
    export: async (epic, { file, force = false } = {}) => {
      const directory = await locate(epic);
      const [{ exportEpic }, { Redaction }, { prepareExports }, { version }] = await Promise.all([
        import("../home/export.ts"),
        import("../home/redaction.ts"),
        import("../home/project.ts"),
        import("./version.ts"),
      ]);
      return refusing(() => {
        const path =
          file === undefined
            ? join(prepareExports(of.workspace()), `${basename(directory)}.epic.tar.gz`)
            : resolve(of.workspace(), file);
        const about = { hmz: version(), node: process.version, platform: `${process.platform}-${process.arch}` };
        return exportEpic({ directory, file: path, force, redaction: Redaction.of(of.env()), about });
      });
    },
  };
}

function severalMeant(name: string, found: readonly string[]): string {
  const names = found
    .map((path) => `  ${basename(path)}`)
    .toSorted()
    .reverse();
  const more = names.length > MOST_MEANT ? [`  and ${names.length - MOST_MEANT} more`] : [];
  return [`'${name}' means ${found.length} epics: say more of its name`, ...names.slice(0, MOST_MEANT), ...more].join(
    "\n",
  );
}

async function refusing<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { UnusablePath } = await import("../home/unusable-path.ts");
    throw error instanceof UnusablePath ? new Refused(error.message, { cause: error }) : error;
  }
}

/** @param workspace Absolute. */
export function epicShelfOf(workspace: string, env: Env): EpicShelf {
  const home = async (): Promise<Home> => (await import("../home/paths.ts")).Home.of(env);
  return epicShelf({ home, workspace: () => workspace, env: () => env });
}
