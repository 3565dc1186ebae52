import assert from "node:assert/strict";
import { test } from "node:test";
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
import { spentQuota } from "../../engine/quota.ts";
import { diedAtStart, diedInTurn, succeeded, turnFailure } from "./failure.ts";
import { parseMessage, type WireResult } from "./protocol.ts";

function result(members: Readonly<Record<string, unknown>>): WireResult {
  const parsed = parseMessage({ type: "result", subtype: "success", is_error: true, ...members });
  if (parsed.type !== "result") assert.fail(parsed.type);
  return parsed;
}

const fail = (
  members: Readonly<Record<string, unknown>>,
  error = "",
  resetsAt = 0,
  rateLimitType = "five_hour",
): HarnessError =>
  turnFailure({ result: result(members), error, limit: resetsAt > 0 ? { resetsAt, rateLimitType } : undefined });

test("fields say what failed, whatever the words are", () => {
  const cases: readonly (readonly [Readonly<Record<string, unknown>>, string, typeof HarnessError])[] = [
    [{ api_error_status: 401, result: "429 rate limit" }, "authentication_failed", HarnessRefused],
    [{ api_error_status: 403, result: "no" }, "", HarnessRefused],
    [{ api_error_status: 403, result: "your key can only access models a, b" }, "", ModelUnavailable],
    [{ api_error_status: 404, result: "no" }, "", ModelUnavailable],
    [{ api_error_status: 429, result: "no" }, "rate_limit", HarnessThrottled],
    [{ api_error_status: 529, result: "no" }, "server_error", HarnessThrottled],
    [{ api_error_status: 500, result: "no" }, "server_error", HarnessDropped],
    [
      { api_error_status: 400, terminal_reason: "prompt_too_long", result: "no" },
      "invalid_request",
      HarnessUnrecoverable,
    ],
    [{ api_error: "connection_failed", result: "no" }, "server_error", HarnessDropped],
    [{ terminal_reason: "api_error", result: "no" }, "unknown", HarnessDropped],
    [{ api_error: "usage_limit_reached", api_error_status: 429, result: "no" }, "rate_limit", HarnessThrottled],
    [{ subtype: "error_max_turns", errors: ["429"] }, "", HarnessUnrecoverable],
    [{ result: "Credit balance is too low" }, "billing_error", HarnessThrottled],
  ];
  for (const [members, error, leaf] of cases) {
    const failure = fail(members, error);
    assert.equal(failure.constructor, leaf, JSON.stringify(members));
  }
});

test("words say it where no field does", () => {
  const cases: readonly (readonly [string, typeof HarnessError])[] = [
    ["Not logged in · Please run /login", HarnessRefused],
    ["You've hit your limit · resets 1pm (Asia/Seoul)", HarnessThrottled],
    ["insufficient credit, 403", HarnessThrottled],
    ["you are not allowed to access the model x: 403", ModelUnavailable],
    ["There's an issue with the selected model (x)", ModelUnavailable],
    ["Session ID x is already in use.", HarnessContended],
    ["connect ECONNREFUSED 127.0.0.1:9", HarnessDropped],
    ["bwrap: No permissions to create new namespace", HarnessSandboxed],
    ["JavaScript heap limit reached", HarnessKilled],
    ["429 Too Many Requests", HarnessThrottled],
    ["the model x was retired", ModelUnavailable],
    ["something else", HarnessUnrecoverable],
  ];
  for (const [words, leaf] of cases) assert.equal(fail({ result: words }).constructor, leaf, words);
});

test("a limit says when it ends", () => {
  const failure = fail({ api_error_status: 429, result: "limit" }, "rate_limit", 1_796_075_587);
  assert.match(failure.message, /2026-/);
});

test("a process that died", () => {
  const heard = { result: undefined, error: "" };
  assert.ok(diedInTurn({ code: null, signal: "SIGKILL", stderr: "" }, heard) instanceof HarnessKilled);
  assert.ok(diedInTurn({ code: 137, signal: null, stderr: "" }, heard) instanceof HarnessKilled);
  assert.ok(diedInTurn({ code: 1, signal: null, stderr: "401 unauthorized" }, heard) instanceof HarnessRefused);
  assert.ok(diedInTurn({ code: 0, signal: null, stderr: "" }, heard) instanceof HarnessDropped);
  assert.ok(diedAtStart({ code: 127, signal: null, stderr: "" }, "") instanceof HarnessNotInstalled);
  assert.ok(diedAtStart({ code: 126, signal: null, stderr: "" }, "") instanceof HarnessMissing);
  assert.ok(diedAtStart({ code: 1, signal: null, stderr: "what?" }, "") instanceof HarnessMissing);
});

test("what is no success", () => {
  const fine = { is_error: false, terminal_reason: "completed", stop_reason: "end_turn" };
  assert.equal(succeeded(result(fine)), true);
  assert.equal(succeeded(result({ ...fine, terminal_reason: undefined })), true);
  assert.equal(succeeded(result({ ...fine, is_error: true })), false);
  assert.equal(succeeded(result({ ...fine, terminal_reason: "aborted_tools" })), false);
  assert.equal(succeeded(result({ ...fine, stop_reason: "max_tokens" })), false);
  assert.equal(succeeded(result({ ...fine, stop_reason: "tool_use", structured_output: {} })), true);
});

test("a quota that is spent is told from a rate limit that passes", () => {
  const spent = (...heard: Parameters<typeof fail>) => spentQuota(fail(...heard));
  assert.equal(spent({ api_error_status: 429, result: "slow down" }, "rate_limit"), undefined);
  assert.equal(spent({ api_error_status: 529, result: "no" }, "overloaded"), undefined);
  assert.deepEqual(spent({ api_error_status: 429, result: "no" }, "rate_limit", 1_800_000_000), {
    resetsAt: 1_800_000_000_000,
    ofModel: false,
  });
  assert.equal(spent({ result: "no" }, "rate_limit", 1_800_000_000, "seven_day_opus")?.ofModel, true);
  for (const told of ["Credit balance is too low", "You've hit your limit · resets 1pm (Asia/Seoul)"]) {
    assert.deepEqual(spent({ result: told }, "rate_limit"), { ofModel: false }, told);
  }
});
