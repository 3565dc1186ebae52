/**
 * The leash: a small native program that is put in front of every child on Linux. It hears of this process's death,
 * which no JavaScript can do after a SIGKILL, and ends the child's whole tree then.
 */

import { accessSync, constants } from "node:fs";
import { fileURLToPath } from "node:url";

export type Leash = { readonly path: string } | { readonly missing: string };

let found: Leash | undefined;

/** Where the leash lies, or why there is none. */
export function leash(): Leash {
  found ??= findLeash();
  return found;
}

/** Does without it from now on: it was found but does not start. */
export function dropLeash(reason: string): void {
  found = { missing: reason };
}

function findLeash(): Leash {
  if (process.platform !== "linux") return { missing: `it is for Linux, and this is ${process.platform}` };
  const path = fileURLToPath(
    new URL(`../../native/leash/bin/${process.platform}-${process.arch}/leash`, import.meta.url),
  );
  try {
    accessSync(path, constants.X_OK);
    return { path };
  } catch {
    return { missing: "it was not built: `node scripts/build-native.js` builds it with a C compiler" };
  }
}
