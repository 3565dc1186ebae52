/** Commands that a person can paste as they are printed, whatever their shell finds on its PATH. */

import { existsSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Io } from "./io.ts";

type Env = Io["env"];

const LAUNCHER = fileURLToPath(new URL("../../bin/hmz.js", import.meta.url));

/** `node`, where that is the one that runs hmz; otherwise its path: a flow needs one that is new enough. */
export function nodeCommand(env: Env): string {
  return isOwnNode(env) ? "node" : quoted(process.execPath);
}

/** `hmz`, where the person's shell finds it; otherwise what starts this copy. */
export function hmzCommand(env: Env): string {
  if (onPath("hmz", env) !== undefined && isOwnNode(env)) return "hmz";
  return isOwnNode(env) ? quoted(LAUNCHER) : `${quoted(process.execPath)} ${quoted(LAUNCHER)}`;
}

function isOwnNode(env: Env): boolean {
  // npm puts a node of its own before the person's.
  if (isUnderNpm(env)) return false;
  const found = onPath("node", env);
  try {
    return found !== undefined && realpathSync(found) === realpathSync(process.execPath);
  } catch {
    return false;
  }
}

function isUnderNpm(env: Env): boolean {
  return Boolean(env["npm_command"] || env["npm_execpath"]);
}

function onPath(name: string, env: Env): string | undefined {
  return (env["PATH"] ?? "")
    .split(delimiter)
    .filter(Boolean)
    .map((directory) => join(directory, name))
    .find((path) => existsSync(path));
}

/** A word of a shell's. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
