/** Limits on what a call or a turn may spend, and what has been spent. */

import { milliseconds } from "./duration.ts";

/** For each limit: whether a turn under way when it is reached may finish (`true`), or is cut off at once (`false`). */
export interface Graceful {
  readonly duration: boolean;
  readonly cost: boolean;
  readonly outputTokens: boolean;
}

/** At least one limit is set. Made by {@link budget}, which validates; a plain object is taken wherever one is. */
export interface Budget {
  /** Wall-clock milliseconds from the start of the call or turn that the budget belongs to: a deadline. */
  readonly duration?: number | undefined;
  /** USD spent by turns under it. `Infinity` means unlimited. */
  readonly cost?: number | undefined;
  /** Tokens written by agents under it. */
  readonly outputTokens?: number | undefined;
  /** Default `true` for every limit. */
  readonly graceful?: boolean | Partial<Graceful> | undefined;
}

/** A budget as a person gives it: the duration may be text in the grammar of `-p budget.duration`. */
export interface BudgetLike extends Omit<Budget, "duration"> {
  readonly duration?: number | string | undefined;
}

/** What has been spent: by a session, a call and every call under it, or a run. */
export interface Usage {
  /** Milliseconds: the sum over every turn counted; concurrent turns each count. */
  readonly duration: number;
  /** USD. */
  readonly cost: number;
  /** Reasoning included. */
  readonly outputTokens: number;
}

/**
 * A validated, frozen budget.
 *
 * @throws RangeError where no limit is set, a limit is negative or no number, or `graceful` is of another shape.
 */
export function budget(given: BudgetLike): Budget {
  const { duration, cost, outputTokens, graceful, ...unknown } = given;
  for (const key of Object.keys(unknown)) {
    throw new RangeError(`'${key}' is not a limit of a budget: one of duration, cost, outputTokens, graceful`);
  }
  if (duration === undefined && cost === undefined && outputTokens === undefined) {
    throw new RangeError("a budget sets at least one of duration, cost, output_tokens");
  }
  if (cost !== undefined && !(typeof cost === "number" && cost >= 0)) {
    throw new RangeError(`a budget's cost is a number of USD, not negative: ${String(cost)}`);
  }
  if (
    outputTokens !== undefined &&
    !(outputTokens === Infinity || (Number.isInteger(outputTokens) && outputTokens >= 0))
  ) {
    throw new RangeError(`a budget's outputTokens is a whole number, not negative: ${String(outputTokens)}`);
  }
  return Object.freeze({
    ...(duration === undefined ? {} : { duration: milliseconds(duration) }),
    ...(cost === undefined ? {} : { cost }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(graceful === undefined ? {} : { graceful: gracefulOf(graceful) }),
  });
}

const GRACEFUL_LIMITS = ["duration", "cost", "outputTokens"] as const;

function gracefulOf(graceful: boolean | Partial<Graceful>): boolean | Graceful {
  if (typeof graceful === "boolean") return graceful;
  if (typeof graceful !== "object" || graceful === null) {
    throw new RangeError("a budget's graceful is a boolean, or one for each of duration, cost, outputTokens");
  }
  for (const [key, value] of Object.entries(graceful)) {
    if (!GRACEFUL_LIMITS.some((limit) => limit === key) || (value !== undefined && typeof value !== "boolean")) {
      throw new RangeError("a budget's graceful is a boolean, or one for each of duration, cost, outputTokens");
    }
  }
  const { duration = true, cost = true, outputTokens = true } = graceful;
  return duration === cost && cost === outputTokens ? duration : Object.freeze({ duration, cost, outputTokens });
}

/** A budget's `graceful`, one flag a limit. */
export function graces({ graceful = true }: Pick<Budget, "graceful">): Graceful {
  if (typeof graceful === "boolean") return { duration: graceful, cost: graceful, outputTokens: graceful };
  const { duration = true, cost = true, outputTokens = true } = graceful;
  return { duration, cost, outputTokens };
}
