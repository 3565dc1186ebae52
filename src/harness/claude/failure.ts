/** Which error a failed turn is: by what the CLI says in fields first, by what it says in words where it has none. */

import {
  HarnessContended,
  HarnessDropped,
  type HarnessError,
  HarnessKilled,
  HarnessMissing,
  HarnessNotInstalled,
  HarnessRefused,
  HarnessSandboxed,
  HarnessThrottled,
  HarnessUnrecoverable,
  ModelUnavailable,
} from "../../flows/errors.ts";
import { quotaSpent, type SpentQuota } from "../../engine/quota.ts";
import type { WireResult } from "./protocol.ts";

type Leaf = new (message: string, options?: ErrorOptions) => HarnessError;

/** How a process ended, and the end of what it said on standard error. */
export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

/** What was heard in a turn that failed. */
export interface Heard {
  readonly result?: WireResult | undefined;
  /** `error` of the last message that stands for a failed model call. */
  readonly error: string;
  /** The limit of the account that the CLI said was reached; `undefined` where it said none. */
  readonly limit?: WireLimit | undefined;
}

/** `resetsAt` in Unix seconds, 0 where it is not known. */
interface WireLimit {
  readonly resetsAt: number;
  /** Such as `five_hour`, `seven_day`, `seven_day_opus`. */
  readonly rateLimitType: string;
}

const BY_ERROR: Readonly<Record<string, Leaf>> = {
  authentication_failed: HarnessRefused,
  oauth_org_not_allowed: HarnessRefused,
  billing_error: HarnessThrottled,
  rate_limit: HarnessThrottled,
  overloaded: HarnessThrottled,
  overloaded_error: HarnessThrottled,
  model_not_found: ModelUnavailable,
};

/** In order: the first that matches holds. A quota is told by 429s, and a model that is not served by 403s. */
const BY_WORDS: readonly (readonly [RegExp, Leaf])[] = [
  [/database is locked|sqlite_busy|session id \S+ is already in use|lock(?:file)? .*held/i, HarnessContended],
  [/quota|insufficient (?:balance|credit)|credit balance is too low|billing/i, HarnessThrottled],
  [
    /\b429\b|\b529\b|rate.?limit|resource.?exhausted|overloaded|usage limit|hit your .*limit|too quickly/i,
    HarnessThrottled,
  ],
  [/bwrap:|cannot create (?:sandbox|namespace)|user namespaces? .*disabled/i, HarnessSandboxed],
  [/not allowed to access (?:the )?model|can only access models|not supported when using/i, ModelUnavailable],
  [
    /\b401\b|\b403\b|unauthorized|invalid (?:x-)?api.?key|permission denied|not logged in|please run \/login|expired|revoked|forbidden|authentication/i,
    HarnessRefused,
  ],
  [
    /\b404\b|model not found|(?:unknown|unsupported|invalid) model|selected model|model .*(?:not exist|deprecated|retired)/i,
    ModelUnavailable,
  ],
  [/out of memory|heap limit|sig(?:kill|segv|abrt|bus)\b/i, HarnessKilled],
  [
    /econn(?:reset|refused|aborted)|unable to connect|enotfound|etimedout|eai_again|epipe|connection (?:reset|refused|dropped|error|closed)|broken pipe|fetch failed|socket hang up|\b50[0234]\b|timed? ?out|terminated/i,
    HarnessDropped,
  ],
];

/** Whether a result says that its turn was done. */
export function succeeded(result: WireResult): boolean {
  if (result.is_error || result.subtype !== "success") return false;
  if (result.terminal_reason !== "" && result.terminal_reason !== "completed") return false;
  return result.structured_output !== undefined || !UNFINISHED.has(result.stop_reason);
}

/** Whether a result is of a step that was cut, by an interrupt or by a word that had to be heard at once. */
export function aborted(result: WireResult): boolean {
  return result.terminal_reason.startsWith("aborted");
}

const UNFINISHED = new Set(["max_tokens", "model_context_window_exceeded", "pause_turn", "tool_deferred", "tool_use"]);

/** The error of a turn that ended with a result that is no success. */
export function turnFailure(heard: Heard): HarnessError {
  const { result, error, limit } = heard;
  const said = (result?.result || result?.errors.join("; ") || error || result?.subtype || "no reason given").trim();
  const leaf = byFields(result, error) ?? byWords(said) ?? HarnessUnrecoverable;
  if (leaf === HarnessUnrecoverable && result !== undefined && said === "") return new leaf(message(result.subtype));
  if (leaf !== HarnessThrottled) return new leaf(message(said));
  const resetsAt = limit?.resetsAt ?? 0;
  const throttled = new HarnessThrottled(message(resetsAt > 0 ? `${said} (${resetTime(resetsAt)})` : said));
  return isSpent(heard, said) ? quotaSpent(throttled, quotaOf(limit)) : throttled;
}

/** Whether what throttles is a quota that is spent: a rate limit and an overload pass in moments. */
function isSpent({ result, error, limit }: Heard, said: string): boolean {
  if (limit !== undefined || error === "billing_error" || result?.api_error === "usage_limit_reached") return true;
  return result?.api_error_status === 402 || SPENT.test(said);
}

const SPENT = /quota|insufficient (?:balance|credit)|credit balance is too low|usage limit|hit your .*limit/i;

function quotaOf(limit: WireLimit | undefined): SpentQuota {
  return {
    ...(limit !== undefined && limit.resetsAt > 0 ? { resetsAt: limit.resetsAt * 1_000 } : {}),
    ofModel: /opus|sonnet|haiku/.test(limit?.rateLimitType ?? ""),
  };
}

function byFields(result: WireResult | undefined, error: string): Leaf | undefined {
  if (result?.api_error === "usage_limit_reached") return HarnessThrottled;
  const named = BY_ERROR[error];
  if (named !== undefined) return named;
  if (result === undefined) return undefined;
  const status = result.api_error_status;
  if (status !== undefined) {
    if (status === 429 || status === 529 || status === 402) return HarnessThrottled;
    if (status === 404) return ModelUnavailable;
    if (status === 401 || status === 403) return byWords(result.result) ?? HarnessRefused;
    if (status === 408 || status >= 500) return HarnessDropped;
    return HarnessUnrecoverable;
  }
  if (result.api_error === "connection_failed") return HarnessDropped;
  if (result.subtype === "error_max_turns" || result.subtype === "error_max_budget_usd") return HarnessUnrecoverable;
  if (result.terminal_reason === "prompt_too_long" || UNFINISHED.has(result.stop_reason)) return HarnessUnrecoverable;
  if (result.terminal_reason === "api_error") return byWords(result.result) ?? HarnessDropped;
  return undefined;
}

function byWords(said: string): Leaf | undefined {
  return BY_WORDS.find(([words]) => words.test(said))?.[1];
}

/** The error of a process that ended in the middle of a turn. */
export function diedInTurn(ended: Ended, heard: Heard): HarnessError {
  if (killed(ended))
    return new HarnessKilled(message(`the program was ended by ${howKilled(ended)} in the middle of a turn`));
  const said = lastLines(ended.stderr);
  const leaf = byFields(heard.result, heard.error) ?? byWords(said);
  if (leaf !== undefined) return new leaf(message(said || heard.error));
  return new HarnessDropped(
    message(
      `the program ended in the middle of a turn, with status ${ended.code ?? 0}${said === "" ? "" : `: ${said}`}`,
    ),
  );
}

const LOST = /no conversation found/i;

/** Whether the program knew no conversation of the id that it was to carry on. */
export function isLost(error: unknown): boolean {
  return error instanceof HarnessUnrecoverable && LOST.test(error.message);
}

/** The error of a process that ended before it could take a turn. */
export function diedAtStart(ended: Ended, said: string): HarnessError {
  const words = lastLines(ended.stderr) || said;
  if (ended.code === 127) return new HarnessNotInstalled(message(words || "the program was not found"));
  if (ended.code === 126) return new HarnessMissing(message(words || "the program may not be run"));
  if (killed(ended)) return new HarnessKilled(message(`the program was ended by ${howKilled(ended)} as it started`));
  if (LOST.test(words)) return new HarnessUnrecoverable(message(words));
  const leaf = byWords(words) ?? HarnessMissing;
  return new leaf(message(`the program would not start: ${words || `status ${ended.code ?? 0}, and not a word`}`));
}

function killed({ code, signal }: Ended): boolean {
  return signal !== null || (code !== null && code > 128 && code <= 192);
}

function howKilled({ code, signal }: Ended): string {
  return signal ?? `signal ${(code ?? 128) - 128}`;
}

function message(said: string): string {
  return `claude: ${said}`;
}

/** The end of what was said, on one line; the CLI's remarks on a model's name are none of it. */
function lastLines(stderr: string): string {
  return stderr
    .slice(-4096)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("[claude-code:unrecognized_model]"))
    .join(" ")
    .slice(-600);
}

function resetTime(seconds: number): string {
  return `resets at ${new Date(seconds * 1000).toISOString()}`;
}
