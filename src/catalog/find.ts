/** From a ref to the file that a flow module starts at. Reads directories; imports nothing. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, extname, join, resolve } from "node:path";
import { FlowNotFound } from "../flows/errors.ts";
import { type CatalogPlaces, flowversesOf, type Place, placesOf, shownPath } from "./places.ts";
import { withoutPassword } from "./git-url.ts";
import type { GitRef, NameRef, PathRef } from "./ref.ts";

/** A flow module, found and not imported. */
export interface FoundModule {
  /** The directory's name, or the file's without its extension. */
  readonly name: string;
  /** As lists show it and `-f` takes it: `chat`, `alice/kernel`, `@local/chat`; the path of one found by its path. */
  readonly listed: string;
  /** The file that is imported. */
  readonly entry: string;
  /** The directory that it is, or, of a single file, the one that it is in. */
  readonly directory: string;
  /** Whether it is one file, which brings no skills. */
  readonly single: boolean;
  /** Where it was found by name; `undefined` for one found by its path. */
  readonly place: Place | undefined;
  /** The checkout of a repository that it lies in: the flows that it asks for by name are looked for in there first. */
  readonly checkout?: string | undefined;
}

const EXTENSIONS = [".ts", ".js", ".mts", ".mjs"];

/** What a module is called in messages: its directory, or its file. */
export function shownModule({ single, entry, directory }: Pick<FoundModule, "single" | "entry" | "directory">): string {
  return shownPath(single ? entry : directory);
}

/**
 * The module that a name means.
 *
 * @param asking The module of the flow that asks: its own directory of flows is looked in first.
 * @throws FlowNotFound where nothing answers to it.
 */
export function findByName(ref: NameRef, given: CatalogPlaces, asking?: FoundModule): FoundModule {
  const { flow, user, flowverse } = ref;
  const path = user === undefined ? flow : `${user}/${flow}`;
  for (const place of placesFor(ref, placesOf(given), asking)) {
    const found = moduleIn(place, path);
    if (!found) continue;
    return place.flowverse === "" ? { ...found, checkout: asking?.checkout } : found;
  }
  const name = (flowverse === undefined ? "" : `@${flowverse}/`) + path;
  throw new FlowNotFound(whyNotFound(ref, name, path, given));
}

function placesFor({ user, flowverse }: NameRef, places: readonly Place[], asking?: FoundModule): readonly Place[] {
  if (flowverse !== undefined) return places.filter((place) => place.flowverse === flowverse);
  const official = places.filter((place) => place.flowverse === "official");
  const nearest = user === undefined ? places : official;
  if (!asking) return nearest;
  if (asking.place) return user === undefined || asking.place.installed ? [asking.place, ...nearest] : nearest;
  const beside: Place = {
    flowverse: "", // Nobody's: where the flow asking was found by its path.
    // Above the root of a repository lie other commits of it.
    directory: asking.single || asking.directory === asking.checkout ? asking.directory : dirname(asking.directory),
    installed: false,
  };
  return user === undefined ? [beside, ...nearest] : nearest;
}

function whyNotFound(ref: NameRef, name: string, path: string, given: CatalogPlaces): string {
  const { flowverse, user } = ref;
  const known = flowversesOf(given);
  const asked =
    flowverse !== undefined
      ? known.filter((verse) => verse.name === flowverse)
      : user !== undefined
        ? known.filter((verse) => verse.name === "official")
        : known;
  const listing = asked.find((verse) => verse.lists?.(path));
  if (listing) return `${name}: not installed -- install it from /flow (flowverse ${listing.name})`;
  if (flowverse === undefined && user !== undefined) {
    if (user === "official") return `${path}: a flow of official is called ${ref.flow} now`;
    if (["local", "user", ...known.map((verse) => verse.name)].includes(user)) {
      return `${path}: a flow of ${user} is called @${path} now`;
    }
    if (moduleAt(resolve(given.workspace, path))) {
      return `${path}: a path starts with ./, / or ~, as ./${path} does`;
    }
  }
  const unfetched = asked.filter((verse) => verse.fetched === false).map((verse) => verse.name);
  if (unfetched.length === 1) {
    return `${name}: the ${unfetched[0]} flowverse has not been fetched yet -- fetch it from /flow`;
  }
  if (unfetched.length > 1) {
    const all = `${unfetched.slice(0, -1).join(", ")} and ${unfetched.at(-1)}`;
    return `${name}: the ${all} flowverses have not been fetched yet -- fetch them from /flow`;
  }
  return `${ref.ref}: no flow is called '${name}'`;
}

/**
 * The module at a path: a directory, its `index`, or a file, whose extension may be left out.
 *
 * @throws FlowNotFound where there is none.
 */
export function findByPath({ ref, path }: PathRef, { workspace }: CatalogPlaces): FoundModule {
  const whole = resolve(workspace, path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path);
  const found = moduleAt(whole);
  if (!found) throw new FlowNotFound(`${ref}: there is no flow at ${shownPath(whole)}`);
  return found;
}

/**
 * The module of a git ref in the checkout of its repository.
 *
 * @throws FlowNotFound where there is none.
 */
export function findInCheckout({ ref, url, subdir, sub }: GitRef, checkout: string): FoundModule {
  const directory = subdir === undefined ? checkout : join(checkout, subdir);
  const entry = indexOf(directory);
  if (entry) {
    const listed = sub === undefined ? ref : ref.slice(0, -sub.length - 1);
    const name = subdir === undefined ? repositoryName(url) : basename(directory);
    return { ...directoryModule(directory, entry, listed, undefined), name, checkout };
  }
  const where = subdir ?? "its root";
  const hint =
    subdir !== undefined && indexOf(join(checkout, "flows", subdir)) ? `; there is one at #flows/${subdir}` : "";
  throw new FlowNotFound(
    `${ref}: ${withoutPassword(url)} has no flow in ${where}, which holds no index.ts, index.js, index.mts or index.mjs${hint}`,
  );
}

/** What a repository is called, as the name of a flow. */
function repositoryName(url: string): string {
  const last = basename(url.replace(/\/+$/, "")).replace(/\.git$/, "");
  return last.replaceAll(/[^A-Za-z0-9_.-]/g, "-").replace(/^[.-]+/, "") || "flow";
}

function moduleAt(path: string): FoundModule | undefined {
  const index = indexOf(path);
  if (index) return directoryModule(path, index, shownPath(path), undefined);
  const file = [path, ...EXTENSIONS.map((extension) => path + extension)].find(
    (file) => EXTENSIONS.includes(extname(file)) && isFile(file),
  );
  if (!file) return undefined;
  const stem = basename(file, extname(file));
  // The entry point of a directory, named outright, is that directory's module: one module has one name.
  return stem === "index" && indexOf(dirname(file)) === file
    ? directoryModule(dirname(file), file, shownPath(dirname(file)), undefined)
    : fileModule(file, stem, shownPath(file), undefined);
}

/** The module of a name in a place. `path` is `<flow>`, or `<user>/<flow>` where flows are installed. */
function moduleIn(place: Place, path: string): FoundModule | undefined {
  if (path.includes("/") && !place.installed) return undefined;
  if (path.split("/").some((part) => !isModuleName(part))) return undefined;
  const directory = join(place.directory, path);
  const index = indexOf(directory);
  if (index) {
    if (place.installed && !wasInstalled(directory)) return undefined;
    return directoryModule(directory, index, listedName(place, path), place);
  }
  if (place.installed) return undefined;
  const file = EXTENSIONS.map((extension) => directory + extension).find(isFile);
  return file ? fileModule(file, path, listedName(place, path), place) : undefined;
}

/** Every module of a place, by name. A directory that is not there holds none. */
export function modulesIn(place: Place): readonly FoundModule[] {
  const paths = new Set<string>();
  for (const name of entriesOf(place.directory)) {
    paths.add(EXTENSIONS.includes(extname(name)) ? basename(name, extname(name)) : name);
    if (!place.installed || !isModuleName(name) || indexOf(join(place.directory, name))) continue;
    for (const inside of entriesOf(join(place.directory, name))) paths.add(`${name}/${inside}`);
  }
  return [...paths].sort().flatMap((path) => moduleIn(place, path) ?? []);
}

function listedName({ flowverse, directory }: Place, path: string): string {
  if (flowverse === "") return shownPath(join(directory, path));
  return flowverse === "official" ? path : `@${flowverse}/${path}`;
}

function directoryModule(directory: string, entry: string, listed: string, place: Place | undefined): FoundModule {
  return { name: basename(directory), listed, entry, directory, single: false, place };
}

function fileModule(entry: string, name: string, listed: string, place: Place | undefined): FoundModule {
  return { name, listed, entry, directory: dirname(entry), single: true, place };
}

/** Flows and what lies beside them share a directory: their tests, their types and what starts with `_` are no flows. */
function isModuleName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name) && !/\.(?:d|test|spec)$|^node_modules$/.test(name);
}

function indexOf(directory: string): string | undefined {
  return EXTENSIONS.map((extension) => join(directory, `index${extension}`)).find(isFile);
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** A directory without a readable `.installed.json` is a leftover of somebody's, and not an installed flow. */
function wasInstalled(directory: string): boolean {
  try {
    const record: unknown = JSON.parse(readFileSync(join(directory, ".installed.json"), "utf8"));
    return typeof record === "object" && record !== null && !Array.isArray(record);
  } catch {
    return false;
  }
}
