/** The record of the runs of a workspace, or of every one. Apart from `Hmz`, so that reading it loads no engine. */

import type { Epic, EpicSummary } from "../home/epics.ts";
import type { Home } from "../home/paths.ts";
import { Refused } from "./refused.ts";

/** The record of runs. `list` and `find` reject with `Refused` where the home of hmz is no directory. */
export interface EpicShelf {
  /** Newest first; of every workspace where `everywhere`. `more` counts those past `most`. */
  list(options?: {
    readonly most?: number;
    readonly everywhere?: boolean;
  }): Promise<{ readonly epics: readonly EpicSummary[]; readonly more: number }>;
  /** The directories that a name means: a path, a name, its beginning, its last six characters, or `last`. */
  find(name: string): Promise<readonly string[]>;
  read(directory: string): Promise<Epic>;
}

/** The record of a workspace's runs, both asked for anew on each use. */
export function epicShelf(of: { readonly home: () => Promise<Home>; readonly workspace: () => string }): EpicShelf {
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
    find: async (name) => {
      const [{ findEpics }, home] = await Promise.all([import("../home/epics.ts"), of.home()]);
      return refusing(() => findEpics(home, of.workspace(), name));
    },
    read: async (directory) => (await import("../home/epics.ts")).readEpic(directory),
  };
}

async function refusing<T>(read: () => T): Promise<T> {
  try {
    return read();
  } catch (error) {
    const { UnusablePath } = await import("../home/unusable-path.ts");
    throw error instanceof UnusablePath ? new Refused(error.message, { cause: error }) : error;
  }
}

/** @param workspace Absolute. */
export function epicShelfOf(workspace: string, env: Readonly<Record<string, string | undefined>>): EpicShelf {
  const home = async (): Promise<Home> => (await import("../home/paths.ts")).Home.of(env);
  return epicShelf({ home, workspace: () => workspace });
}
