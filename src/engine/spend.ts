/** What is spent under each call and turn, and the limits that it is held to. */

import { type Budget, type Graceful, graces, type Usage } from "../flows/budget.ts";
import type { EffectiveBudget } from "../flows/context.ts";
import type { BudgetExceeded } from "../flows/errors.ts";
import { CostExceeded, DurationExceeded, OutputTokensExceeded } from "../flows/errors.ts";

export type Limit = "duration" | "cost" | "outputTokens";

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
  /** The limit of its own that was spent first: turns under way may spend another, and the refusals stay the same. */
  #first: Limit | undefined;
  /** What cuts off each turn under way, where a limit here cuts off. */
  readonly #cuts: Set<(limit: Limit) => void> | undefined;
  /** The nearest ledger, from here on up, with a limit in money or tokens that cuts off. */
  readonly #hard: Ledger | undefined;

  constructor(above: Ledger | undefined, limits: Budget | undefined, startedAt: number) {
    this.above = above;
    this.limits = limits;
    this.startedAt = startedAt;
    this.graceful = limits ? graces(limits) : EVERY_LIMIT_GRACEFUL;
    const cuts =
      (limits?.cost !== undefined && !this.graceful.cost) ||
      (limits?.outputTokens !== undefined && !this.graceful.outputTokens);
    if (cuts) this.#cuts = new Set();
    this.#hard = cuts ? this : above && above.#hard;
  }

  get usage(): Usage {
    return { duration: this.#duration, cost: this.#cost, outputTokens: this.#outputTokens };
  }

  /**
   * Counts tokens and USD, here and above, and cuts off every turn under way under a hard limit that is reached: one
   * that is silent meanwhile would spend on.
   */
  spend(cost: number, outputTokens: number): void {
    for (let ledger: Ledger | undefined = this; ledger; ledger = ledger.above) {
      // Nothing is taken back. What is not a number stays none, and refuses the next turn.
      ledger.#cost += Math.max(0, cost);
      ledger.#outputTokens += Math.max(0, outputTokens);
      if (ledger.limits) ledger.#spentFirst();
    }
    for (let ledger = this.#hard; ledger; ledger = ledger.above && ledger.above.#hard) {
      const limit = ledger.#reached("hard");
      if (limit) for (const cut of ledger.#cuts ?? []) cut(limit);
    }
  }

  /** Calls `cut` with each hard limit in money or tokens that is reached, here or above. Returns what takes it back. */
  onHardLimit(cut: (limit: Limit) => void): (() => void) | undefined {
    if (!this.#hard) return undefined;
    for (let ledger: Ledger | undefined = this.#hard; ledger; ledger = ledger.above && ledger.above.#hard)
      ledger.#cuts?.add(cut);
    return () => {
      for (let ledger = this.#hard; ledger; ledger = ledger.above && ledger.above.#hard) ledger.#cuts?.delete(cut);
    };
  }

  /** Whether a limit in money or tokens of this ledger's own is reached. */
  #reached(which: "any" | "hard"): Limit | undefined {
    const { limits, graceful } = this;
    if (!limits) return undefined;
    // Ten times 0.1 is a little less than 1.
    if (limits.cost !== undefined && this.#cost * ROUNDING >= limits.cost && (which === "any" || !graceful.cost)) {
      return "cost";
    }
    const { outputTokens } = limits;
    if (outputTokens === undefined || this.#outputTokens < outputTokens) return undefined;
    return which === "any" || !graceful.outputTokens ? "outputTokens" : undefined;
  }

  /** The first of its own limits that was spent, as it is from then on. */
  #spentFirst(now?: number): Limit | undefined {
    return (this.#first ??= this.#isLate(now) ? "duration" : this.#reached("any"));
  }

  #spentHard(now: number): Limit | undefined {
    return !this.graceful.duration && this.#isLate(now) ? "duration" : this.#reached("hard");
  }

  #isLate(now?: number): boolean {
    const { limits, startedAt } = this;
    return limits?.duration !== undefined && (now ?? Date.now()) >= startedAt + limits.duration;
  }

  /** Counts a turn's milliseconds, here and above. */
  lasted(ms: number): void {
    for (let ledger: Ledger | undefined = this; ledger; ledger = ledger.above) ledger.#duration += ms;
  }

  /** The limit that is spent, here or above, and whether turns under it are cut off; `undefined` where none is. */
  spent(now: number, which: "any" | "hard" = "any"): Limit | undefined {
    for (let ledger: Ledger | undefined = this; ledger; ledger = ledger.above) {
      // A price list gone bad in the middle of a run must not let it spend without end: its next turn is refused.
      if (which === "any" && !Number.isFinite(ledger.#cost + ledger.#outputTokens)) return "cost";
      if (!ledger.limits) continue;
      const reached = which === "any" ? ledger.#spentFirst(now) : ledger.#spentHard(now);
      if (reached) return reached;
    }
    return undefined;
  }

  /** The instant at which this ledger's own limit cuts off; `Infinity` where none does. */
  hardDeadline(): number {
    const { limits, graceful, startedAt } = this;
    return limits?.duration === undefined || graceful.duration ? Infinity : startedAt + limits.duration;
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
        cost: reachable(limits.cost, ledger.#cost, this.#cost),
        outputTokens: reachable(limits.outputTokens, ledger.#outputTokens, this.#outputTokens),
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

/** What may be spent here in all, where a limit above leaves the rest of it. */
function reachable(limit: number | undefined, there: number, here: number): number | undefined {
  if (limit === undefined || limit === Infinity) return limit;
  const may = limit - there + here;
  // Infinity less itself, or a spend that is no number: nothing more may be.
  return Number.isNaN(may) ? 0 : may;
}

const ROUNDING = 1 + 1e-12;
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
