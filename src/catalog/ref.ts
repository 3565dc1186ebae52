/** Refs: the text that names a flow, taken apart. Looks at no file. */

import { FlowRefError } from "../flows/errors.ts";
import { hasControlOrSpace, isFetchable, namesRepository, partsOfUrl, withoutPassword } from "./git-url.ts";

/** What a ref says, before anything was looked up. `sub` is what follows the `:`. */
export type Ref = RelativeRef | NameRef | PathRef | GitRef;

/** `:<name>`: a flow of the module that asks. */
export interface RelativeRef {
  readonly kind: "relative";
  readonly ref: string;
  readonly sub: string;
}

/** `[@<flowverse>/][<user>/]<flow>[:<name>]` */
export interface NameRef {
  readonly kind: "name";
  readonly ref: string;
  readonly flowverse: string | undefined;
  readonly user: string | undefined;
  readonly flow: string;
  readonly sub: string | undefined;
}

/** What starts with `.`, `/` or `~`. The path is as written: `~` stands. */
export interface PathRef {
  readonly kind: "path";
  readonly ref: string;
  readonly path: string;
  readonly sub: string | undefined;
}

/** `git+<url>[@<rev>][#<subdir>][:<name>]`. The URL may hold a password: show `ref`, which does not. */
export interface GitRef {
  readonly kind: "git";
  readonly ref: string;
  readonly url: string;
  readonly rev: string | undefined;
  readonly subdir: string | undefined;
  readonly sub: string | undefined;
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;

/**
 * A ref, taken apart.
 *
 * @throws FlowRefError where the text is not a ref.
 */
export function parseRef(ref: string): Ref {
  if (ref.startsWith("git+")) return gitRef(ref);
  const { head, sub } = splitSub(ref);
  if (sub !== undefined && !NAME.test(sub)) {
    throw new FlowRefError(`${ref}: '${sub}' is not a flow name: letters, digits, \`_\`, \`.\` and \`-\``);
  }
  if (head === "" && sub !== undefined) return { kind: "relative", ref, sub };
  if (/^[./~]/.test(head)) {
    // A path with a NUL is a TypeError of every file call, not a file that is missing.
    if (head.includes("\0")) throw notAName(ref);
    return { kind: "path", ref, path: head, sub };
  }
  const parts = head.split("/");
  const flowverse = head.startsWith("@") ? parts.shift()?.slice(1) : undefined;
  const [flow, user, ...more] = parts.toReversed();
  const named = [flowverse, user, flow].filter((part) => part !== undefined);
  if (flow === undefined || more.length > 0 || !named.every(isPart)) throw notAName(ref);
  return { kind: "name", ref, flowverse, user, flow, sub };
}

function notAName(ref: string): FlowRefError {
  return new FlowRefError(
    `'${ref}' is not a flow's name, [@<flowverse>/][<user>/]<flow>; a path starts with ./, / or ~`,
  );
}

/** Neither empty, nor hidden, nor anything that a path could climb or be cut by. */
function isPart(part: string): boolean {
  return part !== "" && !part.startsWith(".") && !/[\\\0]/.test(part);
}

/** A `:` separates only where no `/` follows it. */
function splitSub(text: string): { head: string; sub: string | undefined } {
  const colon = text.lastIndexOf(":");
  if (colon === -1 || text.includes("/", colon)) return { head: text, sub: undefined };
  return { head: text.slice(0, colon), sub: text.slice(colon + 1) };
}

function gitRef(given: string): GitRef {
  const ref = withoutPassword(given);
  const shape = (): FlowRefError =>
    new FlowRefError(`'${ref}': a ref naming a repository is git+<url>[@<rev>][#<subdir>][:<sub>]`);
  const hash = given.indexOf("#");
  const before = given.slice("git+".length, hash === -1 ? undefined : hash);
  const fragment = hash === -1 ? undefined : given.slice(hash + 1);
  // Without a fragment, a final `:<name>` is a sub-flow where a path stands before it, and a port where none does.
  const { head, sub } = fragment === undefined ? splitGitSub(before) : splitSub(fragment);
  const subdir = fragment === undefined ? undefined : head;
  const location = fragment === undefined ? head : before;

  const parts = partsOfUrl(location);
  if (!parts) throw shape();
  const { scheme, authority, path: pathAndRev } = parts;
  const at = pathAndRev.lastIndexOf("@");
  const path = at === -1 ? pathAndRev : pathAndRev.slice(0, at);
  const rev = at === -1 ? undefined : pathAndRev.slice(at + 1);
  const url = `${scheme}://${authority}${path}`;
  if (!isFetchable({ scheme, authority, path })) {
    throw new FlowRefError(`'${ref}': '${withoutPassword(url)}' is not a URL git can fetch`);
  }
  if (!namesRepository(path)) throw new FlowRefError(`'${ref}': '${withoutPassword(url)}' names no repository`);
  if (rev !== undefined && (rev === "" || rev.startsWith("-") || hasControlOrSpace(rev))) throw shape();
  if (
    fragment !== undefined &&
    !(subdir?.split("/").every((part) => NAME.test(part)) && (sub === undefined || NAME.test(sub)))
  ) {
    throw new FlowRefError(`'${ref}': #${fragment} is not <subdir>[:<subflow>]`);
  }
  if (fragment === undefined && sub !== undefined && !NAME.test(sub)) throw shape();
  return { kind: "git", ref, url, rev, subdir, sub };
}

function splitGitSub(location: string): { head: string; sub: string | undefined } {
  const parted = splitSub(location);
  return /:\/\/[^/]*\/./.test(parted.head) ? parted : { head: location, sub: undefined };
}
