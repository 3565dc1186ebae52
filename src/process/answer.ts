/** What a small program of the system answers, for what is asked where nothing can be waited for. */

import { spawnSync } from "node:child_process";

/** What a program prints; `undefined` where it is not there, fails, or takes longer than the timeout in milliseconds. */
export function answerOf(argv: readonly [string, ...string[]], timeout: number): string | undefined {
  const [program, ...args] = argv;
  const { status, stdout } = spawnSync(program, args, {
    encoding: "utf8",
    timeout,
    killSignal: "SIGKILL",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return status === 0 ? stdout : undefined;
}
