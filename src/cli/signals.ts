/** What INT, TERM and HUP do to a run. */

import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";

const STATUS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
type Stopping = keyof typeof STATUS;

export interface Signals {
  /** The exit status of the first signal that came; `undefined` while none has. */
  readonly status: number | undefined;
  /** Leaves the signals to Node again. */
  release(): void;
}

/**
 * Listens for the signals that stop a run.
 *
 * @param on.first Called once, for the first of them. @param on.again Called for each ^C after it. A second TERM or HUP
 *   is ignored: whoever sends one is likely to send several, and what was asked for is under way.
 */
export function listen(on: { readonly first: () => void; readonly again: () => void }): Signals {
  let status: number | undefined;
  const heard = (signal: Stopping): void => {
    if (status === undefined) {
      status = STATUS[signal];
      on.first();
    } else if (signal === "SIGINT") on.again();
  };
  const signals: readonly Stopping[] = ["SIGINT", "SIGTERM", "SIGHUP"];
  const outlivesItsTerminal = startedByNohup();
  const listeners = signals.map((signal) => {
    const listener = signal === "SIGHUP" && outlivesItsTerminal ? ignore : () => heard(signal);
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return {
    get status() {
      return status;
    },
    release() {
      for (const unlisten of listeners) unlisten();
    },
  };
}

function ignore(): void {}

/**
 * Whether the program was started to outlive its terminal. Node puts every signal's disposition back as it starts, so
 * that an ignored HUP cannot be seen; what nohup leaves besides can: the shell's name for what it started, and a standard
 * input that cannot be read.
 */
function startedByNohup(): boolean {
  if (basename(process.env["_"] ?? "") === "nohup") return true;
  try {
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync("/proc/self/fdinfo/0", "utf8"))?.[1] ?? "0";
    const writeOnly = (Number.parseInt(flags, 8) & 3) === 1;
    return writeOnly && readlinkSync("/proc/self/fd/0") === "/dev/null";
  } catch {
    return false;
  }
}
