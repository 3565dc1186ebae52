/** Where the `claude` program is. */

import { access, constants } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { HarnessNotInstalled } from "../../flows/errors.ts";

const PLACES = ["/usr/local/bin", "/opt/homebrew/bin", "/usr/bin"] as const;

/** @throws HarnessNotInstalled */
export async function findClaude(env: Readonly<Record<string, string>>): Promise<string> {
  const home = env["HOME"];
  const folders = [
    ...(env["PATH"] ?? "").split(delimiter).filter(isAbsolute),
    ...(home === undefined ? [] : [join(home, ".local", "bin")]),
    ...PLACES,
  ];
  for (const folder of folders) {
    const path = join(folder, "claude");
    if (await runs(path)) return path;
  }
  throw notInstalled();
}

export function notInstalled(options?: ErrorOptions): HarnessNotInstalled {
  return new HarnessNotInstalled(
    "claude is not installed on this machine: install it with npm i -g @anthropic-ai/claude-code",
    options,
  );
}

async function runs(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
