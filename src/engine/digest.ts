/** What makes two flow calls the same, in two runs: the flow, its task, what fills its roles, its params. */

import { createBLAKE2b } from "hash-wasm";
import { type AgentRecord, skillsOf } from "./agent.ts";
import type { Call, Handed } from "./call.ts";
import { envOf } from "./environment.ts";
import { outworlderOf } from "./outworlder.ts";
import { agentOf } from "./view.ts";

/** What tells a call from others. */
export type CallDigest = (call: Call, given: Handed & { readonly params: unknown }) => string;

/** BLAKE2b of 128 bits, as hex, over the parts of a call, each set apart by a NUL. */
export async function callDigest(): Promise<CallDigest> {
  const hash = await createBLAKE2b(128);
  return (call, given) => hash.init().update(partsOf(call, given).join("\0")).digest("hex");
}

function partsOf(call: Call, given: Handed & { readonly params: unknown }): readonly string[] {
  const { agents, envs } = call.definition;
  const parts = [call.ref, call.task];
  for (const { name } of agents) {
    const spec = agentText(given.agents[name]);
    if (spec !== undefined) parts.push(`${name}=${spec}`);
  }
  for (const { name } of envs) {
    const env = envOf(given.envs[name]);
    if (env) parts.push(`${name}=${env.chain}`);
  }
  parts.push(paramsText(given.params));
  return parts;
}

function agentText(view: unknown): string | undefined {
  const agent = agentOf(view);
  if (agent) return specOf(agent);
  const person = outworlderOf(view);
  return person && (person.answers.by === "flow" ? "outworlder:new" : "outworlder");
}

/** `<harness>@<provider>/<model>:<effort>|<local>,<user>,<system>,<online>|<skill,skill…>` */
function specOf(agent: AgentRecord): string {
  const { harness, provider, model, effort } = agent.family.driver;
  const { local, user, system, online } = agent.grant.permission;
  const skills = skillsOf(agent).map(({ name }) => name);
  return `${harness}@${provider}/${model}:${effort}|${local},${user},${system},${online}|${skills.join(",")}`;
}

/** JSON has no infinity and no NaN: they would read as null, and two params as one. */
function paramsText(params: unknown): string {
  return (
    JSON.stringify(params, (_key, value: unknown) =>
      (typeof value === "number" && !Number.isFinite(value)) || typeof value === "bigint" ? String(value) : value,
    ) ?? ""
  );
}
