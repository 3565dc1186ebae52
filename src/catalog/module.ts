/** A flow module, imported: its flows, by name, and which of them its bare name means. */

import { readFileSync, realpathSync } from "node:fs";
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { definitionOf, type FlowDefinition, type FlowIdentity } from "../flows/definition.ts";
import { FlowDefinitionError, FlowNotFound } from "../flows/errors.ts";
import type { Flow } from "../flows/flow.ts";
import { failureOf } from "./failure.ts";
import { type FoundModule, shownModule } from "./find.ts";
import { type Copy, importCopy } from "./load.ts";
import { checkRelease } from "./release.ts";

/** A module's flows, in the order of their names. */
export interface FlowModule {
  readonly found: FoundModule;
  readonly flows: ReadonlyMap<string, Flow>;
  /** The flow that the bare name means; `undefined` where it means none. */
  readonly bare: Flow | undefined;
}

const modules = new WeakMap<Copy, FlowModule>();
const homes = new WeakMap<FlowIdentity, FlowModule>();

/** The module that a flow is of; `undefined` for a flow that nobody found. */
export function moduleOf(identity: FlowIdentity): FlowModule | undefined {
  return homes.get(identity);
}

/**
 * Imports a module and settles what its flows are called.
 *
 * @param cache Where stripped TypeScript is kept.
 * @throws FlowDefinitionError where its import fails, or two of its flows have one name.
 * @throws FlowLoadConflict where it asks for another release of hmz.
 */
export async function importModule(found: FoundModule, cache?: string): Promise<FlowModule> {
  await checkRelease(found.directory);
  let copy: Copy;
  try {
    copy = await importCopy(found.entry, refName(found), cache);
  } catch (error) {
    throw importError(found, error);
  }
  // A copy is named once: by then a run may hold its flows.
  const known = modules.get(copy) ?? flowModule(found, copy);
  modules.set(copy, known);
  return known;
}

/** The module's part of a canonical ref: of an installed flow, its index name. */
function refName({ name, listed, place }: FoundModule): string {
  return place?.installed ? listed.replace(/^@[^/]*\//, "") : name;
}

function importError(found: FoundModule, error: unknown): FlowDefinitionError {
  const failure = failureOf(error);
  const where =
    failure.file === undefined
      ? ""
      : `${relativeTo(found, failure.file)}:${failure.line === 0 ? "" : `${failure.line}:`} `;
  return new FlowDefinitionError(`importing the flow at ${shownModule(found)} failed: ${where}${failure.reason}`, {
    cause: error,
  });
}

function relativeTo({ directory }: FoundModule, file: string): string {
  return relative(realpathSync(directory), file);
}

function flowModule(found: FoundModule, { exports }: Copy): FlowModule {
  const flows = namedFlows(found, exports);
  const bare = bareFlow(found, flows);
  const module: FlowModule = { found, flows, bare };
  for (const [name, flow] of flows) {
    const defined = definitionOf(flow) as FlowDefinition;
    const { description } = defined.identity;
    defined.identity = {
      name,
      ref: `${refName(found)}:${name}`,
      description: description ?? (flow === bare ? leadingComment(found.entry) : undefined),
      directory: found.directory,
    };
    homes.set(defined.identity, module);
  }
  return module;
}

const FLOW_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;

/** A flow exported twice is one flow, called by the export that is not `default`. */
function namedFlows(found: FoundModule, exports: Copy["exports"]): Map<string, Flow> {
  const names = new Map<Flow, string>();
  for (const [exported, value] of Object.entries(exports)) {
    const defined = definitionOf(value);
    if (!defined || !isInside(found, defined.definedIn)) continue;
    const flow = value as Flow;
    if (names.has(flow) && exported === "default") continue;
    names.set(flow, defined.declaredName ?? (exported === "default" ? found.name : exported));
  }
  const flows = new Map<string, Flow>();
  for (const [flow, name] of [...names].sort(([, one], [, other]) => (one < other ? -1 : 1))) {
    if (!FLOW_NAME.test(name)) {
      throw new FlowDefinitionError(
        `${shownModule(found)}: '${name}' is not a flow name: letters, digits, \`_\`, \`.\` and \`-\``,
      );
    }
    if (flows.has(name)) throw new FlowDefinitionError(`${shownModule(found)}: two flows are called '${name}'`);
    flows.set(name, flow);
  }
  return flows;
}

/** Whether a file is one of the module's own: inside its directory, or, for a module of one file, that file. */
function isInside(found: FoundModule, definedIn: string): boolean {
  if (definedIn === "") return false;
  const file = definedIn.startsWith("file:") ? fileURLToPath(definedIn) : definedIn;
  if (found.single) return file === realpathSync(found.entry);
  return file.startsWith(realpathSync(found.directory) + sep);
}

function bareFlow({ name }: FoundModule, flows: ReadonlyMap<string, Flow>): Flow | undefined {
  const visible = [...flows.values()].filter((flow) => !flow.hidden);
  return flows.get(name) ?? (visible.length === 1 ? visible[0] : undefined);
}

/**
 * The flow that a ref names in its module.
 *
 * @throws FlowNotFound where it names none, or does not say which.
 */
export function pickFlow({ found, flows, bare }: FlowModule, ref: string, sub: string | undefined): Flow {
  const flow = sub === undefined ? bare : flows.get(sub);
  if (flow) return flow;
  const where = shownModule(found);
  if (flows.size === 0) throw new FlowNotFound(`${ref}: ${where} defines no flow`);
  // A hidden flow is in no list, this one included.
  const visible = [...flows].filter(([, flow]) => !flow.hidden).map(([name]) => name);
  const names = (visible.length > 0 ? visible : [...flows.keys()]).join(", ");
  throw new FlowNotFound(
    sub === undefined
      ? `${ref}: ${where} holds ${names} and none is called '${found.name}'; name one as ${found.name}:<flow>`
      : `${ref}: ${where} holds no flow called '${sub}'; it holds ${names}`,
  );
}

/** The first line of the comment that a file begins with, past `#!` and comments to the compiler. */
function leadingComment(file: string): string | undefined {
  const source = readFileSync(file, "utf8").replace(/^\uFEFF?(?:#![^\n]*\n)?/, "");
  const comment = /^(?:\s+|\/\/[^\n]*(?:\n|$)|\/\*(?!\*)[\s\S]*?\*\/)*\/\*\*([\s\S]*?)\*\//.exec(source)?.[1];
  return comment
    ?.split("\n")
    .map((line) => line.replace(/^\s*\*?\s?/, "").trim())
    .find((line) => line !== "");
}
