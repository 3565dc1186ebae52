/** Why a flow module cannot be imported, as its author needs to read it: the file, the line and the reason. */

import { existsSync, readFileSync } from "node:fs";
import { extname, resolve, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { stripped } from "./strip.ts";

/** Where in a flow's own files something went wrong. `line` counts from 1; 0 where it is not known. */
export interface Failure {
  readonly file: string;
  readonly line: number;
  readonly reason: string;
}

// The error itself is left as it is: a flow may catch what it imports, and tell errors apart by their class and code.
const located = new WeakMap<object, Failure>();

/** Notes the file of an error of stripping, which names the line alone. */
export function locate(error: unknown, file: string): void {
  if (!(error instanceof Error)) return;
  const line = Number(/^\S*:(\d+)\n/.exec(error.stack ?? "")?.[1] ?? 0);
  const unsupported = (error as NodeJS.ErrnoException).code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX";
  const reason = unsupported
    ? `${firstLine(error.message)}: the types of a flow are stripped, and nothing of it is compiled; write it in plain JavaScript (an enum as an object, \`as const\`)`
    : firstLine(error.message);
  located.set(error, { file, line, reason });
}

/** Notes which file imports what cannot be found. */
export function locateMissing(error: unknown, importer: string, specifier: string): void {
  if (!(error instanceof Error) || !importer.startsWith("file:") || located.has(error)) return;
  const file = fileURLToPath(importer);
  const lines = readText(file).split("\n");
  const line = lines.findIndex((text) => text.includes(`"${specifier}"`) || text.includes(`'${specifier}'`)) + 1;
  located.set(error, { file, line, reason: missingReason(error, specifier, file) });
}

/** Node's own reasons, without the paths of this machine. */
function missingReason(error: NodeJS.ErrnoException, specifier: string, importer: string): string {
  if (error.code === "ERR_PACKAGE_PATH_NOT_EXPORTED") return `'${specifier}' is not exported by its package`;
  if (error.code !== "ERR_MODULE_NOT_FOUND") return firstLine(error.message);
  if (!/^\.{1,2}\//.test(specifier)) return `Cannot find package '${specifier}'`;
  const bare = specifier.replace(/\.[mc]?[jt]s$/, "");
  const there = [".ts", ".js", ".mts", ".mjs", "/index.ts", "/index.js"].find((ending) =>
    existsSync(resolve(dirname(importer), bare + ending)),
  );
  return `Cannot find module '${specifier}'${there ? `; there is '${bare}${there}', and an import names a file whole` : ""}`;
}

/** Notes where plain JavaScript is no JavaScript: V8 says the reason, and leaves the place to whoever prints it. */
export function locateSyntax(error: unknown, files: Iterable<string>): void {
  if (!(error instanceof SyntaxError) || located.has(error) || placeIn(error)) return;
  for (const file of files) {
    if (!/^\.m?js$/.test(extname(file))) continue;
    try {
      stripped(readText(file));
    } catch (found) {
      locate(found, file);
      const line = found instanceof Error ? located.get(found)?.line : undefined;
      if (line) located.set(error, { file, line, reason: firstLine(error.message) });
      return;
    }
  }
}

/** Where and why an import failed; `undefined` for the place where the flow's own files are not to be seen in it. */
export function failureOf(error: unknown): Failure | { readonly file: undefined; readonly reason: string } {
  if (typeof error === "object" && error !== null) {
    const noted = located.get(error);
    if (noted) return noted;
  }
  if (!(error instanceof Error)) return { file: undefined, reason: firstLine(String(error)) };
  const reason = firstLine(error.message) || error.name;
  const place = placeIn(error);
  return place ? { ...place, reason } : { file: undefined, reason };
}

/** The innermost line of an error's stack that is a flow's own: what it called is not where its author looks. */
function placeIn(error: Error): { file: string; line: number } | undefined {
  const found = /(file:\/\/\S*?)[?&]hmz=\d+:(\d+)/.exec(error.stack ?? "");
  return found?.[1] ? { file: fileURLToPath(found[1]), line: Number(found[2]) } : undefined;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
