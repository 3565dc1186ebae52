/** git, for what fetches repositories: it asks nobody anything, and what it takes has an end. */

import { dirname } from "node:path";
import type { Git } from "../catalog/repository.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A repository that does not answer must not hold a run for ever. */
const LIMIT_MS = 120_000;

/**
 * @param env What git's own environment is taken from. Nothing that is named `GIT_…` is: it may name another repository.
 */
export function gitRunner(env: Env): Git {
  return async (args, { cwd, config, env: own }) => {
    const { runProgram } = await import("../process/run.ts");
    try {
      const ran = await runProgram({
        argv: ["git", ...args],
        cwd,
        env: { ...gitEnvironment(env, config, cwd), ...own },
        timeout: LIMIT_MS,
        maxOutput: 65_536,
      });
      if (ran.timedOut) throw new Error(`git did not end within ${LIMIT_MS / 1_000} s`);
      return { status: ran.status, stdout: ran.stdout, stderr: ran.stderr };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      throw new Error("git is not installed on this machine", { cause: error });
    }
  };
}

function gitEnvironment(env: Env, config: Readonly<Record<string, string>>, cwd: string): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !name.startsWith("GIT_")) given[name] = value;
  }
  const settings = Object.entries(config);
  return {
    ...given,
    // A question would wait for a person who is not there.
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "",
    SSH_ASKPASS_REQUIRE: "never",
    // Its words are looked at, and shown as git's.
    LC_ALL: "C",
    // A repository that the directory lies in would have its settings, and the programs they name, obeyed.
    GIT_CEILING_DIRECTORIES: dirname(cwd),
    ...(settings.length > 0 ? { GIT_CONFIG_COUNT: String(settings.length) } : {}),
    ...Object.fromEntries(
      settings.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  };
}
