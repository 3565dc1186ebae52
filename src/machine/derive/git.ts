/** git on a machine, for what hmz itself does there: the repository's own, and nothing of hmz's environment. */

import type { ExecOutcome } from "../../engine/ports.ts";
import type { Host } from "./host.ts";

/** Where hmz was started from a hook or by another git, these name another repository, or another part of it. */
const FOREIGN = [
  "GIT_DIR",
  "GIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_COMMON_DIR",
  "GIT_OBJECT_DIRECTORY",
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_QUARANTINE_PATH",
  "GIT_GRAFT_FILE",
  "GIT_SHALLOW_FILE",
  "GIT_IMPLICIT_WORK_TREE",
  "GIT_NO_REPLACE_OBJECTS",
  "GIT_REPLACE_REF_BASE",
  "GIT_NAMESPACE",
  "GIT_PREFIX",
  "GIT_CEILING_DIRECTORIES",
  "GIT_LITERAL_PATHSPECS",
  "GIT_NOGLOB_PATHSPECS",
  "GIT_GLOB_PATHSPECS",
  "GIT_ICASE_PATHSPECS",
].flatMap((name) => ["-u", name]);

/** Its messages are looked at, and shown; nobody is there to be asked for a password. */
const GIVEN = ["LC_ALL=C", "GIT_TERMINAL_PROMPT=0"];

/**
 * Runs a shell script that calls git, in a directory: one program to start, where a call of each git would be as many.
 *
 * @param args Its `$1`, `$2` and so on. @throws EnvError where it cannot start.
 */
export function script(host: Host, cwd: string, text: string, args: readonly string[] = []): Promise<ExecOutcome> {
  return host.run(["env", ...FOREIGN, ...GIVEN, "sh", "-c", text, "hmz", ...args], cwd);
}
