/** Running a flow through the real engine over fakes: no CLI, no machine, no tokens, no waiting. */

import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { getCallSites } from "node:util";
import type { z } from "zod";
import type { BudgetLike } from "../flows/budget.ts";
import {
  type AgentRoleDefinition,
  definition,
  type EnvRoleDefinition,
  type FlowIdentity,
} from "../flows/definition.ts";
import { FlowRuntimeError } from "../flows/errors.ts";
import type { AnyFlow, Flow } from "../flows/flow.ts";
import type { AgentRoles, EnvRoles } from "../flows/role.ts";
import type {
  AgentDriver,
  JournalStore,
  Machine,
  OutworlderDriver,
  Place,
  Recorder,
  RunSetup,
  SkillResolver,
} from "../engine/ports.ts";
import { startRun } from "../engine/run.ts";
import { keptUnder, temporaryShelf } from "../home/kept.ts";
import { FakeAgent } from "./fake-agent.ts";
import { FakeEnv } from "./fake-env.ts";
import { FakeOutworlder } from "./fake-outworlder.ts";
import type { Reply } from "./reply.ts";

/** What fills a role of agents: a driver, or what a `FakeAgent` replies. */
export type FakeAgentGiven = AgentDriver | OutworlderDriver | Reply;

/** What fills a role of environments: a `FakeEnv`, a directory on a machine, or the first files of a `FakeEnv`. */
export type FakeEnvGiven = FakeEnv | Place | Readonly<Record<string, Uint8Array | string>>;

/** What {@link runFake} is given. */
export interface FakeRunOptions<Agents extends string = string, Envs extends string = string> {
  /**
   * For each role: a driver, or what a `FakeAgent` replies. A required role left out is filled with a fake of the
   * harness that it names, else of `claude`, that replies "ok"; an optional one is left out. A reply given for a role
   * of an outworlder makes the run's outworlder.
   */
  readonly agents?: { readonly [K in Agents]?: FakeAgentGiven } | undefined;
  /** For each role: an environment, or its first files. A required role left out gets an empty one, large enough. */
  readonly envs?: { readonly [K in Envs]?: FakeEnvGiven } | undefined;
  readonly params?: unknown;
  /** Default: unlimited. */
  readonly budget?: BudgetLike | undefined;
  /** Fills the roles of outworlders. Default: one that is away. */
  readonly outworlder?: OutworlderDriver | undefined;
  /** Fills the roles of local environments. Default: an empty `FakeEnv` at `/here`. */
  readonly local?: FakeEnv | Place | undefined;
  /** Path of a resumable flow's journal. */
  readonly journal?: string | undefined;
  /** Picks up the journal. */
  readonly resume?: boolean | undefined;
  /** Hears every event of the run. */
  readonly recorder?: Recorder | undefined;
  /** Stops the run when aborted, as ^C does. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a flow over fakes. Resolves to what the flow returns, and rejects with what it throws.
 *
 * The flow is a value, or a ref, relative to the file that calls this. Skills that its roles name are looked up beside
 * it; one that a URL names is taken to be there, and nothing is fetched.
 */
export function runFake<A extends AgentRoles, E extends EnvRoles, P extends z.ZodObject, R>(
  flow: Flow<A, E, P, R>,
  task?: string,
  options?: FakeRunOptions<keyof A & string, keyof E & string>,
): Promise<R>;
export function runFake(ref: string, task?: string, options?: FakeRunOptions): Promise<unknown>;
export async function runFake(
  flow: AnyFlow | string,
  task: string = "",
  options: FakeRunOptions = {},
): Promise<unknown> {
  const caller = getCallSites(2)[1]?.scriptName ?? "";
  if (options.resume && options.journal === undefined) {
    throw new FlowRuntimeError("resume picks up a journal: give its path as journal");
  }
  const load = loaderFrom(directoryOf(caller), flow);
  const found = typeof flow === "string" ? await load(flow, undefined) : flow;
  const { agents, outworlder } = agentsFor(found, options);
  // Nothing is waited for without a journal: a test's clock may be its own.
  const shelf: Shelf = options.journal === undefined ? temporaryShelf(tmpdir) : await openShelf(found, options);
  const run = startRun(
    {
      flow: found,
      task,
      agents,
      envs: envsFor(found, options),
      workspace: placeOf(options.local ?? localFor(found)),
      outworlder,
      params: options.params ?? {},
      budget: options.budget ?? { cost: Infinity },
      prices: { cost: () => undefined },
      recorder: options.recorder ?? { record: () => {} },
      load,
      skills: fakeSkills,
      keep: shelf.keep,
    },
    shelf.journal,
  );
  const { signal } = options;
  const stop = (): void => run.stop();
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await run.result;
  } finally {
    signal?.removeEventListener("abort", stop);
    // One driver may fill several roles, and is closed once a run.
    await Promise.all([...new Set(Object.values(agents))].map((driver) => driver.close()));
    shelf.remove();
  }
}

interface Shelf {
  readonly keep: RunSetup["keep"];
  readonly journal?: JournalStore;
  remove(): void;
}

/** Where a run with a journal keeps what its flow's state holds: beside it. */
async function openShelf(flow: AnyFlow, { journal: path = "", resume = false }: FakeRunOptions): Promise<Shelf> {
  if (!flow.resumable) throw new FlowRuntimeError(`${flow.name} is not resumable: it keeps no journal`);
  const { openJournal, readJournal } = await import("../home/journal.ts");
  const trouble = (error: Error): void =>
    process.emitWarning(`a part of the journal ${path} could not be written: ${error.message}`);
  const journal = openJournal({ path, trouble, ...(resume ? { earlier: readJournal(path).records } : {}) });
  return { keep: keptUnder(dirname(path)), journal, remove: () => {} };
}

function agentsFor(
  flow: AnyFlow,
  options: FakeRunOptions,
): { readonly agents: Readonly<Record<string, AgentDriver>>; readonly outworlder: OutworlderDriver } {
  const given = options.agents ?? {};
  const agents: Record<string, AgentDriver> = {};
  let outworlder = options.outworlder;
  const roles = new Map(definition(flow).agents.map((role) => [role.name, role]));
  for (const [name, value] of Object.entries(given)) {
    const role = roles.get(name);
    if (role?.kind === "outworlder" && !isAgentDriver(value)) {
      outworlder = isOutworlderDriver(value) ? value : new FakeOutworlder({ reply: value as Reply<undefined> });
    } else if (value !== undefined) {
      agents[name] = isAgentDriver(value) ? value : fakeFor(role?.kind === "agent" ? role : undefined, value);
    }
  }
  for (const role of roles.values()) {
    if (role.kind === "agent" && !role.optional && !(role.name in agents)) agents[role.name] = fakeFor(role, undefined);
  }
  return { agents, outworlder: outworlder ?? new FakeOutworlder({ away: true }) };
}

function fakeFor(role: AgentRoleDefinition | undefined, reply: Reply): FakeAgent {
  return new FakeAgent({ harness: role?.harness, reply });
}

function isAgentDriver(value: unknown): value is AgentDriver {
  return hasMethods(value, "open", "close") && "serves" in value;
}

function isOutworlderDriver(value: unknown): value is OutworlderDriver {
  return hasMethods(value, "ask", "away");
}

function hasMethods(value: unknown, ...names: readonly string[]): value is object {
  if (typeof value !== "object" || value === null) return false;
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === "function");
}

function envsFor(flow: AnyFlow, options: FakeRunOptions): Readonly<Record<string, Place>> {
  const given = options.envs ?? {};
  const envs: Record<string, Place> = {};
  const roles = new Map(definition(flow).envs.map((role) => [role.name, role]));
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    envs[name] = isPlaced(value) ? placeOf(value) : placeOf(envFor(roles.get(name), { files: value }));
  }
  for (const role of roles.values()) {
    if (!role.optional && !role.local && !(role.name in envs)) envs[role.name] = placeOf(envFor(role, {}));
  }
  return envs;
}

/** An environment that has what a role declares. */
function envFor(
  role: EnvRoleDefinition | undefined,
  options: { readonly files?: Readonly<Record<string, Uint8Array | string>>; readonly workdir?: string },
): FakeEnv {
  const { size } = new FakeEnv();
  return new FakeEnv({
    ...options,
    cpus: Math.max(size.cpus, role?.cpus ?? 0),
    memory: Math.max(size.memory, role?.memory ?? 0),
    gpus: Math.max(size.gpus, role?.gpus ?? 0),
    gpuMemory: Math.max(size.gpuMemory, role?.gpuMemory ?? 0),
  });
}

function localFor(flow: AnyFlow): FakeEnv {
  const local = definition(flow).envs.filter((role) => role.local);
  const most = (amount: "cpus" | "memory" | "gpus" | "gpuMemory") => Math.max(0, ...local.map((role) => role[amount]));
  const role = local[0] && {
    ...local[0],
    cpus: most("cpus"),
    memory: most("memory"),
    gpus: most("gpus"),
    gpuMemory: most("gpuMemory"),
  };
  return envFor(role, { workdir: "/here" });
}

function isPlaced(value: FakeEnvGiven): value is FakeEnv | Place {
  return value instanceof FakeEnv || ("machine" in value && isMachine(value["machine"]));
}

function isMachine(value: unknown): value is Machine {
  return hasMethods(value, "exec", "read", "write");
}

/** A fake that fills two roles is one environment: what is derived of it by an id is the same in both. */
const placed = new WeakMap<FakeEnv, Place>();

function placeOf(env: FakeEnv | Place): Place {
  if (!(env instanceof FakeEnv)) return env;
  const place = placed.get(env) ?? { machine: env, workdir: env.workdir };
  placed.set(env, place);
  return place;
}

/** A URL names the skill after its `#`, or one called as its repository is. */
const fakeSkills: SkillResolver = async (flow, role) => {
  const { skillResolver } = await import("../catalog/skills.ts");
  const resolve = skillResolver(({ url, skill }) => {
    const repository = url
      .replace(/\/+$/, "")
      .replace(/\.git$/, "")
      .split(/[/:]/)
      .at(-1);
    return Promise.resolve([{ name: skill ?? repository ?? url, directory: "" }]);
  });
  return resolve(flow, role);
};

/** Loads refs as a flow in a directory would: paths from there, names from the workspace that it is in. */
function loaderFrom(
  directory: string,
  top: AnyFlow | string,
): (ref: string, asking: FlowIdentity | undefined) => Promise<Flow> {
  const loaders = once(async () => {
    const { createCatalog } = await import("../catalog/index.ts");
    return {
      named: createCatalog({ workspace: workspaceAbove(directory) }).loader(),
      byPath: createCatalog({ workspace: directory }).loader(),
    };
  });
  const given = typeof top === "string" ? undefined : definition(top);
  return async (ref, asking) => {
    const { named, byPath } = await loaders();
    // A flow that was imported, and not found by a ref, asks from the file that defined it.
    if (ref.startsWith(":") && given && asking === given.identity) return byPath(`${pathOf(given.definedIn)}${ref}`);
    return /^[./~]/.test(ref) ? byPath(ref, asking) : named(ref, asking);
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

/** The nearest directory that holds a `.hmz`; the directory itself where none does. */
function workspaceAbove(directory: string): string {
  for (let at = directory; at !== dirname(at); at = dirname(at)) if (existsSync(join(at, ".hmz"))) return at;
  return directory;
}

function directoryOf(script: string): string {
  return dirname(pathOf(script));
}

function pathOf(script: string): string {
  return script.startsWith("file:") ? fileURLToPath(script) : script;
}
