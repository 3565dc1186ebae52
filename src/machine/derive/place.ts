/** Where what is derived of a workdir lies: it follows from the workdir and the id, so that a later run finds it. */

import { createHash } from "node:crypto";
import { basename, join } from "node:path";

const LONGEST = 32;

/** The directory of everything that is derived of a workdir. */
export function placeOf(envs: string, workdir: string): string {
  const name = basename(workdir)
    .replaceAll(/[^A-Za-z0-9_.-]/g, "-")
    .replace(/^\.+/, "")
    .slice(0, LONGEST);
  return join(envs, `${name || "root"}-${digest(workdir)}`);
}

/** An id as the name of one file: as it is, where it is one that no other id can be written as. */
export function nameOf(id: string): string {
  return /^[a-z0-9_][a-z0-9_.-]*$/.test(id) && id.length <= LONGEST && !/(?:\.lock|~\d+|-[0-9a-f]{12})$/.test(id)
    ? id
    : `${id
        .toLowerCase()
        .replaceAll(/[^a-z0-9_-]/g, "-")
        .slice(0, LONGEST)}-${digest(id)}`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
