/** Writing the trace of an epic to a file. */

import { join } from "node:path";
import { makeDirectory } from "./make-directory.ts";
import { newFile } from "./new-file.ts";
import { type TraceCounts, traceParts } from "./trace.ts";

/**
 * Writes a trace.
 *
 * @param file Absolute; left out, a new file in the epic itself. @param force Whether a file that is there is replaced.
 * @throws UnusablePath where it cannot be written. @throws Error where the epic cannot be read.
 */
export async function writeTrace(
  directory: string,
  file: string | undefined,
  force: boolean,
): Promise<TraceCounts & { readonly file: string }> {
  const path = file ?? join(tracesOf(directory), `${new Date().toISOString().replace(/[-:]/g, "")}.trace.json`);
  const counts = await newFile(path, force, async (to) => {
    const parts = traceParts(directory);
    for (;;) {
      const { value, done } = parts.next();
      if (done) return value;
      const bytes = Buffer.from(value);
      for (let at = 0; at < bytes.length;) at += (await to.write(bytes, at)).bytesWritten;
    }
  });
  return { file: path, ...counts };
}

function tracesOf(directory: string): string {
  const traces = join(directory, "traces");
  makeDirectory(traces, 0o700);
  return traces;
}
