/** Finds what a test left running, by what its environment holds. */

import { readFile, readdir } from "node:fs/promises";

/** The processes of this machine that have a text in their environment. */
export async function processesWith(mark: string): Promise<readonly number[]> {
  const found: number[] = [];
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    const environment = await readFile(`/proc/${entry}/environ`, "utf8").catch(() => "");
    if (environment.includes(mark)) found.push(Number(entry));
  }
  return found;
}
