/** Git repositories of skills: cloned to this machine, fetched again by the next run that needs them. */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { partsOfUrl, withoutPassword } from "./git-url.ts";
import { type FetchedSkill, isSkill, isSkillName, type SkillFetcher, type SkillUrl } from "./skills.ts";

/**
 * Runs git, which the catalog does not start itself.
 *
 * @throws Error where it cannot be started, or takes too long.
 */
export type Git = (
  args: readonly string[],
  options: {
    readonly cwd: string;
    /** Settings of this one command. They may hold a password: they are no part of its argv. */
    readonly config: Readonly<Record<string, string>>;
  },
) => Promise<GitOutcome>;

export interface GitOutcome {
  readonly status: number;
  readonly stderr: string;
}

export interface SkillRepositories {
  readonly git: Git;
  /** The directory that clones are kept in, made where it is not there. Throws where there is none to be had. */
  readonly directory: () => string;
}

/** Fetches skills for one run: each repository once. */
export function skillFetcher(options: SkillRepositories): SkillFetcher {
  const checkouts = new Map<string, Promise<string>>();
  return async (url) => {
    const checkout = checkouts.get(url.url) ?? checkedOut(url, options);
    checkouts.set(url.url, checkout);
    checkout.catch(() => checkouts.delete(url.url));
    return skillsIn(await checkout, url);
  };
}

/** The clone of a repository, as new as it can be had. */
async function checkedOut({ url, shown }: SkillUrl, { git, directory }: SkillRepositories): Promise<string> {
  const kept = directory();
  await mkdir(kept, { recursive: true, mode: 0o700 });
  const name = checkoutName(url);
  const target = join(kept, name);
  const { address, config } = withoutSecret(url);
  if (existsSync(join(target, ".git", "HEAD"))) {
    for (const args of [
      ["fetch", "--quiet", "--depth", "1", "--no-tags", "--", address, "HEAD"],
      ["reset", "--quiet", "--hard", "FETCH_HEAD"],
      // What an agent left there would be a skill of the next run.
      ["clean", "--quiet", "-ffdx"],
    ]) {
      // What was fetched before serves where it cannot be fetched now.
      if (!(await succeeds(git, args, { cwd: target, config }))) break;
    }
    return target;
  }
  const beside = await mkdtemp(join(kept, `.${name}.`));
  try {
    const args = ["clone", "--quiet", "--depth", "1", "--single-branch", "--no-tags", "--", address, beside];
    const { status, stderr } = await git(args, { cwd: kept, config });
    if (status !== 0) throw new Error(`${shown}: ${saidBy(stderr, status)}`);
    await moved(beside, target);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
  return target;
}

async function succeeds(git: Git, args: readonly string[], options: Parameters<Git>[1]): Promise<boolean> {
  try {
    return (await git(args, options)).status === 0;
  } catch {
    return false;
  }
}

/** Moves a clone into place; one that another process moved there first serves as well. */
async function moved(clone: string, target: string): Promise<void> {
  try {
    await rename(clone, target);
  } catch (error) {
    if (existsSync(join(target, ".git", "HEAD"))) return;
    // Half of one, left by whoever cleans temporary files.
    if (!existsSync(target)) throw error;
    await rm(target, { recursive: true, force: true });
    await rename(clone, target);
  }
}

/** `<owner>-<repo>-<hash>`, the hash of the whole URL: two accounts of one repository may see two things. */
function checkoutName(url: string): string {
  const parts = partsOfUrl(url);
  const host = parts ? parts.authority.slice(parts.authority.lastIndexOf("@") + 1) : url.split(":", 1)[0];
  const path = parts ? parts.path : url.slice(url.indexOf(":") + 1);
  const words = [host ?? "", ...path.replace(/\.git\/*$/, "").split("/")]
    .map((word) => word.replace(/^.*@/, "").replaceAll(/[^A-Za-z0-9_.-]/g, "-"))
    .filter((word) => word !== "");
  const hash = createHash("sha256").update(url).digest("hex").slice(0, 12);
  return [...words.slice(-2), hash].join("-").replace(/^[.-]+/, "");
}

/**
 * A URL as git's argv and its own files have it, without what signs it in: every program of this machine could read
 * that. The whole URL is a setting, which git puts in the other's place.
 */
function withoutSecret(url: string): { readonly address: string; readonly config: Readonly<Record<string, string>> } {
  const parts = partsOfUrl(url);
  if (!parts || withoutPassword(url) === url) return { address: url, config: {} };
  const { scheme, authority, path } = parts;
  const address = `${scheme}://${authority.slice(authority.lastIndexOf("@") + 1)}${path}`;
  return { address, config: { [`url.${url}.insteadOf`]: address } };
}

/** Why git failed, in its own words. */
function saidBy(stderr: string, status: number): string {
  const lines = stderr
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const said = lines.find((line) => /^(?:fatal|error):/.test(line)) ?? lines.at(-1) ?? `git exits with ${status}`;
  return withoutPassword(said.replace(/^(?:fatal|error): /, "")).slice(0, 300);
}

async function skillsIn(checkout: string, { shown, skill }: SkillUrl): Promise<readonly FetchedSkill[]> {
  const root = await realpath(checkout);
  const base = join(root, "skills");
  const names = (await readdir(base).catch(() => [])).filter((name) => isSkill(join(base, name))).sort();
  if (names.length === 0) throw new Error(`${shown} holds no skills: none of skills/* has a SKILL.md`);
  if (skill !== undefined && !names.includes(skill)) {
    throw new Error(`${shown} holds no skill called '${skill}'; it holds ${names.join(", ")}`);
  }
  const found: FetchedSkill[] = [];
  for (const name of skill === undefined ? names : [skill]) {
    if (!isSkillName(name)) throw new Error(`${shown}: skills/${JSON.stringify(name)} is not a skill's name`);
    const directory = join(base, name);
    await assertInside(root, directory, shown);
    found.push({ name, directory: await realpath(directory) });
  }
  return found;
}

/** Refuses a skill whose files lie elsewhere: a link to a key of the person's would be read as part of it. */
async function assertInside(root: string, directory: string, shown: string): Promise<void> {
  const seen = new Set<string>();
  const look = async (path: string): Promise<void> => {
    const real = await realpath(path).catch(() => "");
    const outside = !real.startsWith(root + sep) || real.startsWith(join(root, ".git") + sep);
    if (outside) throw new Error(`${shown}: ${relative(root, path)} is a symbolic link out of the repository`);
    if (seen.has(real) || !(await stat(real)).isDirectory()) return;
    seen.add(real);
    for (const name of await readdir(real)) {
      const inside = join(real, name);
      const kind = await lstat(inside);
      if (kind.isDirectory() || kind.isSymbolicLink()) await look(inside);
    }
  };
  await look(directory);
}
