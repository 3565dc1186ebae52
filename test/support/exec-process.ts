/** `hmz exec` as a process of its own, from the sources. */

import { type ChildProcess, spawn } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HMZ = fileURLToPath(new URL("../../bin/hmz.js", import.meta.url));

export interface Ran {
  readonly child: ChildProcess;
  readonly ended: Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>;
  /** Resolves once either stream holds a text. */
  said(text: string): Promise<void>;
}

/** Starts `hmz exec` in a directory, which is its home and its place for temporary files too. `stdout` is a file. */
export function execIn(
  root: string,
): (argv: readonly string[], env?: Readonly<Record<string, string>>, stdout?: string) => Ran {
  return (argv, env = {}, stdout) => {
    const child = spawn(process.execPath, ["--conditions=hmz-source", HMZ, "exec", "-p", "budget.cost=5", ...argv], {
      cwd: root,
      env: {
        PATH: process.env["PATH"],
        HOME: root,
        HUMANIZE_HOME: join(root, "home"),
        TMPDIR: root,
        HUMANIZE_PRICES: "off",
        ...env,
      },
      stdio: ["ignore", stdout === undefined ? "pipe" : openSync(stdout, "w"), "pipe"],
    });
    const heard = { stdout: "", stderr: "" };
    let waiting = (): void => {};
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      heard.stdout += text;
      waiting();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      heard.stderr += text;
      waiting();
    });
    return {
      child,
      ended: new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal, ...heard }))),
      said: (text) =>
        new Promise((resolve) => {
          waiting = () => {
            if (heard.stdout.includes(text) || heard.stderr.includes(text)) resolve();
          };
          waiting();
        }),
    };
  };
}

/** How the record that a run names on its stderr says that it ended. */
export function howItEnded(stderr: string): unknown {
  const directory = /^record: (.*)$/m.exec(stderr)?.[1] ?? "";
  const last = readFileSync(join(directory, "epic.jsonl"), "utf8").trimEnd().split("\n").at(-1) ?? "";
  return (JSON.parse(last) as { how?: unknown }).how;
}
