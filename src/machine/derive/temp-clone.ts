/** Copies of a workdir, with everything in it. */

import { basename, dirname, join } from "node:path";
import { EnvError } from "../../flows/errors.ts";
import { script } from "./git.ts";
import { type Host, saidBy } from "./host.ts";
import { addDetached, removeWorktree } from "./worktree.ts";

/** Statuses of the scripts below that are none of `cp`'s. */
const LINKED = 91;
const UNBORN = 92;

/**
 * Functions of the scripts below.
 *
 * `linked DIR`: whether its `.git` is a file that names a repository elsewhere. Copied as it is, git in the copy would
 * act on the original: a checkout there would move the original's HEAD.
 *
 * `gone DIR`: removes it, whatever it lets be written: a module cache holds directories that do not.
 *
 * `copy FROM... TO`: modes, times and links are kept; blocks are shared where the file system shares them.
 *
 * `around FROM TO SKIPPED`: copies what a directory holds, all but a directory somewhere in it, and `.git` where TO has
 * one. The copies of a workdir that hold hmz's home would hold themselves.
 *
 * `whole FROM TO ENVS`: copies a directory that may hold ENVS.
 */
const FUNCTIONS = `
linked() { [ -f "$1/.git" ] && read -r first <"$1/.git" && case $first in gitdir:*) : ;; *) false ;; esac; }
gone() {
  [ -e "$1" ] || [ -L "$1" ] || return 0
  rm -rf -- "$1" 2>/dev/null || { chmod -R u+rwx -- "$1"; rm -rf -- "$1"; }
}
case $(uname) in Darwin) share=-c ;; *) share=--reflink=auto ;; esac
copy() {
  said=$(cp -a $share -- "$@" 2>&1) && return
  case $said in *reflink* | *"illegal option"*) said=$(cp -a -- "$@" 2>&1) && return ;; esac
  printf '%s\\n' "$said" >&2
  return 1
}
around() {
  mkdir -p -- "$2" || return
  for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    [ -e "$entry" ] || [ -L "$entry" ] || continue
    name=\${entry##*/}
    [ "$name" = .git ] && [ -e "$2/.git" ] && continue
    [ "$name" = "\${3%%/*}" ] && continue
    copy "$entry" "$2/" || return
  done
  chmod "$(stat -c %a -- "$1" 2>/dev/null || stat -f %Lp -- "$1")" "$2"
  case $3 in */*) around "$1/\${3%%/*}" "$2/\${3%%/*}" "\${3#*/}" ;; esac
}
whole() {
  from=$(cd -- "$1" && pwd -P) || return
  envs=$(cd -- "$3" 2>/dev/null && pwd -P)
  case $envs in
    "$from"/*) around "$1" "$2" "\${envs#"$from"/}" ;;
    *) if [ -e "$2" ]; then around "$1" "$2" ""; else copy "$from" "$2"; fi ;;
  esac
}
`;

/**
 * `$1` the workdir, `$2` the copy's place, `$3` where it grows, `$4` the directory of everything derived. It is beside
 * its place until it is whole.
 *
 * The worktrees that the repository notes are not the copy's: one within is noted as its own, others are forgotten.
 */
const COPY = `${FUNCTIONS}
linked "$1" && exit ${LINKED}
mkdir -p -- "\${3%/*}" && gone "$3" && gone "$2" || exit
whole "$1" "$3" "$4" || { gone "$3"; exit 1; }
real=$(cd -- "$1" && pwd -P)
for notes in "$3"/.git/worktrees/*/; do
  [ -f "$notes/gitdir" ] || continue
  read -r tree <"$notes/gitdir"
  case $tree in
    "$real"/*) within=\${tree#"$real"/} ;;
    *) rm -rf -- "$notes"; continue ;;
  esac
  [ -f "$3/$within" ] || { rm -rf -- "$notes"; continue; }
  name=\${notes%/}
  printf '%s\\n' "$2/$within" >"$notes/gitdir"
  printf 'gitdir: %s\\n' "$2/.git/worktrees/\${name##*/}" >"$3/$within"
done
mv -- "$3" "$2" || { gone "$3"; exit 1; }
`;

/** `$1` the workdir. Prints the directory that all worktrees of the repository share, and the commit. */
const FIND = `
git rev-parse --path-format=absolute --git-common-dir || exit
git rev-parse --verify --quiet 'HEAD^{commit}' || exit ${UNBORN}
`;

/** Lays the files and the index of a worktree over one that was added with nothing in it. Arguments as of COPY. */
const LAY = `${FUNCTIONS}
whole "$1" "$2" "$4" || exit
from=$(git -C "$1" rev-parse --absolute-git-dir) && to=$(git -C "$2" rev-parse --absolute-git-dir) || exit
for file in "$from"/index "$from"/sharedindex.*; do
  [ ! -e "$file" ] || cp -p -- "$file" "$to/" || exit
done
`;

/** Removes `$1`, or says that git has to. */
const REMOVE = `${FUNCTIONS}
[ "\${2-}" = anyway ] || { linked "$1" && exit ${LINKED}; }
gone "$1"
`;

/** Copies a workdir to a place, over whatever is there. @throws EnvError; nothing of the copy is left then. */
export async function copyWorkdir(host: Host, workdir: string, target: string): Promise<void> {
  const fault = (why: string): EnvError => new EnvError(`${workdir} cannot be copied to ${target}: ${why}`);
  await removeCopy(host, workdir, target);
  const part = join(dirname(target), `.part.${process.pid}.${basename(target)}`);
  const args = [workdir, target, part, host.envs];
  const copied = await script(host, workdir, COPY, args);
  if (copied.status === 0) return;
  if (copied.status !== LINKED) throw fault(saidBy(copied));
  try {
    // A worktree of its own, detached, its files and index as the original's.
    const found = await script(host, workdir, FIND);
    if (found.status === UNBORN) throw fault("it is a linked worktree without a commit");
    if (found.status !== 0) throw fault(saidBy(found));
    const [repository = "", commit = ""] = found.stdout.split("\n");
    const added = await addDetached(host, workdir, repository, [target, commit, "--no-checkout"]);
    if (added.status !== 0) throw fault(saidBy(added));
    const laid = await script(host, workdir, LAY, args);
    if (laid.status !== 0) throw fault(saidBy(laid));
  } catch (error) {
    await removeCopy(host, workdir, target);
    throw error;
  }
}

/** Removes a directory that was derived, and git's own note of one that is a worktree. @throws EnvError */
export async function removeCopy(host: Host, workdir: string, target: string): Promise<void> {
  let removed = await script(host, "/", REMOVE, [target]);
  if (removed.status === LINKED) {
    // Where the workdir is gone, so may be its repository, and the note with it.
    await removeWorktree(host, workdir, target).catch(() => {});
    removed = await script(host, "/", REMOVE, [target, "anyway"]);
  }
  if (removed.status !== 0) throw new EnvError(`${target} cannot be removed: ${saidBy(removed)}`);
}
