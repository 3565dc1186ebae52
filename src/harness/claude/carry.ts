/**
 * Takes a conversation to another workdir. The CLI keeps each under the directory that it ran in; releases differ in
 * whether they find one that ran elsewhere.
 */

import { copyFile, mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";

/** Copies a conversation to where a process in another workdir looks for it. @returns whether there was one to copy. */
export async function carry(
  env: Readonly<Record<string, string>>,
  conversation: string,
  from: string,
  to: string,
): Promise<boolean> {
  const projects = projectsOf(env);
  const target = join(projects, projectFolder(await realpath(to)));
  const file = `${conversation}.jsonl`;
  for (const source of new Set([from, await realpath(from).catch(() => from)])) {
    const folder = join(projects, projectFolder(source));
    if (folder === target) continue;
    try {
      await mkdir(target, { recursive: true });
      await copyFile(join(folder, file), join(target, file));
      return true;
    } catch {
      // Not kept under this name.
    }
  }
  return false;
}

/** Where the CLI keeps its conversations, each in a folder named for the directory that it ran in. */
export function projectsOf(env: Readonly<Record<string, string>>): string {
  return join(env["CLAUDE_CONFIG_DIR"] ?? join(env["HOME"] ?? "/", ".claude"), "projects");
}

const LONGEST = 200;

/** The CLI's name for a directory. */
export function projectFolder(path: string): string {
  const name = path.replaceAll(/[^A-Za-z0-9]/g, "-");
  if (name.length <= LONGEST) return name;
  let hash = 0;
  for (let at = 0; at < path.length; at++) hash = (Math.imul(hash, 31) + path.charCodeAt(at)) | 0;
  return `${name.slice(0, LONGEST)}-${Math.abs(hash).toString(36)}`;
}
