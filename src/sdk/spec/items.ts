/** Splitting the comma lists of `-a`, `-e` and `-p`. */

import { Refused } from "../refused.ts";

/** Which option a list was given to; what a refusal is prefixed with. */
export type Flag = "-a" | "-e" | "-p";

/**
 * A comma that separates: one followed, after optional spaces, by `<key>=` or `budget.<limit>=`. Any other comma is
 * text, so that `-p note=one,two` stays one item.
 */
const SEPARATOR = /,(?=\s*(?:budget(?:\.[A-Za-z_][\w-]*)+|[A-Za-z_][\w-]*)\s*=)/;

/**
 * The items of one occurrence of an option.
 *
 * @throws Refused where an item is empty.
 */
export function items(flag: Flag, value: string): string[] {
  const found = value.split(SEPARATOR);
  if (found.some((item) => item.trim() === "")) throw new Refused(`${flag} '${value}': an item is empty`);
  return found;
}

/** A JavaScript identifier: what a role can be called. */
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;

export function isIdentifier(name: string): boolean {
  return IDENTIFIER.test(name);
}
