/** Whether a cost limit can be enforced. */

import type { AgentDriver } from "../engine/ports.ts";
import type { Prepared, RunOptions } from "./prepare.ts";

const SOME_TOKENS = { input: 1, output: 1 };

/** Words by which Claude Code names a model that it chooses itself: what it spends is reported under the model's own. */
const CHOSEN_BY_CLAUDE: readonly string[] = ["default", "opus", "sonnet", "haiku", "opusplan", "best"];

/** Whether a run has a cost limit that is held to by the table of prices. */
export function isPricedByTable(prepared: Pick<Prepared, "budget" | "agents">, options: RunOptions): boolean {
  return (
    limitsCost(prepared) && drivenBySpec(prepared, options).some(({ harness, model }) => !isScripted(harness, model))
  );
}

/** A sentence on the models that a cost limit does not limit; `""` where there is none. */
export function unpricedModels(prepared: Pick<Prepared, "budget" | "agents" | "prices">, options: RunOptions): string {
  if (!limitsCost(prepared)) return "";
  const { prices } = prepared;
  const models = drivenBySpec(prepared, options)
    .filter((driver) => !reportsItsCost(driver))
    .map(({ model }) => model);
  const unpriced = [...new Set(models)].filter((model) => prices.cost(model, SOME_TOKENS) === undefined);
  if (unpriced.length === 0) return "";
  const named = unpriced.map((model) => `'${model}'`).join(", ");
  const [has, it] = unpriced.length === 1 ? ["has", "it"] : ["have", "them"];
  return `${named} ${has} no price here, so budget.cost does not limit ${it}; budget.duration and budget.output_tokens do`;
}

function limitsCost({ budget }: Pick<Prepared, "budget">): boolean {
  return budget.cost !== undefined && budget.cost !== Infinity;
}

/** A driver that a program gives, as a fake is, reports what it costs. */
function drivenBySpec({ agents }: Pick<Prepared, "agents">, { agents: given = {} }: RunOptions): AgentDriver[] {
  return Object.entries(agents)
    .filter(([role]) => typeof given[role] === "string")
    .map(([, driver]) => driver);
}

function reportsItsCost({ harness, model }: Pick<AgentDriver, "harness" | "model">): boolean {
  if (harness === "claude") return CHOSEN_BY_CLAUDE.includes(model.toLowerCase());
  return isScripted(harness, model);
}

function isScripted(harness: string, model: string): boolean {
  return harness === "native" && model.startsWith("scripted/");
}
