/** Runs a command line in this process, with what it wrote. */

import { join } from "node:path";
import { main } from "../../../src/cli/main.ts";
import { temporaryDirectory } from "../../support/temporary.ts";

export interface Wrote {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A directory of a test's own, its symbolic links followed. */
export function fresh(): string {
  return temporaryDirectory("cli");
}

/** The command line in a directory, the home of hmz beside nobody's. */
export async function typed(
  argv: readonly string[],
  {
    cwd = fresh(),
    env = {},
    columns,
  }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>>; readonly columns?: number } = {},
): Promise<Wrote> {
  let stdout = "";
  let stderr = "";
  const status = await main(argv, {
    stdout: { write: (text) => void (stdout += text), ...(columns === undefined ? {} : { isTTY: true, columns }) },
    stderr: { write: (text) => void (stderr += text) },
    env: { PATH: process.env["PATH"] ?? "", HOME: cwd, HUMANIZE_HOME: join(cwd, "home"), TMPDIR: cwd, ...env },
    cwd,
  });
  return { status, stdout, stderr };
}
