/**
 * Snapshots of a git worktree: a commit of every file that is not ignored, whose second parent is a commit of the index,
 * under a ref of its own. Taking one touches neither HEAD, nor the index, nor a file.
 */

import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ExecOutcome } from "../../engine/ports.ts";
import { RewindError } from "../../flows/errors.ts";
import { git } from "./git.ts";
import { type Host, saidBy } from "./host.ts";

const REFS = "refs/hmz/snapshots/";
/** The first line of a snapshot's message. */
const TITLE = "hmz snapshot";
/** At the worktree's top, they are the person's own: neither recorded nor removed. */
const LEFT = [":(top,exclude).hmz", ":(top,exclude).humanize"];
/** Nothing of the repository's own runs because hmz keeps its books: no hook, no monitor, no question. */
const QUIET = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["advice.addEmbeddedRepo", "false"],
  ["gc.auto", "0"],
].flatMap(([name, value]) => ["-c", `${name}=${value}`]);
const AUTHOR = {
  GIT_AUTHOR_NAME: "hmz",
  GIT_AUTHOR_EMAIL: "hmz@localhost",
  GIT_COMMITTER_NAME: "hmz",
  GIT_COMMITTER_EMAIL: "hmz@localhost",
};

type Verb = "snapshot" | "rewind" | "list the snapshots of";

/** A worktree, as one operation on it knows it. */
class Worktree {
  readonly #host: Host;
  readonly #workdir: string;
  readonly #verb: Verb;
  top = "";
  #directory = "";

  constructor(host: Host, workdir: string, verb: Verb) {
    this.#host = host;
    this.#workdir = workdir;
    this.#verb = verb;
  }

  async open(): Promise<this> {
    const said = await this.git(["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir"]);
    [this.top = "", this.#directory = ""] = said.split("\n");
    return this;
  }

  fault(why: string): RewindError {
    return new RewindError(`could not ${this.#verb} ${this.#workdir}: ${why}`);
  }

  /** What git prints. @throws RewindError where it fails. */
  async git(args: readonly string[], variables: Readonly<Record<string, string>> = {}): Promise<string> {
    const outcome = await this.tried(args, variables);
    if (outcome.status !== 0) throw this.fault(saidBy(outcome));
    return outcome.stdout.replace(/\n$/, "");
  }

  async tried(args: readonly string[], variables: Readonly<Record<string, string>> = {}): Promise<ExecOutcome> {
    try {
      return await git(this.#host, this.top || this.#workdir, [...QUIET, ...args], variables);
    } catch (error) {
      throw this.fault(error instanceof Error ? error.message : String(error));
    }
  }

  /** The path of a file of git's own for this worktree. */
  own(name: string): string {
    return join(this.#directory, name);
  }

  /**
   * Runs a function over a copy of the index. It lies where the index itself does: one that is split finds its other
   * half there.
   */
  async withIndex<T>(work: (variables: Readonly<Record<string, string>>) => Promise<T>): Promise<T> {
    const copy = this.own(`hmz-${randomBytes(6).toString("hex")}.index`);
    const argv = ["sh", "-c", '[ ! -e "$1" ] || cp -p -- "$1" "$2"', "sh", this.own("index"), copy];
    try {
      const copied = await this.#host.run(argv, this.top);
      if (copied.status !== 0) throw this.fault(saidBy(copied));
      return await work({ GIT_INDEX_FILE: copy });
    } finally {
      await rm(copy, { force: true });
      await rm(`${copy}.lock`, { force: true });
    }
  }

  /** Every file that is not ignored, as a tree. The index given holds them all from then on. */
  async files(variables: Readonly<Record<string, string>>): Promise<{ tree: string; bare: readonly string[] }> {
    const bare: string[] = [];
    for (;;) {
      const without = bare.map((path) => `:(top,literal,exclude)${path}`);
      const added = await this.tried(["add", "-A", "--", ":/", ...LEFT, ...without], variables);
      if (added.status === 0) break;
      // A repository in this one that has no commit yet cannot be recorded, and stops everything else.
      const [, nested] = /'(.*?)\/?' does not have a commit checked out/.exec(added.stderr) ?? [];
      if (nested === undefined || bare.includes(nested)) throw this.fault(saidBy(added));
      bare.push(nested);
    }
    return { tree: await this.git(["write-tree"], variables), bare };
  }

  /** The commit that HEAD is; `undefined` before the first. */
  async head(): Promise<string | undefined> {
    const found = await this.tried(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
    return found.status === 0 ? found.stdout.trim() : undefined;
  }
}

/** Records a worktree as it stands; returns the ref. @throws RewindError */
export async function takeSnapshot(host: Host, workdir: string, name: string | undefined): Promise<string> {
  const worktree = await new Worktree(host, workdir, "snapshot").open();
  const ref = `${REFS}${name ?? defaultName()}`;
  if ((await worktree.tried(["check-ref-format", ref])).status !== 0) {
    throw worktree.fault(`'${name}' is not a name that git takes for a ref`);
  }
  const head = await worktree.head();
  const commit = await worktree.withIndex(async (variables) => {
    const staged = await worktree.tried(["write-tree"], variables);
    const { tree } = await worktree.files(variables);
    // In the middle of a merge the index has no tree: what the files are stands for it.
    const index = staged.status === 0 ? staged.stdout.trim() : tree;
    const parent = head === undefined ? [] : ["-p", head];
    const kept = await worktree.git(["commit-tree", index, ...parent, "-m", `${TITLE}: index`], AUTHOR);
    const title = `${TITLE}: ${head === undefined ? "before the first commit" : `on ${head}`}`;
    return worktree.git(["commit-tree", tree, ...parent, "-p", kept, "-m", title], AUTHOR);
  });
  await worktree.git(["update-ref", ref, commit], AUTHOR);
  return ref;
}

/** Restores a worktree to a snapshot, or to any commit. @throws RewindError */
export async function rewindTo(host: Host, workdir: string, ref: string): Promise<void> {
  const worktree = await new Worktree(host, workdir, "rewind").open();
  if (ref === "" || ref.startsWith("-")) throw worktree.fault(`'${ref}' is not a ref`);
  const found = await worktree.tried(["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`]);
  if (found.status !== 0) throw worktree.fault(`git knows no ref '${ref}'`);
  const wanted = await wantedAt(worktree, found.stdout.trim());
  const branch = await worktree.tried(["symbolic-ref", "--quiet", "HEAD"]);
  if (wanted.head === undefined && branch.status !== 0) {
    throw worktree.fault(
      "the snapshot is from before the first commit, and HEAD is detached: there is no branch to empty",
    );
  }
  await worktree.withIndex(async (variables) => {
    const { bare } = await worktree.files(variables);
    await removeNested(worktree, bare, wanted.files, variables);
    await worktree.git(["read-tree", "--reset", "-u", wanted.files], variables);
  });
  await worktree.git(["read-tree", "--reset", wanted.index]);
  // Says which files changed by their status alone; none of them is a fault.
  await worktree.tried(["update-index", "-q", "--refresh"]);
  for (const name of UNDER_WAY) await rm(worktree.own(name), { recursive: true, force: true });
  if (wanted.head !== undefined) await worktree.git(["update-ref", "-m", "hmz: rewind", "HEAD", wanted.head], AUTHOR);
  else if (await worktree.head()) await worktree.git(["update-ref", "-d", branch.stdout.trim()], AUTHOR);
}

/** What git keeps of a merge, a cherry-pick or a revert that is not over. */
const UNDER_WAY = [
  "MERGE_HEAD",
  "MERGE_MSG",
  "MERGE_MODE",
  "AUTO_MERGE",
  "SQUASH_MSG",
  "CHERRY_PICK_HEAD",
  "REVERT_HEAD",
  "sequencer",
];

interface Wanted {
  /** `undefined` before the first commit. */
  readonly head: string | undefined;
  /** Trees, or commits of them. */
  readonly index: string;
  readonly files: string;
}

async function wantedAt(worktree: Worktree, commit: string): Promise<Wanted> {
  const said = await worktree.git(["log", "-1", "--no-show-signature", "--format=%P%n%s", commit]);
  const [parents = "", title = ""] = said.split("\n");
  const [first = "", second] = parents.split(" ");
  if (!title.startsWith(`${TITLE}: `) || title === `${TITLE}: index`)
    return { head: commit, index: commit, files: commit };
  if (second !== undefined && title === `${TITLE}: on ${first}`) return { head: first, index: second, files: commit };
  if (second === undefined && first !== "") return { head: undefined, index: first, files: commit };
  return { head: commit, index: commit, files: commit };
}

/** Removes the repositories in this one that are not wanted: git itself leaves their files alone. */
async function removeNested(
  worktree: Worktree,
  bare: readonly string[],
  wanted: string,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const [now, then] = await Promise.all([
    worktree.git(["ls-files", "-s", "-z"], variables),
    worktree.git(["ls-tree", "-r", "-z", wanted]),
  ]);
  const kept = linksIn(then);
  for (const path of [...bare, ...linksIn(now)]) {
    if (!kept.has(path)) await rm(join(worktree.top, path), { recursive: true, force: true });
  }
}

function linksIn(listed: string): ReadonlySet<string> {
  const links = listed.split("\0").filter((line) => line.startsWith("160000 "));
  return new Set(links.map((line) => line.slice(line.indexOf("\t") + 1)));
}

/** The refs of a worktree's snapshots, oldest first. @throws RewindError */
export async function listSnapshots(host: Host, workdir: string): Promise<string[]> {
  const worktree = await new Worktree(host, workdir, "list the snapshots of").open();
  const said = await worktree.git([
    "for-each-ref",
    "--sort=refname",
    "--sort=committerdate",
    "--format=%(refname)",
    REFS,
  ]);
  return said === "" ? [] : said.split("\n");
}

/** `<UTC %Y%m%dT%H%M%S.%fZ>-<4 hex>` */
function defaultName(): string {
  const micros = Math.floor((performance.timeOrigin + performance.now()) * 1_000);
  const stamp = new Date(micros / 1_000).toISOString().replace(/[-:]/g, "").slice(0, "20000101T000000".length);
  return `${stamp}.${String(micros % 1_000_000).padStart(6, "0")}Z-${randomBytes(2).toString("hex")}`;
}
