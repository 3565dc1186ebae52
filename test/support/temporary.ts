/** Directories of a test's own, gone when its process is. */

import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];

process.on("exit", () => {
  for (const directory of made) rmSync(directory, { recursive: true, force: true });
});

/** A fresh directory, its symbolic links followed. */
export function temporaryDirectory(name: string): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), `hmz-${name}-`)));
  made.push(directory);
  return directory;
}
