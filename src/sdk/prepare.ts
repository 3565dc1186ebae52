/** What is asked for, resolved and checked: everything that can be refused before a run has an epic. */

import type { Catalog } from "../catalog/index.ts";
import type { AgentDriver, OutworlderDriver, Place, Prices, SkillResolver } from "../engine/ports.ts";
import { type Budget, type BudgetLike, budget as readBudget } from "../flows/budget.ts";
import { definition, definitionOf, type FlowDefinition } from "../flows/definition.ts";
import { FlowException, HarnessError } from "../flows/errors.ts";
import type { AnyFlow } from "../flows/flow.ts";
import type { Home } from "../home/paths.ts";
import {
  isAgentDriver,
  isPlacedMachine,
  openAgent,
  openLocalMachine,
  openPlace,
  type PlacedMachine,
} from "./drivers.ts";
import { prepareProfile, type ProfileChoice, type StartProfile } from "./profile.ts";
import { Refused } from "./refused.ts";
import { checkAgents, checkEnvs, requiredBudget } from "./roles.ts";
import { type AgentSpec, checkAgent, parseAgent } from "./spec/agents.ts";
import { type EnvSpec, parseEnv } from "./spec/envs.ts";

/** What a run is given. */
export interface RunOptions {
  /** By role: a spec as in `-a`, without its role, or a driver, such as a fake. */
  readonly agents?: Readonly<Record<string, string | AgentDriver>> | undefined;
  /** By role: a spec as in `-e`, without its role, or a fake environment. */
  readonly envs?: Readonly<Record<string, string | PlacedMachine>> | undefined;
  /** Text is read as JSON where the flow's schema asks for more than text. */
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  /** Required of every flow but `chat`. */
  readonly budget?: BudgetLike | undefined;
  /** Pick up the newest run of the flow here that saved progress; or the one that an epic's path or name says. */
  readonly resume?: boolean | string | undefined;
  /** Of a resumable flow: what its state holds is on disk before anything leaves the process. Default: with the kernel. */
  readonly durable?: boolean | undefined;
  /** Whoever answers for the person outside the run. Default: nobody is there. */
  readonly outworlder?: OutworlderDriver | undefined;
  /** Sample the programs that run meanwhile, into the run's record: `true` is `{ flow: true }`. */
  readonly profile?: boolean | ProfileChoice | undefined;
  /** Stops the run when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** What `Hmz` makes a run of. */
export interface RunParts {
  readonly flow: string | AnyFlow;
  readonly task: string;
  readonly options: RunOptions;
  /** Absolute. */
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: () => Promise<Home>;
  readonly catalog: () => Promise<Catalog>;
}

export interface EarlierRun {
  /** The name of its epic. */
  readonly epic: string;
  /** What its journal holds. */
  readonly records: readonly unknown[];
  /** The numbers of the lines of its journal that hold nothing that can be read. */
  readonly bad: readonly number[];
}

/** A run that nothing refuses. */
export interface Prepared {
  readonly flow: AnyFlow;
  readonly definition: FlowDefinition;
  readonly agents: Readonly<Record<string, AgentDriver>>;
  readonly envs: Readonly<Record<string, Place>>;
  /** `role=spec`, as on the command line. */
  readonly envSpecs: readonly string[];
  readonly workspace: Place;
  readonly budget: Budget;
  readonly params: unknown;
  readonly prices: Prices;
  /** Whether it is the conversation that comes with hmz: granted all that its harness serves. */
  readonly chat: boolean;
  readonly catalog: Catalog;
  /** The run that it picks up. */
  readonly earlier?: EarlierRun;
  /** Where a profile is asked for. */
  readonly profile?: StartProfile;
  /** Has fetched the skills of the flow's own roles. */
  readonly skills: SkillResolver;
  /** Lets go of the drivers and the machines. Never throws. */
  close(): Promise<void>;
}

/**
 * Resolves and checks what a run is given.
 *
 * @throws Refused
 */
export async function prepare(parts: RunParts): Promise<Prepared> {
  const opened: Closable[] = [];
  const close = async (): Promise<void> => {
    await Promise.allSettled(opened.splice(0).map((open) => open.close()));
  };
  try {
    return { ...(await checked(parts, opened)), close };
  } catch (error) {
    await close();
    throw refusedBecause(error);
  }
}

interface Closable {
  close(): Promise<void>;
}

/** An error that says why a run was refused, as one: what is written wrong is no fault of the runner's. */
export function refusedBecause(error: unknown): unknown {
  return error instanceof FlowException ? new Refused(error.message, { cause: error }) : error;
}

function limitsOf(given: BudgetLike | undefined): Budget | undefined {
  if (given === undefined) return undefined;
  try {
    return readBudget(given);
  } catch (error) {
    if (error instanceof RangeError) throw new Refused(error.message, { cause: error });
    throw error;
  }
}

async function checked(parts: RunParts, opened: Closable[]): Promise<Omit<Prepared, "close">> {
  const { options } = parts;
  // The grammar first: it needs nothing found, and a person corrects it first.
  const agentSpecs = Object.entries(options.agents ?? {}).map(([role, given]): GivenAgent => {
    if (typeof given === "string") return { role, given: parseAgent(role, given) };
    if (isAgentDriver(given)) return { role, given };
    throw new Refused(`the agent given for '${role}' is neither a spec nor a driver`);
  });
  const envSpecs = Object.entries(options.envs ?? {}).map(([role, given]): GivenEnv => {
    if (typeof given === "string") return { role, given: parseEnv(role, given) };
    if (isPlacedMachine(given)) return { role, given };
    throw new Refused(`the environment given for '${role}' is neither a spec nor a fake`);
  });
  const limits = limitsOf(options.budget);
  const profile = await prepareProfile(options.profile, parts.env);

  const catalog = await parts.catalog();
  const flow = typeof parts.flow === "string" ? await catalog.load(parts.flow) : parts.flow;
  if (!definitionOf(flow)) throw new Refused("this value is not a flow; give what flow() returned, or a ref");
  const defined = definition(flow);
  const name = typeof parts.flow === "string" ? parts.flow : flow.name;
  const chat = isChat(catalog, flow);

  checkAgents(
    name,
    defined,
    agentSpecs.map(({ role, given }) => ({
      role,
      harness: given.harness,
      ...(isAgentDriver(given) ? saidBy(given) : {}),
    })),
  );
  checkEnvs(
    name,
    defined,
    envSpecs.map(({ role }) => role),
  );
  for (const { given } of agentSpecs) if (!isAgentDriver(given)) checkAgent(given);
  const budget = requiredBudget(name, limits, chat);
  const { readParams } = await import("../engine/params.ts");
  readParams(name, defined.params, options.params);
  const earlier = options.resume ? await pickedUp(parts, options.resume, name, flow) : undefined;

  const skills = catalog.skills();
  await Promise.all(agentSpecs.map(({ role }) => skills(defined, role)));

  const agents = await openAgents(parts, agentSpecs, opened);
  checkAgents(
    name,
    defined,
    Object.entries(agents).map(([role, driver]) => ({ role, harness: driver.harness, ...saidBy(driver) })),
  );
  const local = await openLocalMachine(await parts.home());
  opened.push(local);
  if (!(await local.isDirectory(parts.workspace))) {
    throw new Refused(`the workspace ${parts.workspace} is not a directory`);
  }
  const envs: Record<string, Place> = {};
  // A fake that fills two roles is one environment: what is derived of it by an id is the same in both.
  const placed = new Map<PlacedMachine, Place>();
  for (const { role, given } of envSpecs) {
    if (isPlacedMachine(given)) {
      if (!placed.has(given)) opened.push(given);
      const place = placed.get(given) ?? { machine: given, workdir: given.workdir };
      placed.set(given, place);
      envs[role] = place;
    } else envs[role] = await openPlace(role, given, local);
  }
  const [{ pricesOf }, { keptPrices }] = await Promise.all([
    import("../home/prices.ts"),
    import("../home/prices-refresh.ts"),
  ]);
  return {
    flow,
    definition: defined,
    agents,
    envs,
    envSpecs: envSpecs.map(({ role, given }) => `${role}=${envText(given)}`),
    workspace: { machine: local, workdir: parts.workspace },
    budget,
    params: options.params ?? {},
    prices: pricesOf(keptPrices(parts.env)),
    chat,
    catalog,
    skills,
    ...(earlier ? { earlier } : {}),
    ...(profile ? { profile } : {}),
  };
}

/** The run that this one picks up. @throws Refused where there is none, or it is still going. */
async function pickedUp(parts: RunParts, resume: true | string, name: string, flow: AnyFlow): Promise<EarlierRun> {
  if (!flow.resumable) throw new Refused(`${name} does not support resuming, so there is no run to resume`);
  const [{ newestResumable, resumableAt, UnresumableEpic }, { readJournal, UnreadableJournal }, home] =
    await Promise.all([import("../home/resumable.ts"), import("../home/journal.ts"), parts.home()]);
  const { workspace } = parts;
  const { ref } = definition(flow).identity;
  try {
    const found =
      resume === true
        ? newestResumable(home, { workspace, ref, flow: name })
        : resumableAt(home, { workspace, epic: resume });
    if (!found) throw new Refused(`${name} has no run to resume here: none saved any progress`);
    return { epic: found.name, ...readJournal(found.journal) };
  } catch (error) {
    const isTheirs = error instanceof UnresumableEpic || error instanceof UnreadableJournal;
    throw isTheirs ? new Refused(error.message, { cause: error }) : error;
  }
}

interface GivenAgent {
  readonly role: string;
  readonly given: AgentSpec | AgentDriver;
}

interface GivenEnv {
  readonly role: string;
  readonly given: EnvSpec | PlacedMachine;
}

function saidBy({ serves, shelves }: AgentDriver): Pick<AgentDriver, "serves" | "shelves"> {
  return { serves, shelves };
}

function envText(given: EnvSpec | PlacedMachine): string {
  if (!isPlacedMachine(given)) return given.text;
  return `${given.backend}${given.provider === "" ? "" : `@${given.provider}`}${given.workdir}`;
}

function isChat(catalog: Catalog, flow: AnyFlow): boolean {
  const found = catalog.origin(flow);
  return flow.name === "chat" && found?.listed === "chat" && found.place?.installed === false;
}

/** One driver is closed once, whatever number of roles it fills. */
async function openAgents(
  { workspace, env }: RunParts,
  given: readonly GivenAgent[],
  opened: Closable[],
): Promise<Record<string, AgentDriver>> {
  const agents: Record<string, AgentDriver> = {};
  for (const { role, given: agent } of given) {
    const driver = isAgentDriver(agent) ? agent : await openAgent(agent, { workspace, env });
    if (!opened.includes(driver)) opened.push(driver);
    try {
      await driver.check?.();
    } catch (error) {
      if (!(error instanceof HarnessError)) throw error;
      const spec = isAgentDriver(agent) ? driver.harness : agent.text;
      throw new Refused(`'${role}' cannot be ${spec}: ${error.message}`, { cause: error });
    }
    agents[role] = driver;
  }
  return agents;
}
