/** What a flow needs, as data that can be printed: its roles, its params, and a command that runs it. */

import { z } from "zod";
import { withoutPassword } from "../catalog/git-url.ts";
import {
  type AgentRoleDefinition,
  definition,
  type EnvRoleDefinition,
  type OutworlderRoleDefinition,
} from "../flows/definition.ts";
import type { AnyFlow } from "../flows/flow.ts";
import { type Harness, HARNESSES, HARNESS_NAMES } from "../flows/harness.ts";
import { Permission } from "../flows/permission.ts";

export interface RoleSheet {
  readonly name: string;
  readonly optional: boolean;
  /** What it asks for, a phrase each. */
  readonly says: readonly string[];
}

export interface ParamSheet {
  readonly name: string;
  /** As a person says it: `integer 0..5`, `"a" | "b"`. */
  readonly type: string;
  readonly required: boolean;
  readonly default?: unknown;
  readonly description: string;
}

export interface FlowSheet {
  /** As it was named. */
  readonly name: string;
  readonly ref: string;
  readonly description: string | undefined;
  readonly resumable: boolean;
  readonly budgetRequired: boolean;
  readonly agents: readonly RoleSheet[];
  readonly envs: readonly RoleSheet[];
  readonly params: readonly ParamSheet[];
  /** The JSON Schema of the params. */
  readonly schema: unknown;
  /** A command line that runs it. */
  readonly example: string;
}

/** @param name The flow, as it was named: what `-f` takes. */
export function flowSheet(flow: AnyFlow, name: string): FlowSheet {
  const { agents, envs, params, resumable } = definition(flow);
  const schema = z.toJSONSchema(params, { io: "input", unrepresentable: "any" }) as JsonSchema;
  const sheets = paramSheets(schema);
  // Only `chat` runs without a budget.
  const budgetRequired = flow.ref !== "chat:chat";
  return {
    name,
    ref: flow.ref,
    description: flow.description,
    resumable,
    budgetRequired,
    agents: agents.map(agentSheet),
    envs: envs.map(envSheet),
    params: sheets,
    schema,
    example: exampleOf(name, agents, envs, sheets, budgetRequired),
  };
}

function agentSheet(role: AgentRoleDefinition | OutworlderRoleDefinition): RoleSheet {
  const { name, optional } = role;
  if (role.kind === "outworlder") return { name, optional, says: ["whoever is outside the run; filled by it"] };
  const { harness, needs, permission, skills, tools, clis } = role;
  const says = [
    whoServes(role),
    ...(needs.size > 0 && harness === undefined ? [`needs ${[...needs].join(", ")}`] : []),
    ...(permission.toString() === new Permission().toString() ? [] : [`may touch ${permission.toString()}`]),
    ...(skills.length > 0 ? [`skills ${skills.map(withoutPassword).join(", ")}`] : []),
    ...(tools.length > 0 ? [`offers ${tools.map((tool) => tool.name).join(", ")}`] : []),
    ...(clis.length > 0 ? [`puts ${clis.map((cli) => cli.name).join(", ")} on its PATH`] : []),
  ];
  return { name, optional, says };
}

function whoServes(role: AgentRoleDefinition): string {
  if (role.harness !== undefined) return `${role.harness} alone`;
  const served = servedBy(role);
  if (served.length === HARNESS_NAMES.length) return "any harness";
  return served.length === 0 ? "no harness serves it" : `any of ${served.join(", ")}`;
}

/** The harnesses whose row has every need of a role. What only a driver can tell is not asked. */
function servedBy({ needs, harness }: AgentRoleDefinition): readonly Harness[] {
  if (harness !== undefined) return [harness];
  return HARNESS_NAMES.filter((name) => {
    const row: readonly string[] = HARNESSES[name].needs;
    return [...needs].every((need) => row.includes(need) || need.endsWith("_callbacks"));
  });
}

function envSheet(role: EnvRoleDefinition): RoleSheet {
  const { name, optional, local, needs, cpus, memory, gpus, gpuMemory, image } = role;
  const says = [
    local ? "the directory that the run is started in; filled by the run" : "a working directory on a machine",
    ...(needs.size > 0 ? [`needs ${[...needs].join(", ")}`] : []),
    ...(cpus > 0 ? [`${cpus} CPUs`] : []),
    ...(memory > 0 ? [`${gibibytes(memory)} of memory`] : []),
    ...(gpus > 0 ? [`${gpus} GPUs`] : []),
    ...(gpuMemory > 0 ? [`${gibibytes(gpuMemory)} of memory a GPU`] : []),
    ...(image === "" ? [] : [`image ${image}`]),
  ];
  return { name, optional, says };
}

function gibibytes(bytes: number): string {
  const figure = bytes / 1_024 ** 3;
  return `${Number.isInteger(figure) ? figure : figure.toFixed(2)} GiB`;
}

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
}

function paramSheets({ properties = {}, required = [] }: JsonSchema): readonly ParamSheet[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    type: typeOf(schema),
    required: required.includes(name),
    ...("default" in schema ? { default: schema.default } : {}),
    description: schema.description ?? "",
  }));
}

function typeOf(schema: JsonSchema): string {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.type === "array") return `list of ${schema.items ? typeOf(schema.items) : "anything"}`;
  const type = Array.isArray(schema.type)
    ? schema.type.join(" | ")
    : ((schema.type as string | undefined) ?? "anything");
  return type + rangeOf(schema);
}

/** The limits that somebody set: those of what a number can hold say nothing. */
function rangeOf({ minimum, maximum }: JsonSchema): string {
  const least = minimum === undefined || minimum <= Number.MIN_SAFE_INTEGER ? undefined : minimum;
  const most = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (least !== undefined && most !== undefined) return ` ${least}..${most}`;
  if (least !== undefined) return `, at least ${least}`;
  return most === undefined ? "" : `, at most ${most}`;
}

/** A model that each harness is likely to be signed in for. */
const LIKELY_MODELS: Partial<Record<Harness, string>> = {
  claude: "sonnet",
  codex: "gpt-5",
  native: "anthropic/claude-sonnet-4-5",
  litellm: "anthropic/claude-sonnet-4-5",
};

function exampleOf(
  name: string,
  agents: readonly (AgentRoleDefinition | OutworlderRoleDefinition)[],
  envs: readonly EnvRoleDefinition[],
  params: readonly ParamSheet[],
  budgetRequired: boolean,
): string {
  const words = ["hmz exec", "-f", quoted(name)];
  for (const role of agents) {
    if (role.kind === "outworlder" || role.optional) continue;
    const served = servedBy(role);
    const harness = served.find((name) => name in LIKELY_MODELS) ?? served[0] ?? "claude";
    words.push("-a", quoted(`${role.name}=${harness}/${LIKELY_MODELS[harness] ?? "MODEL"}`));
  }
  for (const role of envs) {
    if (!role.local && !role.optional) words.push("-e", quoted(`${role.name}=local/DIRECTORY`));
  }
  for (const param of params) {
    if (param.required) words.push("-p", quoted(`${param.name}=${sampleOf(param)}`));
  }
  if (budgetRequired) words.push("-p", "budget.cost=5");
  return [...words, '"add a --dry-run flag"'].join(" ");
}

function sampleOf({ type }: ParamSheet): string {
  const [first = ""] = type.split(" | ");
  if (first.startsWith('"')) return JSON.parse(first) as string;
  const least = /(?:at least | )(-?\d+)/.exec(first)?.[1];
  if (/^(?:integer|number)/.test(first)) return least ?? "1";
  if (first === "boolean") return "true";
  return first === "string" ? "…" : "[]";
}

/** A word as a shell takes it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
