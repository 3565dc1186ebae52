/** Which file a program's name means, where it is to run. */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, resolve } from "node:path";

/**
 * The absolute path of a program: a name is looked for on the PATH that it will have itself, a path is relative to the
 * directory that it will run in.
 *
 * @throws NodeJS.ErrnoException as `spawn` has it: ENOENT where there is none, EACCES where it may not be run; with
 *   `syscall` "chdir" where it is the directory that cannot be entered.
 */
export function resolveProgram(name: string, cwd: string, path: string | undefined): string {
  const cwdFault = directoryFault(cwd);
  if (cwdFault !== undefined) throw spawnError(cwdFault, "chdir", cwd);
  if (name.includes("/")) {
    const file = resolve(cwd, name);
    const fault = programFault(file);
    if (fault === undefined) return file;
    throw spawnError(fault, `spawn ${name}`, name);
  }
  let fault: Fault = "ENOENT";
  if (name !== "") {
    // What the C library looks through where there is no PATH.
    for (const directory of (path ?? "/usr/bin:/bin").split(delimiter)) {
      const file = resolve(cwd, directory, name);
      const found = programFault(file);
      if (found === undefined) return file;
      if (found === "EACCES") fault = "EACCES";
    }
  }
  throw spawnError(fault, `spawn ${name}`, name);
}

type Fault = "ENOENT" | "ENOTDIR" | "EACCES";

const ERRNO: Readonly<Record<Fault, number>> = { ENOENT: -2, EACCES: -13, ENOTDIR: -20 };

function programFault(file: string): Fault | undefined {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return "ENOENT";
  if (!stat.isFile()) return "EACCES";
  try {
    accessSync(file, constants.X_OK);
    return undefined;
  } catch {
    return "EACCES";
  }
}

function directoryFault(path: string): Fault | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return "ENOENT";
    if (!stat.isDirectory()) return "ENOTDIR";
    accessSync(path, constants.X_OK);
    return undefined;
  } catch {
    return "EACCES";
  }
}

function spawnError(code: Fault, syscall: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${syscall} ${code}`), { code, errno: ERRNO[code], syscall, path });
}
