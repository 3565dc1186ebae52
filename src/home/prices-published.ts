/** A published list of prices, read from what its source sends: somebody else's file, of which nothing is believed. */

import type { Price, PriceKind } from "./prices-bundled.ts";

export interface PublishedPrices {
  /** The day that the prices held on, as the list writes it; `""` where it does not say. */
  readonly date: string;
  readonly models: readonly PublishedModel[];
}

export interface PublishedModel {
  readonly id: string;
  readonly name: string;
  readonly provider: string;
  /** USD per million tokens. */
  readonly price: Price;
}

const CATEGORIES: ReadonlyMap<unknown, PriceKind> = new Map([
  ["input_tokens", "input"],
  ["output_tokens", "output"],
  ["cache_read_tokens", "cache_read"],
  ["cache_write_tokens", "cache_write"],
]);

/**
 * The newest prices of a list: `{ currency: "USD", unit: "… 1M …", versions: [{ date, models: [{ id, name, provider,
 * pricingItems: [{ category, price }] }] }] }`. Of several items of one category the first holds, which is the standard
 * tier. A price that is no finite number of at least 0, and a model without any price, are left out.
 *
 * @throws Error of one sentence where it is no such list, or prices nothing.
 */
export function publishedPrices(text: string): PublishedPrices {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  if (!isRecord(list) || list["currency"] !== "USD" || !String(list["unit"]).includes("1M")) {
    throw new Error("it is not a list of prices in USD per 1M tokens");
  }
  const newest = recordsOf(list["versions"]).reduce<Record<string, unknown> | undefined>(
    (best, version) => (best === undefined || dateOf(version) > dateOf(best) ? version : best),
    undefined,
  );
  const models = recordsOf(newest?.["models"]).flatMap(modelOf);
  if (newest === undefined || models.length === 0) throw new Error("it prices no model");
  return { date: dateOf(newest), models };
}

function modelOf(model: Record<string, unknown>): readonly PublishedModel[] {
  const { id, name, provider } = model;
  if (typeof id !== "string" || id === "") return [];
  const price: { [K in PriceKind]?: number } = {};
  for (const { category, price: usd } of recordsOf(model["pricingItems"])) {
    const kind = CATEGORIES.get(category);
    if (kind !== undefined && price[kind] === undefined && isPrice(usd)) price[kind] = usd;
  }
  if (Object.keys(price).length === 0) return [];
  return [{ id, name: textOf(name), provider: textOf(provider), price }];
}

/** Whether a value is a price: `NaN`, a negative number or text would let a run spend without end. */
export function isPrice(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recordsOf(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function dateOf({ date }: Record<string, unknown>): string {
  return textOf(date);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
