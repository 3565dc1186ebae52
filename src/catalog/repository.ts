/** What fetching any git repository has in common: how git is asked, what it is told of secrets, what it says. */

import { existsSync } from "node:fs";
import { lstat, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { partsOfUrl, withoutPassword } from "./git-url.ts";

/**
 * Runs git, which the catalog does not start itself.
 *
 * @throws Error where it cannot be started, or takes too long.
 */
export type Git = (args: readonly string[], options: GitOptions) => Promise<GitOutcome>;

export interface GitOptions {
  readonly cwd: string;
  /** Settings of this one command. */
  readonly config: Readonly<Record<string, string>>;
  /** Variables of this one command. They may hold a password: they are no part of its argv. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

export interface GitOutcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What fetches repositories, and where to. */
export interface Repositories {
  readonly git: Git;
  /** The directory that clones are kept in, made where it is not there. Throws where there is none to be had. */
  readonly directory: () => string;
}

/** A repository is a stranger's: nothing in it, and nothing that the person set up for their own, runs as it is fetched. */
const NOTHING_RUNS = {
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "submodule.recurse": "false",
  "fetch.recurseSubmodules": "false",
  // A helper with a window of its own would wait for a person who is not there.
  "credential.interactive": "false",
  // What goes on in the background would write into a directory that is renamed.
  "gc.auto": "0",
  "maintenance.auto": "false",
};

/** Prints what it finds in its environment: its text, which is in an argv, holds no secret. */
const HELPER = `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$HMZ_GIT_USERNAME" "$HMZ_GIT_PASSWORD"; }; f`;

/** A URL as git's argv has it, and what git is told besides. */
export interface Remote extends Pick<GitOptions, "config" | "env"> {
  readonly address: string;
}

/**
 * A URL without what signs it in, which every program of this machine could read in an argv: git's own, and those of
 * the helpers that it starts with the URL. A password is an answer to git's question, and no helper of the person's is
 * given it to keep.
 */
export function remoteOf(url: string): Remote {
  const parts = partsOfUrl(url);
  const at = parts?.authority.lastIndexOf("@") ?? -1;
  if (!parts || at === -1) return { address: url, config: NOTHING_RUNS };
  const { scheme, authority, path } = parts;
  const given = authority.slice(0, at);
  const host = authority.slice(at + 1);
  const colon = given.indexOf(":");
  const user = colon === -1 ? given : given.slice(0, colon);
  if (!/^https?$/i.test(scheme)) {
    // ssh has no use for a password, and the other schemes for neither.
    const address = /^ssh$/i.test(scheme) ? `${scheme}://${user}@${host}${path}` : `${scheme}://${host}${path}`;
    return { address, config: NOTHING_RUNS };
  }
  const context = `credential.${scheme}://${host}`;
  const address = `${scheme}://${host}${path}`;
  if (colon === -1) return { address, config: { ...NOTHING_RUNS, [`${context}.username`]: decoded(user) } };
  return {
    address,
    config: { ...NOTHING_RUNS, "credential.helper": "", [`${context}.helper`]: HELPER },
    env: { HMZ_GIT_USERNAME: decoded(user), HMZ_GIT_PASSWORD: decoded(given.slice(colon + 1)) },
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Why git failed, in its own words. */
export function saidBy(stderr: string, status: number): string {
  const lines = stderr
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  // A server on this machine writes beside the client, whose own line may come after it.
  const said =
    lines.find((line) => line.startsWith("fatal: remote error: ")) ??
    lines.find((line) => /^(?:fatal|error):/.test(line)) ??
    lines.at(-1) ??
    `git exits with ${status}`;
  return withoutPassword(said.replace(/^(?:fatal|error): /, "")).slice(0, 300);
}

/** Whether a directory holds a whole clone: one is renamed into place when it is. */
export function isClone(directory: string): boolean {
  return existsSync(join(directory, ".git", "HEAD"));
}

/** Moves a clone into place; one that another process moved there first serves as well. */
export async function moved(clone: string, target: string): Promise<void> {
  try {
    await rename(clone, target);
  } catch (error) {
    if (isClone(target)) return;
    // Half of one, left by whoever cleans temporary files.
    if (!existsSync(target)) throw error;
    await rm(target, { recursive: true, force: true });
    await rename(clone, target);
  }
}

/**
 * Refuses a directory of a repository whose files lie elsewhere: a link to a key of the person's would be read as part
 * of it.
 *
 * @param root The clone, its symbolic links followed.
 */
export async function assertInside(root: string, directory: string, shown: string): Promise<void> {
  const seen = new Set<string>();
  const look = async (path: string): Promise<void> => {
    const real = await realpath(path).catch(() => "");
    const git = join(root, ".git");
    const within = real === root || real.startsWith(root + sep);
    if (!within || real === git || real.startsWith(git + sep)) {
      throw new Error(`${shown}: ${relative(root, path)} is a symbolic link out of the repository`);
    }
    if (seen.has(real) || !(await stat(real)).isDirectory()) return;
    seen.add(real);
    for (const name of await readdir(real)) {
      const inside = join(real, name);
      if (inside === git) continue;
      const kind = await lstat(inside);
      if (kind.isDirectory() || kind.isSymbolicLink()) await look(inside);
    }
  };
  await look(directory);
}
