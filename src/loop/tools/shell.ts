import { z } from "zod";
import { boundedOutput } from "./bounded-output.ts";
import { loopTool } from "./tool.ts";

const USUAL_SECONDS = 120;
const MOST_SECONDS = 600;
const MOST_CHARACTERS = 30_000;

/** One start for both: a machine without bash still has sh. */
const WITH_BASH = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi';

export const shellTool = loopTool({
  name: "shell",
  about:
    "Runs a shell script (bash) in the working directory, with nothing on its standard input. Nothing that it starts " +
    `outlives it. It is ended after ${USUAL_SECONDS} seconds, or after timeout, at most ${MOST_SECONDS}. Of a long ` +
    "output only head and tail come back.",
  takes: z.strictObject({
    command: z.string().min(1).describe("the script"),
    timeout: z.number().positive().max(MOST_SECONDS).optional().describe("seconds that it may take"),
  }),
  needs: "all",
  subject: "command",
  async run({ command, timeout = USUAL_SECONDS }, { place, signal }) {
    const { status, stdout, stderr } = await place.machine.exec(["sh", "-c", WITH_BASH, "sh", command], {
      cwd: place.workdir,
      timeout: timeout * 1000,
      signal,
    });
    const said = [
      boundedOutput(stdout.trimEnd(), MOST_CHARACTERS),
      stderr.trim() === "" ? "" : `stderr:\n${boundedOutput(stderr.trimEnd(), MOST_CHARACTERS / 2)}`,
      status === 0 ? "" : `exit status ${status}`,
    ].filter((part) => part !== "");
    return said.length === 0 ? "(no output)" : said.join("\n");
  },
});
