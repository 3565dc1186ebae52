/** How far the file tools reach: the workdir, and what the permission says of the rest of the machine. */

import { posix } from "node:path";
import type { Place } from "../../engine/ports.ts";
import type { Permission, PermissionKind } from "../../flows/permission.ts";

/** One session's, so that the home directory is asked for once. Symbolic links are not followed here. */
export class Reach {
  readonly #place: Place;
  readonly #permission: Permission;
  #home: Promise<string> | undefined;

  constructor(place: Place, permission: Permission) {
    this.#place = place;
    this.#permission = permission;
  }

  /** An absolute path, `.` and `..` resolved. */
  resolve(path: string): string {
    return posix.resolve(this.#place.workdir, path);
  }

  /** As people and models read it: relative where it is under the workdir. */
  shown(path: string): string {
    const relative = posix.relative(this.#place.workdir, path);
    if (relative === "") return ".";
    return isUnder(relative) ? relative : path;
  }

  /** The absolute path of a file that may be read. */
  async toRead(path: string): Promise<string> {
    const absolute = this.resolve(path);
    const { scope, kind } = await this.#grant(absolute);
    if (kind === "none") throw new Error(`${path} may not be read: this session's permission has ${scope}=none`);
    return absolute;
  }

  /** The absolute path of a file that may be written. */
  async toWrite(path: string): Promise<string> {
    const absolute = this.resolve(path);
    const { scope, kind } = await this.#grant(absolute);
    if (kind !== "all") {
      throw new Error(
        scope === "local"
          ? `${path} may not be written: this session's permission has local=${kind}`
          : `${path} is outside of the working directory and may not be written: this session's permission has ` +
              `${scope}=${kind}; write under ${this.#place.workdir}`,
      );
    }
    return absolute;
  }

  async #grant(absolute: string): Promise<{ scope: "local" | "user" | "system"; kind: PermissionKind }> {
    const { local, user, system } = this.#permission;
    if (isUnder(posix.relative(this.#place.workdir, absolute))) return { scope: "local", kind: local };
    if (user === system) return { scope: "system", kind: system };
    this.#home ??= homeOf(this.#place);
    const home = await this.#home;
    return home !== "" && isUnder(posix.relative(home, absolute))
      ? { scope: "user", kind: user }
      : { scope: "system", kind: system };
  }
}

function isUnder(relative: string): boolean {
  return relative !== ".." && !relative.startsWith("../") && !posix.isAbsolute(relative);
}

/** `""` where the machine does not say: the narrower scope then holds. */
async function homeOf({ machine, workdir }: Place): Promise<string> {
  try {
    const { stdout } = await machine.exec(["sh", "-c", 'printf %s "$HOME"'], { cwd: workdir, timeout: 30_000 });
    return posix.isAbsolute(stdout) && stdout !== "/" ? posix.normalize(stdout) : "";
  } catch {
    return "";
  }
}
