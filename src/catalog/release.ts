/** Whether the hmz that runs is one that a flow's own package.json asks for. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FlowLoadConflict } from "../flows/errors.ts";
import { shownPath } from "./places.ts";

/**
 * @param running The release that runs. Default: the package's own version.
 * @throws FlowLoadConflict where `package.json` asks for a range that the release is not in. What is no range (a path,
 *   a git URL) asks for nothing that could be checked.
 */
export async function checkRelease(directory: string, running?: string): Promise<void> {
  const asked = askedRange(directory);
  if (asked === undefined) return;
  const { default: satisfies } = await import("semver/functions/satisfies.js");
  const { default: validRange } = await import("semver/ranges/valid.js");
  if (validRange(asked) === null) return;
  const version = running ?? versionIn(new URL("../../package.json", import.meta.url)) ?? "0.0.0";
  if (satisfies(version, asked, { includePrerelease: true })) return;
  throw new FlowLoadConflict(
    `the flow at ${shownPath(directory)} asks for hmz ${asked}, and this is hmz ${version}: run it with a release in that range, or change the range in its package.json`,
  );
}

function askedRange(directory: string): string | undefined {
  const manifest = readJson(join(directory, "package.json"));
  for (const key of ["dependencies", "peerDependencies"]) {
    const range = recordOf(manifest[key])["hmz"];
    if (typeof range === "string") return range;
  }
  return undefined;
}

function versionIn(file: URL): string | undefined {
  const { version } = readJson(file);
  return typeof version === "string" ? version : undefined;
}

/** A flow's files are its author's: a package.json that is missing or no JSON says nothing. */
function readJson(file: string | URL): Record<string, unknown> {
  try {
    return recordOf(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return {};
  }
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
