/** git on a machine, for what hmz itself does there: the repository's own, and nothing of hmz's environment. */

import type { ExecOutcome } from "../../engine/ports.ts";
import type { Host } from "./host.ts";

/** Where hmz was started from a hook or by another git, these name another repository. */
const FOREIGN = [
  "GIT_DIR",
  "GIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_COMMON_DIR",
  "GIT_OBJECT_DIRECTORY",
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_NAMESPACE",
  "GIT_PREFIX",
  "GIT_CEILING_DIRECTORIES",
  "GIT_LITERAL_PATHSPECS",
  "GIT_NOGLOB_PATHSPECS",
  "GIT_GLOB_PATHSPECS",
  "GIT_ICASE_PATHSPECS",
].flatMap((name) => ["-u", name]);

/** Runs git in a directory. @param variables More of its environment. @throws EnvError where it cannot start. */
export function git(
  host: Host,
  cwd: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<ExecOutcome> {
  const given = Object.entries({ LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", ...variables });
  return host.run(["env", ...FOREIGN, ...given.map(([name, value]) => `${name}=${value}`), "git", ...args], cwd);
}
