/** The directories that hold flows, in the order that a name is looked up in. */

import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** An index of flows, as far as finding what was installed from it needs to know it. */
export interface Flowverse {
  readonly name: string;
  /** The directory of what was installed from it. */
  readonly installed: string;
  /** Whether its index has been fetched. Left out where indexes are not looked at. */
  readonly fetched?: boolean;
  /** Whether its index lists a flow, by index name: `<flow>` or `<user>/<flow>`. */
  readonly lists?: (flow: string) => boolean;
}

export interface CatalogPlaces {
  /** Where relative paths and `.hmz/flows` are looked for. Absolute. */
  readonly workspace: string;
  /** Default: `~/.hmz/flows`, literally in the home directory. */
  readonly userFlows?: string | undefined;
  /** Default: the flows in the package. */
  readonly builtin?: string | undefined;
  readonly flowverses?: readonly Flowverse[] | undefined;
}

/** A directory of flows. */
export interface Place {
  /** `local`, `user`, `official`, or another flowverse's name. */
  readonly flowverse: string;
  readonly directory: string;
  /** Whether its flows were installed from an index: each then holds an `.installed.json`. */
  readonly installed: boolean;
}

/** The same path from the sources and from what is built of them. */
const BUILTIN = fileURLToPath(new URL("../../src/builtin", import.meta.url));

/** Every place, the nearest first: local, user, official, then the other flowverses by name. */
export function placesOf(given: CatalogPlaces): readonly Place[] {
  const { workspace, userFlows = join(homedir(), ".hmz", "flows"), builtin = BUILTIN } = given;
  const others = flowversesOf(given).map(({ name, installed }): Place => ({
    flowverse: name,
    directory: installed,
    installed: true,
  }));
  return [
    { flowverse: "local", directory: join(workspace, ".hmz", "flows"), installed: false },
    { flowverse: "user", directory: userFlows, installed: false },
    { flowverse: "official", directory: builtin, installed: false },
    ...others,
  ];
}

/** The flowverses in listed order: official, then the others by name. */
export function flowversesOf({ flowverses = [] }: CatalogPlaces): readonly Flowverse[] {
  const rank = ({ name }: Flowverse): string => (name === "official" ? "" : name);
  return flowverses.toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1));
}

/** A path as messages show it: the home directory is `~`. */
export function shownPath(path: string): string {
  const home = homedir();
  return path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}
