/** The flows that can be named from a workspace: found, imported, listed. */

import type { SkillResolver } from "../engine/ports.ts";
import { definitionOf, type FlowIdentity } from "../flows/definition.ts";
import type { Checkout } from "./checkouts.ts";
import { FlowException, FlowNotFound, FlowRefError } from "../flows/errors.ts";
import type { AnyFlow, Flow } from "../flows/flow.ts";
import { findByName, findByPath, findInCheckout, type FoundModule, modulesIn, shownModule } from "./find.ts";
import { withoutPassword } from "./git-url.ts";
import { type FlowModule, importModule, moduleOf, pickFlow } from "./module.ts";
import { type CatalogPlaces, flowversesOf, placesOf } from "./places.ts";
import { type GitRef, parseRef } from "./ref.ts";
import type { Repositories } from "./repository.ts";
import type { SkillFetcher } from "./skills.ts";

export type { CatalogPlaces } from "./places.ts";
export type { FoundModule } from "./find.ts";

export interface CatalogOptions extends CatalogPlaces {
  /** The directory that stripped TypeScript is kept in. Left out: nothing is kept. */
  readonly cache?: string | undefined;
  /** What fetches skills that lie in repositories. Left out: a role that names one is refused. */
  readonly repositories?: Repositories | undefined;
  /** What fetches the repositories of flows. Left out: a ref that names one is refused. */
  readonly checkouts?: Repositories | undefined;
}

/** The flow that a ref names, relative to the flow asking, where one asks. */
export type Load = (ref: string, asking?: FlowIdentity) => Promise<Flow>;

/** Of one run, or one look-up: it fetches one URL and revision of a flow's repository once. */
export interface Catalog {
  /**
   * @throws FlowRefError where the text is no ref, or relative with no flow asking.
   * @throws FlowNotFound where it names no flow.
   * @throws FlowDefinitionError where the flow is written wrong, or its import failed.
   * @throws FlowLoadConflict where it asks for another release of hmz.
   */
  load: Load;
  /**
   * The module that a name or a path means; imports nothing.
   *
   * @throws FlowRefError where the text is neither. @throws FlowNotFound
   */
  find(ref: string): FoundModule;
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
  const fetch = fetcherOf(options);
  return {
    load: (ref, asking) => loaderOf(options, fetch)(ref, asking),
    find: (ref) => {
      const parsed = parseRef(ref);
      if (parsed.kind === "path") return findByPath(parsed, options);
      if (parsed.kind === "name") return findByName(parsed, options);
      throw new FlowRefError(`'${ref}' is neither a flow's name nor a path`);
    },
    loader: () => loaderOf(options, fetch),
    skills: () => skillsOf(options),
    list: () => listed(options),
    origin: (flow) => moduleOf(definitionOf(flow)?.identity ?? (flow as FlowIdentity))?.found,
  };
}

type FetchFlow = (ref: GitRef) => Promise<FoundModule>;

function fetcherOf({ checkouts }: CatalogOptions): FetchFlow {
  let making: Promise<Checkout> | undefined;
  return async (ref) => {
    if (!checkouts) {
      throw new FlowNotFound(`${ref.ref}: repositories are not fetched here; clone it, and name the flow by its path`);
    }
    making ??= import("./checkouts.ts").then((made) => made.checkouts(checkouts));
    let checkout: string;
    try {
      checkout = await (await making)(ref.url, ref.rev);
    } catch (error) {
      throw unfetched(ref.ref, error);
    }
    return findInCheckout(ref, checkout);
  };
}

function unfetched(ref: string, error: unknown): FlowNotFound {
  const reason = withoutPassword(error instanceof Error ? error.message : String(error));
  return new FlowNotFound(`${ref}: the repository cannot be fetched: ${reason}`, { cause: error });
}

/** What a stranger's repository has for a flow is its own before any of it is read. */
async function assertOwn({ checkout, directory }: FoundModule, ref: string): Promise<void> {
  if (checkout === undefined) return;
  const [{ assertInside }, { realpath }] = await Promise.all([import("./repository.ts"), import("node:fs/promises")]);
  try {
    await assertInside(await realpath(checkout), directory, ref);
  } catch (error) {
    throw new FlowNotFound((error as Error).message, { cause: error });
  }
}

function loaderOf(options: CatalogOptions, fetch: FetchFlow): Load {
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
    const found =
      parsed.kind === "git"
        ? await fetch(parsed)
        : parsed.kind === "path"
          ? findByPath(parsed, options)
          : findByName(parsed, options, asker?.found);
    await assertOwn(found, parsed.ref);
    return pickFlow(await once(found), parsed.ref, parsed.sub);
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
