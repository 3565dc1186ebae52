/** What tokens cost: the table that comes with hmz, or the one that was fetched since. */

import { readFileSync } from "node:fs";
import { TOKEN_KINDS, type Tokens } from "../engine/events.ts";
import type { Prices } from "../engine/ports.ts";
import { BUNDLED_PRICES, type Price, type PriceKind } from "./prices-bundled.ts";
import { isPrice, isRecord } from "./prices-published.ts";

type PriceTable = readonly (readonly [string, Price])[];

/**
 * The prices of models.
 *
 * @param fetched Where a fetched table is kept. One that is missing or cannot be read leaves the bundled one.
 */
export function pricesOf(fetched?: string): Prices {
  // Read once it is asked for: a run of models with no price in sight reads nothing.
  let index: ReadonlyMap<string, Price> | undefined;
  const found = new Map<string, Price | undefined>();
  const lookUp = (model: string): Price | undefined => {
    if (found.has(model)) return found.get(model);
    index ??= indexOf((fetched === undefined ? undefined : fetchedPrices(fetched)) ?? Object.entries(BUNDLED_PRICES));
    const price = priceIn(index, model);
    found.set(model, price);
    return price;
  };
  return { cost: (model, tokens) => costOf(lookUp(model), tokens) };
}

/**
 * USD. Reasoning is billed as output, and a cache write without a price as input; any other kind without a price adds
 * nothing, so that the figure is a floor. `undefined` where no kind that was spent has a price.
 */
function costOf(price: Price | undefined, tokens: Tokens): number | undefined {
  if (!price) return undefined;
  let cost: number | undefined;
  for (const kind of TOKEN_KINDS) {
    const count = tokens[kind];
    const perMillion = kind === "reasoning" ? price.output : (price[kind] ?? inputFor(kind, price));
    if (!count || perMillion === undefined) continue;
    cost = (cost ?? 0) + (count * perMillion) / 1_000_000;
  }
  return cost;
}

function inputFor(kind: PriceKind, price: Price): number | undefined {
  return kind === "cache_write" ? price.input : undefined;
}

function indexOf(prices: PriceTable): ReadonlyMap<string, Price> {
  const index = new Map<string, Price>();
  // The first of two that squash alike holds, and a table's `vendor/model` is found by the model alone, too.
  for (const [id, price] of prices) {
    const name = squashed(id);
    if (!index.has(name)) index.set(name, price);
  }
  for (const [id, price] of prices) {
    const name = squashed(afterSlash(id));
    if (!index.has(name)) index.set(name, price);
  }
  return index;
}

function squashed(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

function afterSlash(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** Names that mean the same model, most exact first. Nothing is guessed: a name that is only alike has no price. */
function namesOf(model: string): readonly string[] {
  const names: string[] = [];
  const add = (name: string): void => {
    if (name !== "" && !names.includes(name)) names.push(name);
  };
  // `…-v1:0`, as Bedrock writes a revision.
  const bare = model.trim().replace(/:\d+$/, "");
  add(model.trim());
  add(bare);
  add(afterSlash(bare));
  // `us.anthropic.claude-…`: a region, and a vendor. A version's own dot (`gpt-5.1`) stands behind a digit.
  for (const name of names.slice()) {
    const once = name.replace(/^[a-z][a-z-]*\./i, "");
    add(once);
    add(once.replace(/^[a-z][a-z-]*\./i, ""));
  }
  for (const name of names.slice()) add(name.replace(/^(?:bedrock|vertex|azure|aws|gcp)[-/]/i, ""));
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at] as string;
    add(name.replace(/-(?:latest|stable)$/i, ""));
    add(name.replace(/-v\d+$/i, ""));
    add(name.replace(/[-@](?:\d{4}-\d{2}-\d{2}|20\d{6})$/, ""));
  }
  return names;
}

function priceIn(index: ReadonlyMap<string, Price>, model: string): Price | undefined {
  for (const name of namesOf(model)) {
    const price = index.get(squashed(name));
    if (price) return price;
  }
  return undefined;
}

const PRICE_KINDS: readonly PriceKind[] = ["input", "output", "cache_read", "cache_write"];

/** The table in a file of fetched prices; `undefined` where it is missing, torn, or of another shape. */
function fetchedPrices(path: string): PriceTable | undefined {
  let kept: unknown;
  try {
    kept = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
  const models = isRecord(kept) ? kept["models"] : undefined;
  if (!isRecord(models)) return undefined;
  const prices: [string, Price][] = [];
  for (const [id, model] of Object.entries(models)) {
    const perMillion = isRecord(model) ? model["per_million"] : undefined;
    if (!isRecord(perMillion)) continue;
    const price: { [K in PriceKind]?: number } = {};
    for (const kind of PRICE_KINDS) {
      const usd = perMillion[kind];
      if (isPrice(usd)) price[kind] = usd;
    }
    // One without any price must not stand before another of the same name that has one.
    if (Object.keys(price).length > 0) prices.push([id, price]);
  }
  return prices.length > 0 ? prices : undefined;
}
