/** A declaration, checked and made whole: what the engine and the catalog know of a flow. Not exported to flows. */

import { z } from "zod";
import type { AnyFlow, Declaration } from "./flow.ts";
import { FlowDefinitionError } from "./errors.ts";
import { ENV_NEEDS, type EnvNeed } from "./env.ts";
import { AGENT_NEEDS, type AgentNeed, type Harness, HARNESSES, isHarness } from "./harness.ts";
import { Permission } from "./permission.ts";
import type { AgentRole, AgentRoles, EnvRole, EnvRoles, LocalEnvRole, Resources } from "./role.ts";
import type { Callbacks } from "./callbacks.ts";
import { type Cli, isCli } from "./command-line.ts";
import { isTool, type Tool } from "./tool.ts";

/** An agent role as it is filled and granted. */
export interface AgentRoleDefinition {
  readonly kind: "agent";
  readonly name: string;
  readonly optional: boolean;
  readonly harness: Harness | undefined;
  readonly needs: ReadonlySet<AgentNeed>;
  readonly permission: Permission;
  readonly skills: readonly string[];
  readonly tools: readonly Tool[];
  readonly clis: readonly Cli[];
  readonly callbacks: Callbacks;
}

export interface OutworlderRoleDefinition {
  readonly kind: "outworlder";
  readonly name: string;
  readonly optional: boolean;
}

/** An environment role as it is filled and granted. Amounts are bytes and counts; 0 asks for nothing. */
export interface EnvRoleDefinition {
  readonly kind: "env";
  readonly name: string;
  readonly optional: boolean;
  readonly local: boolean;
  readonly needs: ReadonlySet<EnvNeed>;
  readonly cpus: number;
  readonly memory: number;
  readonly gpus: number;
  readonly gpuMemory: number;
  readonly image: string;
}

/** What a flow is called, settled by whoever found it. */
export interface FlowIdentity {
  readonly name: string;
  readonly ref: string;
  readonly description: string | undefined;
  /** The directory that the flow's own refs and skills are looked up from; `""` for a flow nobody found. */
  readonly directory: string;
}

/** A flow, whole. */
export interface FlowDefinition {
  identity: FlowIdentity;
  /** The name that the declaration gives, where it gives one. */
  readonly declaredName: string | undefined;
  readonly hidden: boolean;
  readonly resumable: boolean;
  readonly agents: readonly (AgentRoleDefinition | OutworlderRoleDefinition)[];
  readonly envs: readonly EnvRoleDefinition[];
  readonly params: z.ZodObject;
  readonly expectedAgents: AgentRoles;
  readonly expectedEnvs: EnvRoles;
  /** The URL or path of the file that defined it. */
  readonly definedIn: string;
  readonly run: (task: string, given: never) => unknown;
}

const KEY = Symbol.for("hmz.flow");

/** The definition behind a flow; `undefined` for a value that is no flow. */
export function definitionOf(value: unknown): FlowDefinition | undefined {
  if (typeof value !== "function") return undefined;
  return (value as { [KEY]?: FlowDefinition })[KEY];
}
definitionOf.key = KEY;

/** The definition behind a flow. */
export function definition(flow: AnyFlow): FlowDefinition {
  const found = definitionOf(flow);
  if (!found) throw new TypeError("this value is not a flow");
  return found;
}

const FLOW_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;

/** A declaration as a definition. Throws `FlowDefinitionError`, its message prefixed with the flow's name. */
export function declared(declaration: Declaration, run: FlowDefinition["run"], definedIn: string): FlowDefinition {
  const known = typeof declaration === "object" && declaration !== null ? declaration : undefined;
  const name = known?.name;
  const said = typeof name === "string" && name !== "" ? name : moduleName(definedIn) || "flow";
  const fail = (message: string): never => {
    throw new FlowDefinitionError(`${said}: ${message}`);
  };
  if (!known) return fail("a flow is declared with an object: flow({ agents, envs, params }, run)");
  if (typeof run !== "function") return fail("a flow is an `async` function: flow({ … }, async (task, given) => …)");
  if (name !== undefined && (typeof name !== "string" || !FLOW_NAME.test(name))) {
    return fail(`'${String(name)}' is not a flow name: letters, digits, \`_\`, \`.\` and \`-\``);
  }
  const { agents = {}, envs = {}, hidden = false, resumable = false, description } = known;
  if (!isRecord(agents)) return fail(`agents=${String(agents)} is not a record of roles`);
  if (!isRecord(envs)) return fail(`envs=${String(envs)} is not a record of roles`);
  const params: unknown = known.params ?? z.strictObject({});
  if (!(params instanceof z.ZodObject)) return fail(`params=${String(params)} is not a z.object`);
  if ("budget" in params.shape) {
    return fail("'budget' is the run's budget, given as -p budget.<limit>=, and cannot be a param");
  }
  return {
    identity: { name: said, ref: `${moduleName(definedIn) || said}:${said}`, description, directory: "" },
    declaredName: name,
    hidden,
    resumable,
    agents: Object.entries(agents).map(([role, given]) => agentRole(role, given, fail)),
    envs: Object.entries(envs).map(([role, given]) => envRole(role, given, fail)),
    params: params.strict(),
    expectedAgents: agents,
    expectedEnvs: envs,
    definedIn,
    run,
  };
}

/** The name of the module that a file is, or is the entry point of. */
function moduleName(file: string): string {
  // A flow that another one imports is known by its URL alone, which carries the number of its copy.
  const parts = file.replace(/[?#].*$/, "").split(/[\\/]/);
  const stem = (parts.at(-1) ?? "").replace(/\.[mc]?[jt]s$/, "");
  return stem === "index" ? (parts.at(-2) ?? "") : stem;
}

type Fail = (message: string) => never;

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const NO_ROLE = "is not a role; a role is declared as one agent or environment";

/** A role read through `optional`, its name checked. */
function unwrapped(role: string, given: unknown, fail: Fail): { value: Record<string, unknown>; optional: boolean } {
  if (!IDENTIFIER.test(role)) fail(`'${role}' is not a role: a role's name is a JavaScript identifier`);
  if (!isRecord(given)) return fail(`${role}: ${String(given)} ${NO_ROLE}`);
  if (given["kind"] !== "optional") return { value: given, optional: false };
  const inner = given["role"];
  return isRecord(inner) ? { value: inner, optional: true } : fail(`${role}: ${String(inner)} ${NO_ROLE}`);
}

function agentRole(name: string, given: unknown, fail: Fail): AgentRoleDefinition | OutworlderRoleDefinition {
  const { value, optional } = unwrapped(name, given, fail);
  if (value["kind"] === "outworlder") {
    if (value["clis"] !== undefined) fail(`${name}.clis needs an agent with a shell`);
    if (Object.keys(value).some((key) => key !== "kind")) {
      fail(`${name}: an Outworlder is whoever is outside the run, and has no harness or needs`);
    }
    return { kind: "outworlder", name, optional };
  }
  if (value["kind"] !== "agent") return fail(`${name}: ${describe(value)} is not an Agent`);
  const role = value as unknown as AgentRole;
  if (!Array.isArray(role.needs)) return fail(`${name}.needs is not an array of needs`);
  const needs = new Set<AgentNeed>();
  for (const need of role.needs as readonly string[]) {
    if (ENV_NEEDS.some((known) => known === need)) {
      fail(`${name}: an agent cannot be declared with an environment's needs`);
    }
    if (!AGENT_NEEDS.some((known) => known === need)) {
      fail(`${name}: '${String(need)}' is not a need of an agent: one of ${AGENT_NEEDS.join(", ")}`);
    }
    needs.add(need as AgentNeed);
  }
  const { harness, tools, clis, skills, callbacks } = role;
  if (harness !== undefined) {
    if (typeof harness !== "string" || !isHarness(harness)) {
      return fail(`${name}: '${String(harness)}' is not a harness: one of ${Object.keys(HARNESSES).join(", ")}`);
    }
    for (const need of HARNESSES[harness].needs) needs.add(need);
  }
  if (!Array.isArray(tools) || !tools.every(isTool)) fail(`${name}.tools is not an array of tools`);
  if (namedTwice(tools)) fail(`${name}.tools names one tool twice`);
  if (tools.length > 0) needs.add("tools");
  if (!Array.isArray(clis) || !clis.every(isCli)) fail(`${name}.clis is not an array of command lines`);
  if (namedTwice(clis)) fail(`${name}.clis names one command line twice`);
  if (clis.length > 0 && harness === "litellm") fail(`${name}.clis needs an agent with a shell`);
  if (!Array.isArray(skills) || !skills.every((skill) => typeof skill === "string" && skill !== "")) {
    fail(`${name}.skills is not an array of skill names`);
  }
  if (!isCallbacks(callbacks)) return fail(`${name}.callbacks is not a record of lists of functions`);
  if (callbacks.beforeTool?.length || callbacks.afterTool?.length) needs.add("tool_callbacks");
  if (callbacks.beforeModel?.length || callbacks.afterModel?.length) needs.add("model_callbacks");
  return {
    kind: "agent",
    name,
    optional,
    harness,
    needs,
    permission: permissionOf(name, role.permission, fail),
    skills: [...skills],
    tools: [...tools],
    clis: [...clis],
    callbacks,
  };
}

const CALLBACK_LISTS = ["beforeModel", "afterModel", "beforeTool", "afterTool", "afterRun"];

function isCallbacks(value: unknown): value is Callbacks {
  return (
    isRecord(value) &&
    Object.entries(value).every(
      ([list, fns]) =>
        CALLBACK_LISTS.includes(list) && Array.isArray(fns) && fns.every((fn) => typeof fn === "function"),
    )
  );
}

function permissionOf(role: string, given: unknown, fail: Fail): Permission {
  if (given === undefined) return new Permission();
  if (given instanceof Permission) return given;
  if (!isRecord(given)) return fail(`${role}.permission is not a Permission`);
  try {
    return new Permission(given);
  } catch (error) {
    return fail(`${role}.permission: ${(error as Error).message}`);
  }
}

function namedTwice(named: readonly { readonly name: string }[]): boolean {
  return new Set(named.map(({ name }) => name)).size < named.length;
}

function envRole(name: string, given: unknown, fail: Fail): EnvRoleDefinition {
  const { value, optional } = unwrapped(name, given, fail);
  if (value["kind"] !== "env") return fail(`${name}: ${describe(value)} is not an Env`);
  const role = value as unknown as EnvRole | LocalEnvRole;
  if (!Array.isArray(role.needs)) return fail(`${name}.needs is not an array of needs`);
  const needs = new Set<EnvNeed>();
  for (const need of role.needs as readonly string[]) {
    if (AGENT_NEEDS.some((known) => known === need)) {
      fail(`${name}: an environment cannot be declared with an agent's needs`);
    }
    if (!ENV_NEEDS.some((known) => known === need)) {
      fail(`${name}: '${String(need)}' is not a need of an environment: one of ${ENV_NEEDS.join(", ")}`);
    }
    needs.add(need as EnvNeed);
    if (need === "bash") needs.add("shell");
    if (need === "git") needs.add("rewind");
  }
  const amount = (field: keyof Resources): number => {
    const bytes = bytesOf(role[field]);
    return bytes ?? fail(`${name}.${field} is not a whole number of at least 0`);
  };
  const { image = "" } = role;
  if (typeof image !== "string" || /\s/.test(image)) fail(`${name}.image is not an image: ${String(image)}`);
  return {
    kind: "env",
    name,
    optional,
    local: role.local,
    needs,
    cpus: amount("cpus"),
    memory: amount("memory"),
    gpus: amount("gpus"),
    gpuMemory: amount("gpuMemory"),
    image,
  };
}

const BYTE_UNITS = ["", "K", "M", "G", "T", "P"];

/** A whole number of at least 0, or text such as `8GiB` and `16 GB`; `undefined` where it is neither. */
function bytesOf(given: number | string | undefined): number | undefined {
  if (given === undefined) return 0;
  if (typeof given === "number") return Number.isSafeInteger(given) && given >= 0 ? given : undefined;
  const parts = /^\s*(\d+(?:\.\d+)?)\s*([KMGTP]?)(i?)B?\s*$/i.exec(given);
  if (!parts) return undefined;
  const base = parts[3] ? 1_024 : 1_000;
  const bytes = Number(parts[1]) * base ** BYTE_UNITS.indexOf((parts[2] as string).toUpperCase());
  return Number.isSafeInteger(Math.round(bytes)) ? Math.round(bytes) : undefined;
}

function describe(value: Record<string, unknown>): string {
  return value["kind"] === "env" || value["kind"] === "agent" ? `an ${String(value["kind"])} role` : "this";
}
