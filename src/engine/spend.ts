/** What is spent under each call and turn, and the limits that it is held to. */

import { type Budget, type Graceful, graces, type Usage } from "../flows/budget.ts";
import type { EffectiveBudget } from "../flows/context.ts";
import type { BudgetExceeded } from "../flows/errors.ts";
import { CostExceeded, DurationExceeded, OutputTokensExceeded } from "../flows/errors.ts";

type Limit = "duration" | "cost" | "outputTokens";

/**
 * The spending of one call, or of one turn, under the one above. What is spent here is spent in every ledger above.
 * A budget that is spent stays spent: nothing is ever taken back.
 */
export class Ledger {
  readonly above: Ledger | undefined;
  readonly limits: Budget | undefined;
  /** Ms since the epoch. */
  readonly startedAt: number;
  /** For each limit, whether a turn under way may finish. */
  readonly graceful: Graceful;
  #cost = 0;
  #outputTokens = 0;
  #duration = 0;

  constructor(above: Ledger | undefined, limits: Budget | undefined, startedAt: number) {
    this.above = above;
    this.limits = limits;
    this.startedAt = startedAt;
    this.graceful = limits ? graces(limits) : EVERY_LIMIT_GRACEFUL;
  }

  get usage(): Usage {
    return { duration: this.#duration, cost: this.#cost, outputTokens: this.#outputTokens };
  }

  /** Counts tokens and USD, here and above. */
  spend(cost: number, outputTokens: number): void {
    for (let ledger: Ledger | undefined = this; ledger; ledger = ledger.above) {
      ledger.#cost += cost;
      ledger.#outputTokens += outputTokens;
    }
  }

  /** Counts a turn's milliseconds, here and above. */
  lasted(ms: number): void {
    for (let ledger: Ledger | undefined = this; ledger; ledger = ledger.above) ledger.#duration += ms;
  }

  /** The limit that is spent, here or above, and whether turns under it are cut off; `undefined` where none is. */
  spent(now: number, which: "any" | "hard" = "any"): Limit | undefined {
    for (let ledger: Ledger | undefined = this; ledger; ledger = ledger.above) {
      // A price list gone bad in the middle of a run must not let it spend without end: its next turn is refused.
      if (which === "any" && !Number.isFinite(ledger.#cost)) return "cost";
      const { limits } = ledger;
      if (!limits) continue;
      const { graceful } = ledger;
      if (limits.duration !== undefined && now >= ledger.startedAt + limits.duration) {
        if (which === "any" || !graceful.duration) return "duration";
      }
      if (limits.cost !== undefined && ledger.#cost >= limits.cost && (which === "any" || !graceful.cost))
        return "cost";
      if (limits.outputTokens !== undefined && ledger.#outputTokens >= limits.outputTokens) {
        if (which === "any" || !graceful.outputTokens) return "outputTokens";
      }
    }
    return undefined;
  }

  /** The earliest instant at which a turn under way is cut off. */
  hardDeadline(): number {
    let earliest = Infinity;
    for (let ledger: Ledger | undefined = this; ledger; ledger = ledger.above) {
      const { limits } = ledger;
      if (limits?.duration !== undefined && !ledger.graceful.duration) {
        earliest = Math.min(earliest, ledger.startedAt + limits.duration);
      }
    }
    return earliest;
  }

  /** For each limit, the least over the chain of what it leaves plus what was spent here: what this call may reach. */
  effective(): EffectiveBudget {
    const least: Record<Limit, number> = { duration: Infinity, cost: Infinity, outputTokens: Infinity };
    const set: Record<Limit, boolean> = { duration: false, cost: false, outputTokens: false };
    const graceful = { duration: true, cost: true, outputTokens: true };
    for (let ledger: Ledger | undefined = this; ledger; ledger = ledger.above) {
      const { limits } = ledger;
      if (!limits) continue;
      const reach: Record<Limit, number | undefined> = {
        duration: limits.duration === undefined ? undefined : ledger.startedAt + limits.duration - this.startedAt,
        cost: limits.cost === undefined ? undefined : limits.cost - ledger.#cost + this.#cost,
        outputTokens:
          limits.outputTokens === undefined
            ? undefined
            : limits.outputTokens - ledger.#outputTokens + this.#outputTokens,
      };
      for (const limit of LIMITS) {
        const may = reach[limit];
        if (may === undefined) continue;
        set[limit] = true;
        least[limit] = Math.min(least[limit], may);
        if (!ledger.graceful[limit]) graceful[limit] = false;
      }
    }
    const agree = graceful.duration === graceful.cost && graceful.cost === graceful.outputTokens;
    return {
      ...(set.duration ? { duration: Math.max(0, least.duration) } : {}),
      ...(set.cost ? { cost: Math.max(0, least.cost) } : {}),
      ...(set.outputTokens ? { outputTokens: Math.max(0, least.outputTokens) } : {}),
      graceful: agree ? graceful.duration : graceful,
    };
  }
}

const LIMITS = ["duration", "cost", "outputTokens"] as const;
const EVERY_LIMIT_GRACEFUL: Graceful = { duration: true, cost: true, outputTokens: true };

/** The error of a spent limit. */
export function exceeded(ref: string, limit: Limit): BudgetExceeded {
  switch (limit) {
    case "duration":
      return new DurationExceeded(`${ref}: its budget's duration is spent`);
    case "cost":
      return new CostExceeded(`${ref}: its budget's cost is spent`);
    case "outputTokens":
      return new OutputTokensExceeded(`${ref}: its budget's output tokens are spent`);
  }
}
