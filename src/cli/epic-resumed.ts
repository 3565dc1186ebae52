/** `hmz epics resume`: a run again, as it was asked for, from where it stopped. */

import type { BudgetLike } from "../flows/budget.ts";
import type { Epic, EpicShelf } from "../sdk/index.ts";
import { type Io, Refusal } from "./io.ts";

/** Runs it, shows it as `hmz exec` does, and exits as that does. @throws Refused where nothing of it can be picked up. */
export async function resumeEpic(shelf: EpicShelf, directory: string, io: Io, json: boolean): Promise<number> {
  const { began, name } = await shelf.read(directory);
  if (began.flow === "" || began.workspace === "") {
    throw new Refusal(`the record of ${name} does not say what was run: it was cut before its first line was whole`);
  }
  const unresumable = await shelf.unresumable(directory);
  if (unresumable !== "") throw new Refusal(unresumable);
  const [{ Hmz }, { follow }] = await Promise.all([import("../sdk/hmz.ts"), import("./exec.ts")]);
  const run = new Hmz({ workspace: began.workspace, env: io.env }).run(began.flow, began.task, {
    agents: Object.fromEntries(began.agents.map((given) => [given.agent, specOf(given)])),
    envs: Object.fromEntries(began.envs.map(roleAndSpec)),
    params: recordOf(began.params),
    budget: budgetOf(began.budget),
    resume: directory,
  });
  return follow(run, io, json);
}

/** An agent as `-a` has it. */
function specOf({ backend, provider, model, effort }: Epic["began"]["agents"][number]): string {
  // The last part of a model's own name reads as an effort where none is written after it.
  const written = effort !== "" || model.includes(":") ? `:${effort}` : "";
  return `${backend}${provider === "" ? "" : `@${provider}`}/${model}${written}`;
}

function roleAndSpec(text: string): [role: string, spec: string] {
  const at = text.indexOf("=");
  return [text.slice(0, at), text.slice(at + 1)];
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/** JSON has no infinity: a limit that is none is written as its name. */
function budgetOf(value: unknown): BudgetLike | undefined {
  if (value === undefined) return undefined;
  const limits = Object.entries(recordOf(value)).map(([limit, given]) => [
    limit,
    given === "Infinity" ? Infinity : given,
  ]);
  return Object.fromEntries(limits) as BudgetLike;
}
