/**
 * TypeScript as JavaScript: its types blanked out, so that lines and columns stay as they are written. What was
 * stripped once is kept in a directory: the first strip of a process costs tens of milliseconds, reading it back less
 * than one.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripTypeScriptTypes } from "node:module";

/** How many stripped files are kept; the oldest go first. */
const MOST_KEPT = 256;

/**
 * The JavaScript of a TypeScript source.
 *
 * @param cache The directory of what was stripped before; without it nothing is kept. One that cannot be read or
 *   written is done without.
 * @throws SyntaxError of Node, where the source is not TypeScript, or has syntax that is more than types.
 */
export function stripped(source: string, cache?: string): string {
  if (cache === undefined) return strip(source);
  const file = join(cache, `${digest(`${process.version}\0${source}`)}.js`);
  const kept = readKept(file);
  if (kept !== undefined) return kept;
  const script = strip(source);
  keep(cache, file, script);
  return script;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** What a file holds, where it holds the whole of what was written: a torn or changed file is stripped anew. */
function readKept(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8");
    const line = text.indexOf("\n");
    const script = text.slice(line + 1);
    return text.slice(0, line) === digest(script) ? script : undefined;
  } catch {
    return undefined;
  }
}

function keep(cache: string, file: string, script: string): void {
  const written = `${file}.${process.pid}`;
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    writeFileSync(written, `${digest(script)}\n${script}`, { mode: 0o600 });
    renameSync(written, file);
    dropOldest(cache);
  } catch {
    drop(written);
  }
}

function drop(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // What cannot be written to cannot hold anything to be dropped either.
  }
}

function dropOldest(cache: string): void {
  const files = readdirSync(cache).map((name) => join(cache, name));
  if (files.length <= MOST_KEPT) return;
  const aged = files.map((file) => ({ file, at: statSync(file).mtimeMs })).sort((one, other) => one.at - other.at);
  for (const { file } of aged.slice(0, files.length - MOST_KEPT / 2)) rmSync(file, { force: true });
}

function strip(source: string): string {
  const warn = Reflect.get(process, "emitWarning") as (this: void, ...given: unknown[]) => void;
  // Node calls stripping experimental, once a process, on standard error: nothing that whoever runs a flow can act on.
  process.emitWarning = (...given: readonly unknown[]): void => {
    if (!String(given[0]).includes("stripTypeScriptTypes")) Reflect.apply(warn, process, given);
  };
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = warn;
  }
}
