/**
 * What a conversation spends, as differences. The CLI tells it twice: each model call's own tokens while it goes, and
 * the totals by model with each result. The first are booked as they rise, so that a budget can end a turn in its
 * middle; the second only add what the first left out, sub-agents and side calls included.
 */

import type { Tokens } from "../../engine/events.ts";
import type { Spend } from "../../engine/ports.ts";
import type { WireModelUsage, WireResult, WireUsage } from "./protocol.ts";

// Thinking is part of `output_tokens`: told apart as well, it would be paid twice.
const KINDS = ["input", "output", "cache_read", "cache_write"] as const;
type Kind = (typeof KINDS)[number];
type Counts = Readonly<Record<Kind, number>>;

const NOTHING: Counts = { input: 0, output: 0, cache_read: 0, cache_write: 0 };

export class Meter {
  /** The tokens of each model call since the last result, by its message's id. */
  readonly #calls = new Map<string, Counts>();
  /** What was booked since the last result, by model. */
  #booked = new Map<string, Counts>();
  /** The running totals of the last result, by model; absent until the process has told some. */
  #totals: Readonly<Record<string, WireModelUsage>> | undefined;
  /** Whether the conversation had spent anything before this process. */
  #carried = false;

  /** A model call's tokens so far. A message is told once per content block, each time with the same id. */
  rise(id: string, model: string, usage: WireUsage): Spend | undefined {
    if (id === "" || model === "" || model === "<synthetic>") return undefined;
    const seen = this.#calls.get(id) ?? NOTHING;
    const now = greatest(seen, fromUsage(usage));
    const risen = minus(now, seen);
    if (isNothing(risen)) return undefined;
    this.#calls.set(id, now);
    this.#booked.set(model, plus(this.#booked.get(model) ?? NOTHING, risen));
    return { model, tokens: tokensOf(risen) };
  }

  /** What a result adds to what was booked since the one before it. */
  settle(result: Pick<WireResult, "modelUsage" | "model_usage_since_last_result">): readonly Spend[] {
    const spent = new Map<string, Counts>();
    for (const [model, usage] of Object.entries(result.model_usage_since_last_result ?? this.#sinceTotals(result))) {
      spent.set(model, fromModelUsage(usage));
    }
    this.#totals = result.modelUsage;
    this.#carried = true;
    const booked = this.#booked;
    this.#booked = new Map();
    this.#calls.clear();
    return shortfall(spent, booked);
  }

  /** A new process took the conversation up. Releases differ in whether its totals go on or start anew. */
  restarted(): void {
    this.#booked = new Map();
    this.#calls.clear();
    this.#carried = true;
  }

  /** The difference of the running totals, for a release that does not tell it itself. */
  #sinceTotals({ modelUsage }: Pick<WireResult, "modelUsage">): Readonly<Record<string, WireModelUsage>> {
    const last = this.#totals;
    if (last === undefined) {
      // The first totals of a conversation that was taken up hold what others paid: only what was seen going is ours.
      return this.#carried ? {} : modelUsage;
    }
    const since: Record<string, WireModelUsage> = {};
    for (const [model, now] of Object.entries(modelUsage)) {
      const before = last[model];
      // A total below the last one was reset by a new process.
      since[model] = before === undefined || now.outputTokens < before.outputTokens ? now : difference(now, before);
    }
    return since;
  }

  /** A fork: the totals that its process tells first hold its parent's. */
  carriesOn(): void {
    this.#carried = true;
  }
}

/**
 * What was spent beyond what was booked. The CLI's totals may name a model otherwise than its answers do (an alias, a
 * region before it), so what was booked under a name that the totals lack is taken off those that were not booked.
 */
function shortfall(spent: ReadonlyMap<string, Counts>, booked: ReadonlyMap<string, Counts>): readonly Spend[] {
  let astray = NOTHING;
  for (const [model, counts] of booked) if (!spent.has(model)) astray = plus(astray, counts);
  const missing: Spend[] = [];
  for (const [model, counts] of spent) {
    const known = booked.get(model);
    let left = minus(counts, known ?? NOTHING);
    if (known === undefined) {
      const rest = minus(left, astray);
      astray = minus(astray, left);
      left = rest;
    }
    if (!isNothing(left)) missing.push({ model, tokens: tokensOf(left) });
  }
  return missing;
}

function fromUsage(usage: WireUsage): Counts {
  return {
    input: usage.input_tokens,
    output: usage.output_tokens,
    cache_read: usage.cache_read_input_tokens,
    cache_write: usage.cache_creation_input_tokens,
  };
}

function fromModelUsage(usage: WireModelUsage): Counts {
  return {
    input: usage.inputTokens,
    output: usage.outputTokens,
    cache_read: usage.cacheReadInputTokens,
    cache_write: usage.cacheCreationInputTokens,
  };
}

function difference(now: WireModelUsage, before: WireModelUsage): WireModelUsage {
  return {
    inputTokens: Math.max(0, now.inputTokens - before.inputTokens),
    outputTokens: Math.max(0, now.outputTokens - before.outputTokens),
    cacheReadInputTokens: Math.max(0, now.cacheReadInputTokens - before.cacheReadInputTokens),
    cacheCreationInputTokens: Math.max(0, now.cacheCreationInputTokens - before.cacheCreationInputTokens),
  };
}

function each(make: (kind: Kind) => number): Counts {
  return {
    input: make("input"),
    output: make("output"),
    cache_read: make("cache_read"),
    cache_write: make("cache_write"),
  };
}

function plus(a: Counts, b: Counts): Counts {
  return each((kind) => a[kind] + b[kind]);
}

/** Never below nothing. */
function minus(a: Counts, b: Counts): Counts {
  return each((kind) => Math.max(0, a[kind] - b[kind]));
}

function greatest(a: Counts, b: Counts): Counts {
  return each((kind) => Math.max(a[kind], b[kind]));
}

function isNothing(counts: Counts): boolean {
  return KINDS.every((kind) => counts[kind] === 0);
}

function tokensOf(counts: Counts): Tokens {
  return { ...counts };
}
