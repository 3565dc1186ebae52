/** URLs of git repositories: which of them git may be given, and how one is shown. Looks at no file. */

const SCHEMES = ["https", "http", "ssh", "file", "git"];
const GIT_URL = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/([^/?]*)([^?]*)/;

/** `<scheme>://<authority><path>`; query and fragment are no part of it. */
export interface GitUrl {
  readonly scheme: string;
  /** With a user and a password, where the URL has them. */
  readonly authority: string;
  /** Empty, or begins with a `/`. */
  readonly path: string;
}

/** A URL, taken apart; `undefined` for text that is none. */
export function partsOfUrl(text: string): GitUrl | undefined {
  const parts = GIT_URL.exec(text);
  return parts ? { scheme: parts[1] ?? "", authority: parts[2] ?? "", path: parts[3] ?? "" } : undefined;
}

/** Whether git may be given a URL: nothing in it is an option, or another program, to what git hands it to. */
export function isFetchable({ scheme, authority, path }: GitUrl): boolean {
  const host = authority.slice(authority.lastIndexOf("@") + 1).replace(/:\d*$/, "");
  return (
    SCHEMES.includes(scheme.toLowerCase()) &&
    (host !== "" || scheme.toLowerCase() === "file") &&
    // A leading `-` would be an option of the program that git hands the host to.
    !/^-|@-/.test(authority) &&
    !hasControlOrSpace(authority + path)
  );
}

/** Whether a path names a repository, and not only the host that it is on. */
export function namesRepository(path: string): boolean {
  return !/^\/*$/.test(path);
}

export function hasControlOrSpace(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return /[\u0000-\u0020\u007f]/.test(text);
}

/** Text with a URL in it as it is shown: `user:password@` is `***@`, and so is a lone token of an http URL. */
export function withoutPassword(text: string): string {
  return text
    .replace(/(:\/\/)[^/?#@\s]*:[^/?#\s]*@(?=[^/@]*(?:[/?#]|$))/g, "$1***@")
    .replace(/(https?:\/\/)[^/?#@\s:]+@/gi, "$1***@");
}
