/** The flows that can be named from a workspace: found, imported, listed. */

import type { SkillResolver } from "../engine/ports.ts";
import { definitionOf, type FlowIdentity } from "../flows/definition.ts";
import { FlowException, FlowNotFound, FlowRefError } from "../flows/errors.ts";
import type { AnyFlow, Flow } from "../flows/flow.ts";
import { findByName, findByPath, type FoundModule, modulesIn, shownModule } from "./find.ts";
import { type FlowModule, importModule, moduleOf, pickFlow } from "./module.ts";
import { type CatalogPlaces, flowversesOf, placesOf } from "./places.ts";
import { parseRef } from "./ref.ts";
import type { SkillRepositories } from "./skill-repositories.ts";
import type { SkillFetcher } from "./skills.ts";

export type { CatalogPlaces } from "./places.ts";
export type { FoundModule } from "./find.ts";

export interface CatalogOptions extends CatalogPlaces {
  /** The directory that stripped TypeScript is kept in. Left out: nothing is kept. */
  readonly cache?: string | undefined;
  /** What fetches skills that lie in repositories. Left out: a role that names one is refused. */
  readonly repositories?: SkillRepositories | undefined;
}

/** The flow that a ref names, relative to the flow asking, where one asks. */
export type Load = (ref: string, asking?: FlowIdentity) => Promise<Flow>;

export interface Catalog {
  /**
   * @throws FlowRefError where the text is no ref, or relative with no flow asking.
   * @throws FlowNotFound where it names no flow.
   * @throws FlowDefinitionError where the flow is written wrong, or its import failed.
   * @throws FlowLoadConflict where it asks for another release of hmz.
   */
  load: Load;
  /** A `load` for one run: the same ref of the same asker is resolved once, and a module is imported once. */
  loader(): Load;
  /** What resolves the skills that roles name, for one run: a repository is fetched once. */
  skills(): SkillResolver;
  /** Every flow that lists show: official, the other flowverses by name, local, user. */
  list(): Promise<readonly ListedFlow[]>;
  /** Where a flow was found; `undefined` for one that nobody found by a ref. */
  origin(flow: AnyFlow | FlowIdentity): FoundModule | undefined;
}

/** A line of the list of flows. */
export interface ListedFlow {
  /** What `-f` takes: `chat`, `humanize1:gen-plan`, `@local/twice`. */
  readonly name: string;
  /** `local`, `user`, `official`, or another flowverse's name. */
  readonly flowverse: string;
  /** Its directory, or its file. */
  readonly path: string;
  readonly description: string | undefined;
  /** `undefined` where its module cannot be imported. */
  readonly flow: Flow | undefined;
  /** Why its module cannot be imported. */
  readonly error: FlowException | undefined;
}

/** The catalog of a workspace. Looks at nothing until it is asked. */
export function createCatalog(options: CatalogOptions): Catalog {
  return {
    load: (ref, asking) => loaderOf(options)(ref, asking),
    loader: () => loaderOf(options),
    skills: () => skillsOf(options),
    list: () => listed(options),
    origin: (flow) => moduleOf(definitionOf(flow)?.identity ?? (flow as FlowIdentity))?.found,
  };
}

function loaderOf(options: CatalogOptions): Load {
  const imported = new Map<string, Promise<FlowModule>>();
  const resolved = new Map<string, Promise<Flow>>();
  const once = (found: FoundModule): Promise<FlowModule> => {
    const known = imported.get(found.entry) ?? importModule(found, options.cache);
    imported.set(found.entry, known);
    return known;
  };
  const resolve = async (ref: string, asker: FlowModule | undefined): Promise<Flow> => {
    const parsed = parseRef(ref);
    if (parsed.kind === "relative") {
      if (!asker) throw new FlowRefError(`'${ref}' is relative to the flow asking, and no flow is asking`);
      return pickFlow(asker, ref, parsed.sub);
    }
    if (parsed.kind === "git") {
      throw new FlowNotFound(
        `${parsed.ref}: a flow in a git repository cannot be fetched yet; clone it, and name the flow by its path`,
      );
    }
    const found = parsed.kind === "path" ? findByPath(parsed, options) : findByName(parsed, options, asker?.found);
    return pickFlow(await once(found), ref, parsed.sub);
  };
  return (ref, asking) => {
    const asker = asking && moduleOf(asking);
    const key = `${asker?.found.entry ?? ""}\0${ref}`;
    const known = resolved.get(key) ?? resolve(ref, asker);
    resolved.set(key, known);
    return known;
  };
}

function skillsOf({ repositories }: CatalogOptions): SkillResolver {
  let resolver: Promise<SkillResolver> | undefined;
  const make = async (): Promise<SkillResolver> => {
    const [{ skillResolver }, { skillFetcher }] = await Promise.all([
      import("./skills.ts"),
      import("./skill-repositories.ts"),
    ]);
    const none: SkillFetcher = ({ shown }) => Promise.reject(new Error(`nothing here fetches ${shown}`));
    return skillResolver(repositories ? skillFetcher(repositories) : none);
  };
  return async (flow, role) => (await (resolver ??= make()))(flow, role);
}

async function listed(options: CatalogOptions): Promise<readonly ListedFlow[]> {
  const places = placesOf(options);
  const order = ["official", ...flowversesOf(options).map(({ name }) => name), "local", "user"];
  const found = [...new Set(order)].flatMap((flowverse) => {
    const names = new Set<string>();
    return (
      places
        .filter((place) => place.flowverse === flowverse)
        .flatMap(modulesIn)
        // What is built in stands before what was installed under its name.
        .filter(({ listed }) => !names.has(listed) && names.add(listed))
        .sort((one, other) => (one.listed < other.listed ? -1 : 1))
    );
  });
  return (await Promise.all(found.map((module) => linesOf(module, options.cache)))).flat();
}

async function linesOf(found: FoundModule, cache: string | undefined): Promise<readonly ListedFlow[]> {
  const line = { flowverse: found.place?.flowverse ?? "", path: shownModule(found) };
  try {
    const { flows, bare } = await importModule(found, cache);
    return [...flows.values()]
      .filter((flow) => !flow.hidden)
      .sort((one, other) => Number(other === bare) - Number(one === bare))
      .map((flow) => {
        const name = flow === bare ? found.listed : `${found.listed}:${flow.name}`;
        return { ...line, name, description: flow.description, flow, error: undefined };
      });
  } catch (error) {
    if (!(error instanceof FlowException)) throw error;
    return [{ ...line, name: found.listed, description: undefined, flow: undefined, error }];
  }
}
