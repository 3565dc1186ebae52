/** Copies of a workdir, with everything in it. */

import { lstat, mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { EnvError } from "../../flows/errors.ts";
import { git } from "./git.ts";
import { type Host, saidBy } from "./host.ts";

/** Names that one command line takes. */
const AT_ONCE = 500;

/** Copies a workdir to a directory that is not there yet. @throws EnvError; nothing of the copy is left then. */
export async function copyWorkdir(host: Host, workdir: string, target: string): Promise<void> {
  const fault = (why: string): EnvError => new EnvError(`${workdir} cannot be copied to ${target}: ${why}`);
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  if (await isLinked(workdir)) {
    try {
      await copyLinked(host, workdir, target, fault);
    } catch (error) {
      await removeCopy(host, workdir, target);
      throw error;
    }
    return;
  }
  // Beside, then renamed: what is there under the name is whole.
  const part = join(dirname(target), `.part.${process.pid}.${relative(dirname(target), target)}`);
  await rm(part, { recursive: true, force: true });
  try {
    await copyEntries(host, workdir, part, fault, () => true);
    await rename(part, target);
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error instanceof EnvError ? error : fault(error instanceof Error ? error.message : String(error));
  }
}

/** Removes a copy, and git's own note of one that is a worktree. */
export async function removeCopy(host: Host, workdir: string, target: string): Promise<void> {
  if (await isLinked(target)) {
    await git(host, workdir, ["worktree", "remove", "--force", "--force", "--", target]).catch(() => {});
  }
  await rm(target, { recursive: true, force: true });
}

/**
 * Whether a directory's `.git` is a file that names a repository elsewhere. Copied as it is, git in the copy would act
 * on the original: a checkout there would move the original's HEAD.
 */
async function isLinked(directory: string): Promise<boolean> {
  const found = await lstat(join(directory, ".git")).catch(() => undefined);
  return found?.isFile() === true && (await readFile(join(directory, ".git"), "utf8")).startsWith("gitdir:");
}

/** A worktree of its own, detached, its files and index as the original's. */
async function copyLinked(
  host: Host,
  workdir: string,
  target: string,
  fault: (why: string) => EnvError,
): Promise<void> {
  const head = await git(host, workdir, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
  if (head.status !== 0) throw fault("it is a linked worktree without a commit");
  const added = await git(host, workdir, [
    "worktree",
    "add",
    "--quiet",
    "--detach",
    "--no-checkout",
    "--",
    target,
    head.stdout.trim(),
  ]);
  if (added.status !== 0) throw fault(saidBy(added));
  await copyEntries(host, workdir, target, fault, (name) => name !== ".git");
  const [from, to] = await Promise.all([indexOf(host, workdir), indexOf(host, target)]);
  const copied = await host.run(["sh", "-c", '[ ! -e "$1" ] || cp -- "$1" "$2"', "sh", from, to], workdir);
  if (copied.status !== 0) throw fault(saidBy(copied));
}

async function indexOf(host: Host, cwd: string): Promise<string> {
  const found = await git(host, cwd, ["rev-parse", "--path-format=absolute", "--git-path", "index"]);
  return found.stdout.trim();
}

/** Copies what a directory holds, all but what the derived directories themselves lie under. */
async function copyEntries(
  host: Host,
  from: string,
  to: string,
  fault: (why: string) => EnvError,
  isWanted: (name: string) => boolean,
): Promise<void> {
  const within = relative(from, host.envs);
  const holdsEnvs = within === "" || (within !== ".." && !within.startsWith(`..${sep}`));
  if (!holdsEnvs && isWanted(".git")) {
    // The directory whole: its own mode and times with it.
    await ran(host, [...COPY, "--", from, to], from, fault);
    return;
  }
  const [skipped = ""] = holdsEnvs ? within.split(sep) : [];
  await mkdir(to, { recursive: true });
  const names = (await readdir(from)).filter((name) => name !== skipped && isWanted(name));
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const some = names.slice(at, at + AT_ONCE).map((name) => join(from, name));
    await ran(host, [...COPY, "--", ...some, to], from, fault);
  }
  if (skipped !== "" && join(from, skipped) !== host.envs && (await readdir(from)).includes(skipped)) {
    await copyEntries(host, join(from, skipped), join(to, skipped), fault, () => true);
  }
}

/** Modes, times and links are kept; blocks are shared where the file system shares them. */
const COPY = process.platform === "darwin" ? ["cp", "-a", "-c"] : ["cp", "-a", "--reflink=auto"];

async function ran(host: Host, argv: readonly string[], cwd: string, fault: (why: string) => EnvError): Promise<void> {
  const outcome = await host.run(argv, cwd);
  if (outcome.status !== 0) throw fault(saidBy(outcome));
}
