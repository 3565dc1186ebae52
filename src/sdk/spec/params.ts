/** `-p`: `<key>=<value>`, and the run's budget as `budget.<limit>=<value>`. */

import type { Budget } from "../../flows/budget.ts";
import { Refused } from "../refused.ts";
import { parseBudget } from "./budget.ts";
import { items } from "./items.ts";

const KEY = /^[A-Za-z_][\w-]*$/;

/** Every occurrence of `-p`, read as one list. */
export interface Params {
  /** The text after each key's first `=`, as it was written. */
  readonly params: Record<string, string>;
  /** `undefined` where no `budget.*` was given. */
  readonly budget: Budget | undefined;
}

/** @throws Refused where an item is written wrong, or a key is given twice. */
export function parseParams(values: readonly string[]): Params {
  const params = new Map<string, string>();
  const limits = new Map<string, string>();
  for (const item of values.flatMap((value) => items("-p", value))) {
    const said = item.trim();
    const cut = item.indexOf("=");
    const key = cut < 0 ? said : item.slice(0, cut).trim();
    const value = item.slice(cut + 1);
    if (key === "budget") throw new Refused(`-p '${said}': a budget is given a limit at a time, as budget.cost=5`);
    if (key.startsWith("budget.") && cut >= 0) {
      const limit = key.slice("budget.".length);
      if (limits.has(limit)) throw new Refused(`-p: 'budget.${limit}' is given twice`);
      limits.set(limit, value.trim());
      continue;
    }
    if (cut < 0 || !KEY.test(key)) throw new Refused(`-p '${said}': expected <key>=<value>`);
    if (params.has(key)) throw new Refused(`-p: '${key}' is given twice`);
    params.set(key, value);
  }
  return { params: Object.fromEntries(params), budget: limits.size > 0 ? parseBudget(limits) : undefined };
}
