/** What a failed model call is to a flow: the leaf of the error tree that says whether trying again can help. */

import { APICallError, LoadAPIKeyError, NoOutputGeneratedError, RetryError, StreamProviderError } from "ai";
import {
  FlowException,
  HarnessDropped,
  HarnessRefused,
  HarnessThrottled,
  HarnessUnrecoverable,
  ModelUnavailable,
} from "../flows/errors.ts";
import { quotaSpent } from "../engine/quota.ts";

const LONGEST = 600;

/**
 * The error of the tree for whatever a model call threw.
 *
 * @param options.model As the agent's spec names it.
 * @param options.secrets Taken out of what the provider said: some echo the key that they refuse.
 */
export function failureOf(
  error: unknown,
  options: { readonly model: string; readonly secrets: readonly string[] },
): FlowException {
  if (error instanceof FlowException) return error;
  if (RetryError.isInstance(error)) return failureOf(error.lastError, options);
  const { model } = options;
  const cause = { cause: error };
  const said = clean(messageOf(error), options.secrets);
  if (LoadAPIKeyError.isInstance(error)) return new HarnessRefused(`${model}: ${said}`, cause);
  if (NoOutputGeneratedError.isInstance(error)) {
    return new HarnessDropped(`${model} broke off its answer before it had said anything; try again`, cause);
  }
  const answered = APICallError.isInstance(error) || StreamProviderError.isInstance(error);
  const status = answered ? error.statusCode : undefined;
  // An answer that began well and broke off is an API error too, with its good status.
  if (isConnection(error) && (status === undefined || status < 400)) {
    return new HarnessDropped(`the connection to ${model} broke: ${said}; try again`, cause);
  }
  if (!answered) return new HarnessUnrecoverable(`${model} could not take the turn: ${said}`, cause);
  const kind = StreamProviderError.isInstance(error) ? `${error.type ?? ""} ${String(error.code ?? "")}` : "";
  const body = APICallError.isInstance(error) ? (error.responseBody ?? "") : "";
  const signs = `${kind} ${said} ${body.slice(0, 4096)}`;
  const what = status === undefined ? said : `${said} (HTTP ${status})`;
  switch (classOf(status, signs)) {
    case "spent":
      return quotaSpent(
        new HarnessThrottled(`the quota for ${model} is spent: ${what}; add credit or use another account`, cause),
      );
    case "throttled":
      return new HarnessThrottled(`${model} takes no more requests at the moment: ${what}; try again later`, cause);
    case "long":
      return new HarnessUnrecoverable(
        `the conversation is longer than ${model} takes: ${what}; carry on in a new session`,
        cause,
      );
    case "unavailable":
      return new ModelUnavailable(
        `${model} is not served to this account: ${what}; check the model's name and the provider's base URL`,
        cause,
      );
    case "refused":
      return new HarnessRefused(
        `the provider of ${model} refused the credential: ${what}; set a key that it takes`,
        cause,
      );
    case "dropped":
      return new HarnessDropped(`the provider of ${model} failed: ${what}; try again`, cause);
    case "other":
      return new HarnessUnrecoverable(`the provider of ${model} refused the request: ${what}`, cause);
  }
}

type FailureClass = "spent" | "throttled" | "long" | "unavailable" | "refused" | "dropped" | "other";

function classOf(status: number | undefined, signs: string): FailureClass {
  if (
    status === 402 ||
    /insufficient_quota|insufficient balance|credit balance|exceeded your current quota/i.test(signs)
  ) {
    return "spent";
  }
  if (status === 429 || status === 529 || /overloaded|rate.?limit|resource.?exhausted/i.test(signs)) return "throttled";
  const asked = status === undefined || (status >= 400 && status < 500);
  if (
    status === 413 ||
    (asked &&
      /context_length|context (length|window)|prompt is too long|too many (input )?tokens|input.{0,20}too long/i.test(
        signs,
      ))
  ) {
    return "long";
  }
  if (
    status === 404 ||
    (asked &&
      /model_not_found|model\b.{0,80}(not found|not exist|not supported|unknown|deprecated|retired|no access)/i.test(
        signs,
      ))
  ) {
    return "unavailable";
  }
  if (status === 401 || status === 403 || /authentication_error|permission_error|invalid.?api.?key/i.test(signs)) {
    return "refused";
  }
  // A stream that reports an error without a status began well: the request was fine, the provider was not.
  if (status === undefined || status === 408 || status === 409 || status >= 500) return "dropped";
  return "other";
}

/** Whether an error, or one that it was caused by, is of the connection. */
function isConnection(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = String((at as { code?: unknown }).code ?? "");
    if (/^(ECONN|EPIPE|ENOTFOUND|EAI_|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|UND_ERR)/.test(code)) return true;
    if (at.name === "TimeoutError") return true;
    if (at instanceof TypeError && /^(terminated|fetch failed|network)/i.test(at.message)) return true;
  }
  return false;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === "string" ? error : (JSON.stringify(error) ?? String(error));
  const reason =
    error.cause instanceof Error && !error.message.includes(error.cause.message) ? error.cause.message : "";
  return [error.message, reason].filter((part) => part !== "").join(": ");
}

function clean(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) {
    if (secret.length >= 4) shown = shown.replaceAll(secret, "…");
  }
  shown = shown.replace(/\s+/g, " ").trim();
  return shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown;
}
