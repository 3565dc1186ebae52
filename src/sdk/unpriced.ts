/** Whether a cost limit can be enforced. */

import type { AgentDriver } from "../engine/ports.ts";
import type { Prepared, RunOptions } from "./prepare.ts";

const SOME_TOKENS = { input: 1, output: 1 };

/** Words by which Claude Code names a model that it chooses itself: what it spends is reported under the model's own. */
const CHOSEN_BY_CLAUDE: readonly string[] = ["default", "opus", "sonnet", "haiku", "opusplan", "best"];

/** A sentence on the models that a cost limit does not limit; `""` where there is none. */
export function unpricedModels(
  { budget, agents, prices }: Pick<Prepared, "budget" | "agents" | "prices">,
  { agents: given = {} }: RunOptions,
): string {
  if (budget.cost === undefined || budget.cost === Infinity) return "";
  const models = Object.entries(agents)
    // A driver that a program gives, as a fake is, reports what it costs.
    .filter(([role, driver]) => typeof given[role] === "string" && !reportsItsCost(driver))
    .map(([, { model }]) => model);
  const unpriced = [...new Set(models)].filter((model) => prices.cost(model, SOME_TOKENS) === undefined);
  if (unpriced.length === 0) return "";
  const named = unpriced.map((model) => `'${model}'`).join(", ");
  const [has, it] = unpriced.length === 1 ? ["has", "it"] : ["have", "them"];
  return `${named} ${has} no price here, so budget.cost does not limit ${it}; budget.duration and budget.output_tokens do`;
}

function reportsItsCost({ harness, model }: Pick<AgentDriver, "harness" | "model">): boolean {
  if (harness === "claude") return CHOSEN_BY_CLAUDE.includes(model.toLowerCase());
  return harness === "native" && model.startsWith("scripted/");
}
