/** Git repositories of skills: cloned to this machine, fetched again by the next run that needs them. */

import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { partsOfUrl } from "./git-url.ts";
import {
  assertInside,
  type Git,
  type GitOptions,
  isClone,
  moved,
  remoteOf,
  type Repositories,
  saidBy,
} from "./repository.ts";
import { type FetchedSkill, isSkill, isSkillName, type SkillFetcher, type SkillUrl } from "./skills.ts";

/** Fetches skills for one run: each repository once. */
export function skillFetcher(options: Repositories): SkillFetcher {
  const checkouts = new Map<string, Promise<string>>();
  return async (url) => {
    const checkout = checkouts.get(url.url) ?? checkedOut(url, options);
    checkouts.set(url.url, checkout);
    checkout.catch(() => checkouts.delete(url.url));
    return skillsIn(await checkout, url);
  };
}

/** The clone of a repository, as new as it can be had. */
async function checkedOut({ url, shown }: SkillUrl, { git, directory }: Repositories): Promise<string> {
  const kept = directory();
  await mkdir(kept, { recursive: true, mode: 0o700 });
  const name = checkoutName(url);
  const target = join(kept, name);
  const { address, config, env } = remoteOf(url);
  if (isClone(target)) {
    for (const args of [
      ["fetch", "--quiet", "--depth", "1", "--no-tags", "--", address, "HEAD"],
      ["reset", "--quiet", "--hard", "FETCH_HEAD"],
      // What an agent left there would be a skill of the next run.
      ["clean", "--quiet", "-ffdx"],
    ]) {
      // What was fetched before serves where it cannot be fetched now.
      if (!(await succeeds(git, args, { cwd: target, config, env }))) break;
    }
    return target;
  }
  const beside = await mkdtemp(join(kept, `.${name}.`));
  try {
    const args = ["clone", "--quiet", "--depth", "1", "--single-branch", "--no-tags", "--", address, beside];
    const { status, stderr } = await git(args, { cwd: kept, config, env });
    if (status !== 0) throw new Error(`${shown}: ${saidBy(stderr, status)}`);
    await moved(beside, target);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
  return target;
}

async function succeeds(git: Git, args: readonly string[], options: GitOptions): Promise<boolean> {
  try {
    return (await git(args, options)).status === 0;
  } catch {
    return false;
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
