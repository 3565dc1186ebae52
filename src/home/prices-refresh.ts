/** The kept table of prices, brought up to date from its source. */

import { readFileSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { locked } from "./lock.ts";
import { machineDir } from "./paths.ts";
import { isRecord, type PublishedPrices, publishedPrices } from "./prices-published.ts";
import { writeWhole } from "./write-whole.ts";

const PUBLIC_SOURCE = "https://openllmprices.com/data/prices.json";

const FRESH_MS = 24 * 3_600_000;

/** Between two attempts on one machine: a source that is down is not asked by every run. */
const ATTEMPTS_MS = 3_600_000;

const BIGGEST = 64 * 1024 * 1024;

export interface Limits {
  /** For the whole of an answer. */
  readonly wholeMs: number;
  /** For its first word. A name server or a host that is silent must not hold a run up for the whole time. */
  readonly firstMs: number;
  readonly bytes: number;
}

const LIMITS: Limits = { wholeMs: 20_000, firstMs: 5_000, bytes: BIGGEST };

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the kept table lies; `undefined` where HUMANIZE_PRICES turns it off, or this machine has no safe place for it. */
export function keptPrices(env: Environment): string | undefined {
  return sourceOf(env) === undefined ? undefined : placeOf(env)?.table;
}

/**
 * Brings the kept table up to date where it is missing, older than a day, or from another source. Asks the source at
 * most once an hour. A failure leaves what was kept.
 *
 * @returns a sentence for people where it could not be done; `""` otherwise. Never rejects.
 */
export async function refreshPrices(env: Environment, limits: Limits = LIMITS): Promise<string> {
  const source = sourceOf(env);
  if (source === undefined) return "";
  const place = placeOf(env);
  if (place === undefined) return "";
  try {
    if (isFresh(source, place)) return "";
    // Runs that start at once wait for the one of them that asks.
    return await locked(place.lock, () => asked(source, place, limits), limits.wholeMs + 1_000);
  } catch (error) {
    return noted(error);
  }
}

// ── the source ──────────────────────────────────────────────────────────────────────────────────────────────────────

interface Source {
  /** As the kept table names it. */
  readonly name: string;
  /** The path of a file; `undefined` for a URL. */
  readonly file: string | undefined;
}

function sourceOf({ HUMANIZE_PRICES: given }: Environment): Source | undefined {
  const name = given === undefined ? PUBLIC_SOURCE : given.trim();
  if (/^(?:|0|off|no|none|empty)$/i.test(name)) return undefined;
  if (/^https?:\/\//i.test(name)) return { name, file: undefined };
  const file = /^file:\/\//i.test(name) ? fileURLToPath(name) : resolve(name);
  return { name: file, file };
}

// ── what is kept ────────────────────────────────────────────────────────────────────────────────────────────────────

interface Kept {
  readonly source: string;
  readonly etag: string;
  /** Unix seconds. */
  readonly fetched: number;
}

interface Place {
  readonly table: string;
  /** Names the source that was last asked; its time is when. */
  readonly attempt: string;
  readonly lock: string;
}

function placeOf(env: Environment): Place | undefined {
  try {
    const directory = machineDir(env);
    return {
      table: join(directory, "prices.json"),
      attempt: join(directory, "prices.attempt"),
      lock: join(directory, ".prices.lock"),
    };
  } catch {
    return undefined;
  }
}

function isFresh(source: Source, { table }: Place): boolean {
  // A file costs nothing to look at, and whoever edits it means the next run.
  if (source.file !== undefined) return false;
  const kept = keptIn(table);
  return kept?.source === source.name && isWithin(kept.fetched * 1_000, FRESH_MS);
}

function wasAsked(source: Source, { attempt }: Place): boolean {
  if (source.file !== undefined) return false;
  try {
    return isWithin(statSync(attempt).mtimeMs, ATTEMPTS_MS) && readFileSync(attempt, "utf8") === source.name;
  } catch {
    return false;
  }
}

/** Whether an instant lies within the last `ms`. One in the future is of a clock that was wrong. */
function isWithin(instant: number, ms: number): boolean {
  const age = Date.now() - instant;
  return age > -60_000 && age < ms;
}

function keptIn(table: string): (Kept & { readonly whole: Record<string, unknown> }) | undefined {
  let whole: unknown;
  try {
    whole = JSON.parse(readFileSync(table, "utf8"));
  } catch {
    return undefined;
  }
  if (!isRecord(whole) || !isRecord(whole["models"])) return undefined;
  const { source, etag, fetched } = whole;
  if (typeof source !== "string" || typeof fetched !== "number") return undefined;
  return { source, etag: typeof etag === "string" ? etag : "", fetched, whole };
}

// ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function asked(source: Source, place: Place, limits: Limits): Promise<string> {
  if (isFresh(source, place) || wasAsked(source, place)) return "";
  const kept = keptIn(place.table);
  // What another source said is no answer to whether this one's has changed.
  const same = kept?.source === source.name ? kept : undefined;
  if (source.file === undefined) writeWhole(place.attempt, source.name);
  const answer = source.file === undefined ? await fetched(source.name, same?.etag, limits) : await read(source, same);
  const now = Date.now() / 1_000;
  if (answer === "unchanged") {
    if (same && source.file === undefined) writeWhole(place.table, JSON.stringify({ ...same.whole, fetched: now }));
    return "";
  }
  const { date, models } = publishedPrices(answer.text);
  writeWhole(
    place.table,
    JSON.stringify({ source: source.name, etag: answer.etag, fetched: now, date, models: byId(models) }),
  );
  return "";
}

function byId(models: PublishedPrices["models"]): object {
  return Object.fromEntries(
    models.map(({ id, name, provider, price }) => [id, { provider, name, per_million: price }]),
  );
}

interface Fetched {
  readonly text: string;
  readonly etag: string;
}

async function read(source: Source, same: Kept | undefined): Promise<Fetched | "unchanged"> {
  const { size, mtimeMs } = await stat(source.name);
  const etag = `${mtimeMs}-${size}`;
  if (etag === same?.etag) return "unchanged";
  if (size > BIGGEST) throw new Error(`it is larger than ${BIGGEST} bytes`);
  return { text: await readFile(source.name, "utf8"), etag };
}

async function fetched(url: string, etag: string | undefined, limits: Limits): Promise<Fetched | "unchanged"> {
  const { wholeMs, firstMs, bytes } = limits;
  const first = new AbortController();
  const waiting = setTimeout(() => first.abort(new Error(`it said nothing for ${firstMs / 1_000} s`)), firstMs);
  try {
    const response = await fetch(url, {
      headers: { accept: "application/json", ...(etag ? { "if-none-match": etag } : {}) },
      signal: AbortSignal.any([first.signal, AbortSignal.timeout(wholeMs)]),
    });
    clearTimeout(waiting);
    if (response.status === 304 && etag) return "unchanged";
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`it answered with status ${response.status}`);
    }
    return { text: await bounded(response, bytes), etag: response.headers.get("etag") ?? "" };
  } finally {
    clearTimeout(waiting);
  }
}

/** The text of an answer, as it is unpacked: a small answer may unpack to a huge one. */
async function bounded({ body }: Response, bytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.byteLength;
    if (length > bytes) throw new Error(`it is larger than ${bytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Says nothing of the source's URL, which may hold a key. */
function noted(error: unknown): string {
  return `the prices of models could not be brought up to date, and those at hand hold: ${whyNot(error as Error)}`;
}

function whyNot(error: NodeJS.ErrnoException): string {
  const { cause } = error;
  if (error.name === "TimeoutError") return "it took too long";
  if (error.code !== undefined && typeof error.code === "string") return error.code;
  if (cause instanceof Error) return (cause as NodeJS.ErrnoException).code ?? cause.message;
  // Of an address that it cannot ask, `fetch` says the whole.
  return error instanceof TypeError ? "the address in HUMANIZE_PRICES cannot be asked" : error.message;
}
