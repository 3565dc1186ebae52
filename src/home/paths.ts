/** Where everything that hmz keeps lies. */

import { lstatSync, realpathSync } from "node:fs";
import { homedir, tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { makeDirectory } from "./make-directory.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The home of hmz: HUMANIZE_HOME, else `~/.hmz`. Made by whoever writes into it first. */
export class Home {
  /** Absolute. */
  readonly root: string;

  constructor(root: string) {
    this.root = resolve(root);
  }

  static of(env: Environment = process.env): Home {
    const { HUMANIZE_HOME: given } = env;
    return new Home(given ? given : join(userHome(env), ".hmz"));
  }

  /** The epics of every workspace. */
  get epics(): string {
    return join(this.root, "epics");
  }

  /** What is derived of environments: worktrees, copies, scratch directories. */
  get envs(): string {
    return join(this.root, "envs");
  }

  /** The epics of the runs started in a workspace. Workspaces whose keys collide share it. */
  epicsOf(workspace: string): string {
    return join(this.epics, workspaceKey(workspace));
  }
}

/** The home directory of whoever runs hmz. */
export function userHome(env: Environment = process.env): string {
  // An empty HOME would make every path of it relative to wherever hmz was started.
  return env["HOME"] || homedir() || userInfo().homedir;
}

/** A workspace's path, absolute, its symbolic links followed where it is there. */
export function workspacePath(workspace: string): string {
  const path = resolve(workspace);
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** A workspace as the name of one directory. */
export function workspaceKey(workspace: string): string {
  return workspacePath(workspace).replace(/[^A-Za-z0-9]/g, "-");
}

/**
 * The directory of what this machine may lose at any time: caches and sockets. Made where it is not there.
 *
 * @throws Error where it is somebody else's, or somebody else could write in it: its sockets would be theirs to answer.
 */
export function machineDir(env: Environment = process.env): string {
  const { uid } = userInfo();
  const path = join(env["TMPDIR"] || tmpdir(), `humanize-${uid}`);
  makeDirectory(path, 0o700);
  const found = lstatSync(path);
  const remedy = "remove it, or set TMPDIR to a directory of your own";
  if (!found.isDirectory()) throw new Error(`${path} is not a directory: ${remedy}`);
  if (uid !== -1 && found.uid !== uid) throw new Error(`${path} belongs to another user: ${remedy}`);
  if (uid !== -1 && (found.mode & 0o022) !== 0) throw new Error(`${path} can be written by others: ${remedy}`);
  return path;
}
