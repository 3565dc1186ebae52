/** `-e`: `<role>=<backend>[@<provider>][/<workdir>]`. */

import { ENV_BACKENDS, type EnvBackend } from "../../flows/env.ts";
import { Refused } from "../refused.ts";
import { isIdentifier, items } from "./items.ts";

/** What fills an environment role, as it was written. */
export interface EnvSpec {
  readonly backend: EnvBackend;
  /** The saved runtime's name; `""` for none. */
  readonly provider: string;
  /** `[user@]host[:port]`, for ssh to a host nobody saved; `""` otherwise. */
  readonly host: string;
  /** Absolute, or `~` and what lies under it. */
  readonly workdir: string;
  /** The spec as it was written, without its role. */
  readonly text: string;
}

/** What is known of a saved runtime here; `undefined` where none is saved under that name. */
export type SavedRuntimes = (backend: EnvBackend, name: string) => { readonly workdir?: string } | undefined;

const NONE_SAVED: SavedRuntimes = () => undefined;

/** What is handed to ssh as it is. It never starts with `-`, which ssh would read as an option. */
const HOST = /^(?:[\w.+][\w.+-]*@)?(?:[\w.][\w.-]*|\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\])(?::(?<port>\d{1,5}))?$/;

/**
 * Every occurrence of `-e`, read as one list: specs by role.
 *
 * @throws Refused where one is written wrong, or a role is given twice.
 */
export function parseEnvs(values: readonly string[], saved: SavedRuntimes = NONE_SAVED): Record<string, EnvSpec> {
  const found = new Map<string, EnvSpec>();
  for (const item of values.flatMap((value) => items("-e", value))) {
    const said = item.trim();
    const cut = said.indexOf("=");
    const role = said.slice(0, Math.max(cut, 0)).trim();
    if (role === "") throw expected(said);
    const spec = parseEnv(role, said.slice(cut + 1), saved, said);
    if (found.has(role)) throw new Refused(`-e: the role '${role}' is given twice`);
    found.set(role, spec);
  }
  return Object.fromEntries(found);
}

function expected(said: string): Refused {
  return new Refused(`-e '${said}': expected <role>=<backend>[@<provider>][/<workdir>]`);
}

/**
 * What fills one role. `said` is the whole item, for refusals.
 *
 * @throws Refused where it is written wrong.
 */
export function parseEnv(
  role: string,
  written: string,
  saved: SavedRuntimes = NONE_SAVED,
  said = `${role}=${written}`,
): EnvSpec {
  const refuse = (message: string): Refused => new Refused(`-e '${said}': ${message}`);
  if (!isIdentifier(role)) throw refuse(`the role '${role}' is not an identifier`);
  const text = written.trim();
  const parts = PARTS.exec(text)?.groups;
  if (!parts) throw expected(said);
  const { backend = "", at, name = "", bracketed, path } = parts;
  if (backend === "") throw expected(said);
  if (!isBackend(backend)) throw refuse(`'${backend}' is not a backend; one of ${ENV_BACKENDS.join(", ")}`);
  if (backend === "local") {
    if (at !== undefined) throw refuse(`local takes no provider; write ${role}=local/<workdir>`);
  } else if (backend === "ssh") {
    if (name === "" && !bracketed) {
      throw refuse(
        "ssh needs a host: ssh@<saved host>/<workdir>, or ssh@[user@host:port]/<workdir> for a host not saved",
      );
    }
    if (bracketed !== undefined && !isHost(bracketed)) {
      throw refuse(`'${bracketed}' is not an ssh host, as [user@]host[:port]`);
    }
    if (name !== "" && !saved(backend, name)) {
      throw refuse(`no ssh host is saved as '${name}'; write ${role}=ssh@[${name}]/<workdir> for a host not saved`);
    }
  } else {
    if (bracketed !== undefined) {
      throw refuse(
        `only ssh takes a host nobody saved; ${backend}@<name> names a ${backend} runtime saved on the runtimes page of /settings`,
      );
    }
    if (at !== undefined && name === "") {
      throw refuse(`an @ is written only before a provider; write ${role}=${backend}/<workdir>`);
    }
    if (name !== "" && !saved(backend, name)) {
      throw refuse(
        name === "local"
          ? `${backend} on this machine names no provider; write ${role}=${backend}/<workdir>`
          : `no ${backend} runtime is saved as '${name}'; save one on the runtimes page of /settings, or write ${role}=${backend}/<workdir> for ${backend} on this machine`,
      );
    }
  }
  const workdir = workdirOf(backend, path) || (name === "" ? "" : (saved(backend, name)?.workdir ?? ""));
  if (workdir === "") {
    throw refuse(
      "expected <role>=<backend>[@<provider>][/<workdir>]; /<workdir> may be left off only for a runtime saved with one",
    );
  }
  if (
    workdir.split("/").some((part) => part === "." || part === "..") ||
    (backend === "local" && /^\/?~/.test(workdir))
  ) {
    throw refuse(`a workdir is absolute, and has no ., no .. and no ~ in it, as ${role}=${backend}/srv/work`);
  }
  return { backend, provider: name, host: bracketed ?? "", workdir, text };
}

/**
 * The backend; then, after an `@`, a name or a bracketed host; then the path. A bracket anywhere else before the path
 * does not match. The bracketed host may hold brackets of its own, around an IPv6 address.
 */
const PARTS =
  /^(?<backend>[^@/[\]]*)(?<at>@(?:\[(?<bracketed>(?:[^/[\]]|\[[^/[\]]*\])*)\]|(?<name>[^/[\]]*)))?(?<path>\/.*)?$/s;

function isBackend(word: string): word is EnvBackend {
  return ENV_BACKENDS.some((known) => known === word);
}

function isHost(text: string): boolean {
  const found = HOST.exec(text);
  if (!found) return false;
  const port = found.groups?.["port"];
  return port === undefined || (Number(port) >= 1 && Number(port) <= 65_535);
}

/** The leading `/` before `~` is dropped where the machine has a home of the login's; `""` where nothing is written. */
function workdirOf(backend: EnvBackend, path: string | undefined): string {
  if (path === undefined || path === "/") return "";
  if ((backend === "ssh" || backend === "slurm") && /^\/~(?:\/|$)/.test(path)) return path.slice(1);
  return path;
}
