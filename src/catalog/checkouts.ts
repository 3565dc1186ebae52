/** Checkouts of flows' repositories: one of each commit, kept on this machine and never changed. */

import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { blake2b } from "hash-wasm";
import { withoutPassword } from "./git-url.ts";
import { type GitOutcome, isClone, moved, type Remote, remoteOf, type Repositories, saidBy } from "./repository.ts";

/**
 * The directory of a revision of a repository, fetched where it is not there: one URL and revision once.
 *
 * @throws Error where it cannot be fetched: its message says why, in git's words.
 */
export type Checkout = (url: string, rev: string | undefined) => Promise<string>;

export function checkouts(repositories: Repositories): Checkout {
  const fetched = new Map<string, Promise<string>>();
  return (url, rev) => {
    const key = `${url}\0${rev ?? ""}`;
    const known = fetched.get(key) ?? checkedOut(url, rev, repositories);
    fetched.set(key, known);
    known.catch(() => fetched.delete(key));
    return known;
  };
}

const COMMIT = /^[0-9a-f]{40}$/i;

async function checkedOut(url: string, rev: string | undefined, { git, directory }: Repositories): Promise<string> {
  const kept = join(directory(), await blake2b(url, 64));
  await mkdir(kept, { recursive: true, mode: 0o700 });
  const remote = remoteOf(url);
  const ask = async (cwd: string, ...args: readonly string[]): Promise<GitOutcome> =>
    git(args, { cwd, config: remote.config, env: remote.env });
  const run = async (cwd: string, ...args: readonly string[]): Promise<string> => succeeded(await ask(cwd, ...args));
  const sha =
    rev !== undefined && COMMIT.test(rev)
      ? rev.toLowerCase()
      : await named(rev, withoutPassword(url), remote, run, kept);
  const target = join(kept, sha);
  // No git runs in it again: what an agent wrote into its .git would be obeyed.
  if (isClone(target)) return target;
  await sweep(kept);
  const beside = await mkdtemp(join(kept, `.${sha}.`));
  try {
    // An empty template: the person's own would bring its hooks.
    await run(beside, "init", "--quiet", "--template=");
    // Before the files: a filter that they name, as that of git-lfs, is a program. It would outlive the checkout, too.
    await mkdir(join(beside, ".git", "info"), { recursive: true });
    await writeFile(
      join(beside, ".git", "info", "attributes"),
      "* -filter -ident -text -eol -crlf -working-tree-encoding\n",
    );
    await fetchCommit(beside, sha, remote, ask);
    await run(beside, "reset", "--quiet", "--hard", sha, "--");
    await moved(beside, target);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
  return target;
}

type Run<Result> = (cwd: string, ...args: readonly string[]) => Promise<Result>;

/** The commit that a branch or a tag is at. A branch stands before a tag of its name, as it does to `git clone`. */
async function named(
  rev: string | undefined,
  shown: string,
  { address }: Remote,
  run: Run<string>,
  cwd: string,
): Promise<string> {
  const name = rev ?? "HEAD";
  const wanted = [`refs/heads/${name}`, `refs/tags/${name}^{}`, `refs/tags/${name}`];
  if (name === "HEAD") wanted.unshift("HEAD");
  if (name.startsWith("refs/")) wanted.push(`${name}^{}`, name);
  const said = await run(cwd, "ls-remote", "--quiet", "--", address, ...wanted);
  // Patterns, to git, which match the ends of names: only what is called so is meant.
  const at = new Map(
    said.split("\n").map((line): [string, string] => {
      const [sha = "", called = ""] = line.split("\t");
      return [called, sha];
    }),
  );
  const sha = wanted.map((called) => at.get(called)).find((sha) => sha !== undefined && COMMIT.test(sha));
  if (sha !== undefined) return sha;
  throw new Error(
    rev === undefined
      ? `${shown} has no commit on its default branch`
      : `${shown} has no branch and no tag called '${rev}'; a commit is named by all of its 40 digits`,
  );
}

async function fetchCommit(cwd: string, sha: string, { address }: Remote, ask: Run<GitOutcome>): Promise<void> {
  const fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
  const one = await ask(cwd, ...fetch, "--depth", "1", "--", address, sha);
  if (one.status === 0) return;
  // An old server gives what its branches and tags are at, and a plain web server only the whole.
  if (!/unadvertised object|shallow capabilities/.test(one.stderr)) succeeded(one);
  succeeded(await ask(cwd, ...fetch, "--", address, "+refs/heads/*:refs/hmz/heads/*", "+refs/tags/*:refs/hmz/tags/*"));
}

function succeeded({ status, stdout, stderr }: GitOutcome): string {
  if (status !== 0) throw new Error(saidBy(stderr, status));
  return stdout;
}

/** Longer than every command of a fetch may take together. */
const ABANDONED_MS = 3_600_000;

/** Removes what fetches that were killed left. */
async function sweep(kept: string): Promise<void> {
  for (const name of await readdir(kept)) {
    if (!name.startsWith(".")) continue;
    const left = join(kept, name);
    const made = await stat(left).catch(() => undefined);
    if (made && Date.now() - made.mtimeMs > ABANDONED_MS) await rm(left, { recursive: true, force: true });
  }
}
