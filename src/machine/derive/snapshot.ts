/**
 * Snapshots of a git worktree: a commit of every file that is not ignored, whose second parent is a commit of the index,
 * under a ref of its own. Taking one touches neither HEAD, nor the index, nor a file.
 */

import { randomBytes } from "node:crypto";
import type { ExecOutcome } from "../../engine/ports.ts";
import { RewindError } from "../../flows/errors.ts";
import { setTimeout as later } from "node:timers/promises";
import { script } from "./git.ts";
import { type Host, saidBy } from "./host.ts";

const REFS = "refs/hmz/snapshots/";
/** The first line of a snapshot's message. */
const TITLE = "hmz snapshot";

/** Statuses of the scripts below that are none of git's. */
const NO_REF = 91;
const LOCKED = 92;

/** How often it is looked again whether another git's lock of the index is gone, and how long each waits. */
const TRIES = 20;
const PAUSE_MS = 100;

/**
 * Nothing of the repository's own runs because hmz keeps its books: no hook, no monitor, no collection of garbage. Line
 * ends that would not come back as they were are no fault, and a submodule is one entry.
 */
const QUIET = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.safecrlf=false",
  "submodule.recurse=false",
  "advice.addEmbeddedRepo=false",
  "gc.auto=0",
];

/**
 * What each script begins with, in the worktree's top from then on. `$dir` is git's directory of this worktree, `$head`
 * the commit that HEAD is, empty before the first.
 *
 * `begin NAME`: works on a copy of the index from then on, which `end` removes. It lies where the index itself does:
 * one that is split finds its other half there. Copies that killed runs left are removed after a day.
 *
 * `add EXCLUDED...`: everything that is not ignored. What lies at the top for hmz is the person's own: it is neither
 * recorded nor removed. Excluded where it is ignored anyway, git would fail.
 */
const OPEN = `
git() { command git ${QUIET.map((setting) => `-c ${setting}`).join(" ")} "$@"; }
GIT_AUTHOR_NAME=hmz GIT_AUTHOR_EMAIL=hmz@localhost GIT_COMMITTER_NAME=hmz GIT_COMMITTER_EMAIL=hmz@localhost
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
top=$(git rev-parse --show-toplevel) && dir=$(git rev-parse --absolute-git-dir) && cd -- "$top" || exit
end() { rm -f -- "$copy" "$copy.lock"; }
work() { copy=$dir/$1; GIT_INDEX_FILE=$copy; export GIT_INDEX_FILE; trap 'end; exit 1' HUP INT TERM; }
begin() {
  for old in "$dir"/hmz-*.index*; do
    [ ! -e "$old" ] || find "$old" -prune -mmin +1440 -exec rm -f -- {} +
  done
  [ ! -e "$dir/index" ] || cp -p -- "$dir/index" "$dir/$1" || exit
  work "$1"
}
add() {
  for own in .hmz .humanize; do
    [ ! -e $own ] || git check-ignore -q $own || set -- ":(top,exclude)$own" "$@"
  done
  git add -A -- :/ "$@" || { end; exit 1; }
}
left() { git ls-files -z -- .hmz .humanize; }
`;

/** `$1` the copy of the index, `$2` the ref, and what cannot be recorded. */
const TAKE = `${OPEN}
name=$1 ref=$2
shift 2
head=$(git rev-parse --quiet --verify 'HEAD^{commit}') || head=
begin "$name"
staged=$(git write-tree 2>/dev/null) || staged=
add "$@"
# In the middle of a merge the index has no tree: what the files are stands for it.
[ -n "$staged" ] || staged=$(git write-tree) || { end; exit 1; }
[ -z "$(git ls-files -- .hmz .humanize)" ] || left | git update-index -z --force-remove --stdin
tree=$(git write-tree) || { end; exit 1; }
end
kept=$(git commit-tree "$staged" \${head:+-p "$head"} -m '${TITLE}: index') || exit
title="on $head"
[ -n "$head" ] || title='before the first commit'
commit=$(git commit-tree "$tree" \${head:+-p "$head"} -p "$kept" -m "${TITLE}: $title") || exit
git update-ref "$ref" "$commit"
`;

/** `$1` the ref. Prints its commit, HEAD's, the branch, and of the commit its parents and its title. */
const LOOK = `${OPEN}
commit=$(git rev-parse --verify --quiet --end-of-options "$1^{commit}") || exit ${NO_REF}
# Known before a file is touched.
[ ! -e "$dir/index.lock" ] || { echo "fatal: Unable to create '$dir/index.lock': File exists." >&2; exit ${LOCKED}; }
head=$(git rev-parse --quiet --verify 'HEAD^{commit}') || head=
branch=$(git symbolic-ref --quiet HEAD) || branch=
printf '%s\\n' "$commit" "$head" "$branch"
git log -1 --no-show-signature --format='%P%n%s' "$commit"
`;

/**
 * `$1` the copy of the index, `$2` what the files are to be, and what cannot be recorded. Prints the tree of that
 * without what is left alone, and how it differs from what is there.
 */
const COMPARE = `${OPEN}
name=$1 files=$2
shift 2
begin "$name"
[ -z "$(git ls-files -- .hmz .humanize)" ] || left | git update-index -z --force-remove --stdin
add "$@"
tree=$(git write-tree) || { end; exit 1; }
[ -z "$(git ls-tree --name-only "$files" -- .hmz .humanize)" ] ||
  files=$(git ls-tree "$files" | awk -F '\\t' '$2 != ".hmz" && $2 != ".humanize"' | git mktree --missing)
printf '%s\\n' "$files"
git diff-tree -r -z --no-renames "$tree" "$files"
`;

/**
 * `$1` the copy of the index, `$2` the tree of the files, `$3` what the index is to be, `$4` what HEAD is to be, `$5`
 * the branch to be emptied, `$6` how many of the paths that follow are repositories to be removed: git itself leaves
 * their files alone. The others are `.gitignore`s: what those ignore that come back is kept, whatever ignored it or did
 * not since.
 *
 * HEAD moves last: until then, what failed in the middle is done again by the next rewind.
 */
const RESTORE = `${OPEN}
work "$1"
files=$2 index=$3 head=$4 branch=$5 nested=$6
shift 6
while [ "$nested" -gt 0 ]; do
  rm -rf -- "./$1"
  nested=$((nested - 1))
  shift
done
if [ $# -gt 0 ]; then
  GIT_LITERAL_PATHSPECS=1 git checkout --quiet "$files" -- "$@"
  git ls-files -z --cached --ignored --exclude-standard | git update-index -z --force-remove --stdin
fi
git read-tree --reset -u "$files" || { end; exit 1; }
end
unset GIT_INDEX_FILE
tries=0
until git read-tree --reset "$index"; do
  tries=$((tries + 1))
  [ -e "$dir/index.lock" ] && [ $tries -lt ${TRIES} ] || exit 1
  sleep 0.1
done
# Says which files changed by its status alone; none of them is a fault.
git update-index -q --refresh >/dev/null
# What is left alone, of another commit than a snapshot: what is not there comes with it.
[ "$index" = "$head" ] && left | git checkout-index -q -z --stdin 2>/dev/null
for name in MERGE_HEAD MERGE_MSG MERGE_MODE AUTO_MERGE SQUASH_MSG CHERRY_PICK_HEAD REVERT_HEAD sequencer; do
  [ ! -e "$dir/$name" ] || rm -rf -- "$dir/$name"
done
if [ -n "$head" ]; then git update-ref -m 'hmz: rewind' HEAD "$head"
elif [ -n "$branch" ]; then git update-ref -d "$branch"
fi
`;

const LIST = `${OPEN}
git for-each-ref --sort=refname --sort=committerdate '--format=%(refname)' ${REFS}
`;

type Verb = "snapshot" | "rewind" | "list the snapshots of";

/** A worktree, as one operation on it knows it. */
class Worktree {
  readonly #host: Host;
  readonly #workdir: string;
  readonly #verb: Verb;

  constructor(host: Host, workdir: string, verb: Verb) {
    this.#host = host;
    this.#workdir = workdir;
    this.#verb = verb;
  }

  fault(why: string, cause?: unknown): RewindError {
    return new RewindError(`could not ${this.#verb} ${this.#workdir}: ${why}`, { cause });
  }

  async tried(text: string, args: readonly string[] = []): Promise<ExecOutcome> {
    try {
      return await script(this.#host, this.#workdir, text, args);
    } catch (error) {
      throw this.fault(error instanceof Error ? error.message : String(error), error);
    }
  }

  /** What a script prints. @throws RewindError where it fails. */
  async run(text: string, args: readonly string[] = []): Promise<string> {
    const outcome = await this.tried(text, args);
    if (outcome.status !== 0) throw this.fault(saidBy(outcome));
    return outcome.stdout;
  }

  /** Runs a script that records every file; returns what it prints, and the repositories that it left out. */
  async recorded(text: string, args: readonly string[]): Promise<{ said: string; bare: readonly string[] }> {
    const bare: string[] = [];
    for (;;) {
      const ran = await this.tried(text, [...args, ...bare.map((path) => `:(top,literal,exclude)${path}`)]);
      if (ran.status === 0) return { said: ran.stdout, bare };
      // A repository in this one that has no commit yet cannot be recorded, and stops everything else.
      const [, nested] = /'(.*?)\/?' does not have a commit checked out/.exec(ran.stderr) ?? [];
      if (nested === undefined || bare.includes(nested)) throw this.fault(saidBy(ran));
      bare.push(nested);
    }
  }
}

/** Records a worktree as it stands; returns the ref. @throws RewindError */
export async function takeSnapshot(host: Host, workdir: string, name: string | undefined): Promise<string> {
  const worktree = new Worktree(host, workdir, "snapshot");
  const ref = `${REFS}${name ?? defaultName()}`;
  if (ref.includes("\0")) throw worktree.fault(`'${name}' is not a name that git takes for a ref`);
  await worktree.recorded(TAKE, [indexName(), ref]);
  return ref;
}

/** Restores a worktree to a snapshot, or to any commit. @throws RewindError */
export async function rewindTo(host: Host, workdir: string, ref: string): Promise<void> {
  const worktree = new Worktree(host, workdir, "rewind");
  if (ref === "" || ref.startsWith("-") || ref.includes("\0")) throw worktree.fault(`'${ref}' is not a ref`);
  const found = await looked(worktree, ref);
  if (found.status === NO_REF) throw worktree.fault(`git knows no ref '${ref}'`);
  if (found.status !== 0) throw worktree.fault(saidBy(found));
  const [commit = "", head = "", branch = "", parents = "", title = ""] = found.stdout.split("\n");
  const wanted = wantedAt(commit, parents, title);
  if (wanted.head === undefined && branch === "") {
    throw worktree.fault(
      "the snapshot is from before the first commit, and HEAD is detached: there is no branch to empty",
    );
  }
  const index = indexName();
  const { said, bare } = await worktree.recorded(COMPARE, [index, wanted.files]);
  const end = said.indexOf("\n");
  const { nested, ignoring } = comparedIn(said.slice(end + 1), bare);
  await worktree.run(RESTORE, [
    index,
    said.slice(0, end),
    wanted.index,
    wanted.head ?? "",
    head === "" ? "" : branch,
    String(nested.length),
    ...nested,
    ...ignoring,
  ]);
}

async function looked(worktree: Worktree, ref: string): Promise<ExecOutcome> {
  for (let tries = 1; ; tries++) {
    const found = await worktree.tried(LOOK, [ref]);
    if (found.status !== LOCKED || tries === TRIES) return found;
    await later(PAUSE_MS);
  }
}

interface Wanted {
  /** `undefined` before the first commit. */
  readonly head: string | undefined;
  /** Trees, or commits of them. */
  readonly index: string;
  readonly files: string;
}

function wantedAt(commit: string, parents: string, title: string): Wanted {
  const [first = "", second] = parents.split(" ");
  if (second !== undefined && title === `${TITLE}: on ${first}`) return { head: first, index: second, files: commit };
  if (second === undefined && first !== "" && title === `${TITLE}: before the first commit`) {
    return { head: undefined, index: first, files: commit };
  }
  return { head: commit, index: commit, files: commit };
}

/** The repositories that are not wanted, and the `.gitignore`s that come back, of what `diff-tree -z` prints. */
function comparedIn(said: string, bare: readonly string[]): { nested: string[]; ignoring: string[] } {
  const nested = new Set(bare);
  const ignoring: string[] = [];
  const parts = said.split("\0");
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [was = "", now = ""] = (parts[at] ?? "").split(" ");
    const path = parts[at + 1] ?? "";
    if (now === "160000") nested.delete(path);
    else if (was === ":160000") nested.add(path);
    if (now.startsWith("100") && (path === ".gitignore" || path.endsWith("/.gitignore"))) ignoring.push(path);
  }
  return { nested: [...nested], ignoring };
}

/** The refs of a worktree's snapshots, oldest first. @throws RewindError */
export async function listSnapshots(host: Host, workdir: string): Promise<string[]> {
  const said = await new Worktree(host, workdir, "list the snapshots of").run(LIST);
  return said.split("\n").filter((ref) => ref !== "");
}

function indexName(): string {
  return `hmz-${randomBytes(6).toString("hex")}.index`;
}

/** `<UTC %Y%m%dT%H%M%S.%fZ>-<4 hex>` */
function defaultName(): string {
  const micros = Math.floor((performance.timeOrigin + performance.now()) * 1_000);
  const stamp = new Date(micros / 1_000).toISOString().replace(/[-:]/g, "").slice(0, "20000101T000000".length);
  return `${stamp}.${String(micros % 1_000_000).padStart(6, "0")}Z-${randomBytes(2).toString("hex")}`;
}
