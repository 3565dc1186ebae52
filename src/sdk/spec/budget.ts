/** `-p budget.*`: the run's budget as text. */

import { type Budget, budget, type Graceful } from "../../flows/budget.ts";
import { parseDuration } from "../../flows/duration.ts";
import { Refused } from "../refused.ts";

const LIMITS = [
  "duration",
  "cost",
  "output_tokens",
  "graceful",
  "graceful.duration",
  "graceful.cost",
  "graceful.output_tokens",
] as const;
type Limit = (typeof LIMITS)[number];

/**
 * A budget of limits as they are written after `budget.`.
 *
 * @throws Refused where one is no limit, does not read, or none of them limits anything.
 */
export function parseBudget(given: ReadonlyMap<string, string>): Budget {
  const limits = new Map<Limit, string>();
  for (const [limit, value] of given) {
    if (!isLimit(limit)) {
      const known = LIMITS.map((name) => `budget.${name}`).join(", ");
      throw new Refused(`-p budget.${limit}: not a limit; one of ${known}`);
    }
    limits.set(limit, value);
  }
  const read = <T>(limit: Limit, reader: (text: string) => T): T | undefined => {
    const text = limits.get(limit);
    if (text === undefined) return undefined;
    try {
      return reader(text.trim());
    } catch (error) {
      if (error instanceof RangeError) throw new Refused(`-p budget.${limit}: ${error.message}`);
      throw error;
    }
  };
  const duration = read("duration", parseDuration);
  const cost = read("cost", usd);
  const outputTokens = read("output_tokens", tokens);
  const every = read("graceful", flag);
  const graceful: Partial<Graceful> = {
    ...optional("duration", read("graceful.duration", flag) ?? every),
    ...optional("cost", read("graceful.cost", flag) ?? every),
    ...optional("outputTokens", read("graceful.output_tokens", flag) ?? every),
  };
  if (duration === undefined && cost === undefined && outputTokens === undefined) {
    throw new Refused("-p budget.*: Value error, a budget sets at least one of duration, cost, output_tokens");
  }
  return budget({ duration, cost, outputTokens, ...(Object.keys(graceful).length > 0 ? { graceful } : {}) });
}

function isLimit(name: string): name is Limit {
  return LIMITS.some((known) => known === name);
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]: V });
}

function usd(text: string): number {
  const said = text.startsWith("$") ? text.slice(1).trim() : text;
  if (/^\+?inf(?:inity)?$/i.test(said)) return Infinity;
  const cost = /^(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(said) ? Number(said) : Number.NaN;
  if (!Number.isFinite(cost)) throw new RangeError(`'${text}' is not a valid USD cost`);
  return cost;
}

const SUFFIX_ZEROS: Readonly<Record<string, number>> = { "": 0, k: 3, m: 6 };

/** Counted in decimal digits: `1.1m` as a binary fraction times a million is not whole. */
function tokens(text: string): number {
  const parts = /^(?<whole>\d*)(?:\.(?<part>\d*))?(?<suffix>[km]?)$/i.exec(text.replaceAll("_", ""))?.groups;
  const { whole = "", part = "", suffix = "" } = parts ?? {};
  if (!parts || whole + part === "") {
    throw new RangeError(`'${text}' is not a valid token count: expected a number like 200000 or 200k`);
  }
  const zeros = SUFFIX_ZEROS[suffix.toLowerCase()] ?? 0;
  if (/[1-9]/.test(part.slice(zeros))) throw new RangeError(`'${text}' must be a whole number of tokens`);
  const count = Number(whole + part.slice(0, zeros).padEnd(zeros, "0"));
  if (!Number.isSafeInteger(count)) {
    throw new RangeError(`'${text}' is not a valid token count: expected a number like 200000 or 200k`);
  }
  return count;
}

const FLAGS: Readonly<Record<string, boolean>> = {
  "1": true,
  true: true,
  yes: true,
  on: true,
  "0": false,
  false: false,
  no: false,
  off: false,
};

function flag(text: string): boolean {
  const said = text.toLowerCase();
  const value = Object.hasOwn(FLAGS, said) ? FLAGS[said] : undefined;
  if (value === undefined) throw new RangeError(`'${text}' must be true or false`);
  return value;
}
