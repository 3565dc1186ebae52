/** What makes two flow calls the same, in two runs: the flow, its task, what fills its roles, its params. */

import { blake2b } from "@noble/hashes/blake2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { type AgentRecord, skillsOf } from "./agent.ts";
import type { Call, Handed } from "./call.ts";
import { envOf } from "./environment.ts";
import { outworlderOf } from "./outworlder.ts";
import { agentOf } from "./view.ts";

/** BLAKE2b of 128 bits, as hex, over the parts of a call, each set apart by a NUL. */
export function callDigest(call: Call, given: Handed & { readonly params: unknown }): string {
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
  return bytesToHex(blake2b(new TextEncoder().encode(parts.join("\0")), { dkLen: 16 }));
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
