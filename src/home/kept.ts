/** Where the conversations that a flow keeps in its state are copied to. */

import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { KeptDirectory } from "../engine/ports.ts";
import { makeDirectory } from "./make-directory.ts";
import { isAlive } from "./owner.ts";

/** Makes directories for kept conversations under an epic: `sessions/<cli>/.kept/<hex>/`. */
export function keptUnder(root: string): (harness: string) => KeptDirectory {
  return (harness) => {
    const parent = join(root, "sessions", harness, ".kept");
    makeDirectory(parent, 0o700);
    for (;;) {
      const directory = join(parent, randomBytes(8).toString("hex"));
      try {
        mkdirSync(directory, { mode: 0o700 });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
        throw error;
      }
      return { directory, discard: () => rmSync(directory, { recursive: true, force: true }) };
    }
  };
}

/** Kept conversations of a run without a journal: gone with it. */
export interface TemporaryShelf {
  readonly keep: (harness: string) => KeptDirectory;
  /** Never throws. */
  remove(): void;
}

/** @param under The directory of what this machine may lose. */
export function temporaryShelf(under: () => string): TemporaryShelf {
  let root: string | undefined;
  return {
    keep: (harness) => {
      root ??= join(under(), `${NAME}${process.pid}-${randomBytes(4).toString("hex")}`);
      return keptUnder(root)(harness);
    },
    remove: () => {
      if (root === undefined) return;
      try {
        rmSync(root, { recursive: true, force: true });
      } catch {
        // The next run takes it away.
      }
    },
  };
}

const NAME = "kept-";

/** Takes away what runs that were killed had kept. @param under As it was given to `temporaryShelf`. */
export function removeLostShelves(under: string): void {
  for (const name of readdirSync(under)) {
    const pid = Number(new RegExp(`^${NAME}(\\d+)-`).exec(name)?.[1]);
    if (Number.isSafeInteger(pid) && pid > 0 && !isAlive({ pid })) {
      rmSync(join(under, name), { recursive: true, force: true });
    }
  }
}
