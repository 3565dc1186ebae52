import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as flows from "hmz/flows";
import { FlowException } from "hmz/flows";

const TREE = {
  FlowException: "Error",
  FlowRuntimeError: "FlowException",
  FlowNotFound: "FlowRuntimeError",
  FlowRefError: "FlowRuntimeError",
  FlowDefinitionError: "FlowRuntimeError",
  FlowLoadConflict: "FlowRuntimeError",
  RequirementError: "FlowRuntimeError",
  MissingRole: "RequirementError",
  CapabilityMissing: "RequirementError",
  PermissionTooNarrow: "RequirementError",
  ResourceUnmet: "RequirementError",
  HarnessMismatch: "RequirementError",
  CapabilityNotGranted: "FlowRuntimeError",
  ParamsError: "FlowRuntimeError",
  FlowDepthExceeded: "FlowRuntimeError",
  BudgetExceeded: "FlowRuntimeError",
  DurationExceeded: "BudgetExceeded",
  CostExceeded: "BudgetExceeded",
  OutputTokensExceeded: "BudgetExceeded",
  FlowCancelled: "FlowRuntimeError",
  StateNotSerializable: "FlowRuntimeError",
  OutworlderAway: "FlowRuntimeError",
  HarnessError: "FlowException",
  HarnessNotInstalled: "HarnessError",
  HarnessContended: "HarnessError",
  HarnessThrottled: "HarnessError",
  HarnessRefused: "HarnessError",
  ModelUnavailable: "HarnessError",
  HarnessMissing: "HarnessError",
  HarnessSandboxed: "HarnessError",
  HarnessKilled: "HarnessError",
  HarnessDropped: "HarnessError",
  HarnessUnrecoverable: "HarnessError",
  OutputSchemaError: "HarnessError",
  SessionError: "HarnessError",
  UnsupportedOperation: "HarnessError",
  EnvError: "FlowException",
  EnvUnavailable: "EnvError",
  EnvConnectionError: "EnvError",
  EnvCommandTimeout: "EnvError",
  EnvFileNotFound: "EnvError",
  EnvPermissionDenied: "EnvError",
  WorktreeError: "EnvError",
  TempCloneBusy: "EnvError",
  ScratchError: "EnvError",
  RewindError: "EnvError",
} as const;

const CODES: { readonly [N in keyof typeof TREE]: string } = {
  FlowException: "HMZ_FLOW_EXCEPTION",
  FlowRuntimeError: "HMZ_FLOW_RUNTIME_ERROR",
  FlowNotFound: "HMZ_FLOW_NOT_FOUND",
  FlowRefError: "HMZ_FLOW_REF_ERROR",
  FlowDefinitionError: "HMZ_FLOW_DEFINITION_ERROR",
  FlowLoadConflict: "HMZ_FLOW_LOAD_CONFLICT",
  RequirementError: "HMZ_REQUIREMENT_ERROR",
  MissingRole: "HMZ_MISSING_ROLE",
  CapabilityMissing: "HMZ_CAPABILITY_MISSING",
  PermissionTooNarrow: "HMZ_PERMISSION_TOO_NARROW",
  ResourceUnmet: "HMZ_RESOURCE_UNMET",
  HarnessMismatch: "HMZ_HARNESS_MISMATCH",
  CapabilityNotGranted: "HMZ_CAPABILITY_NOT_GRANTED",
  ParamsError: "HMZ_PARAMS_ERROR",
  FlowDepthExceeded: "HMZ_FLOW_DEPTH_EXCEEDED",
  BudgetExceeded: "HMZ_BUDGET_EXCEEDED",
  DurationExceeded: "ETIMEDOUT",
  CostExceeded: "HMZ_COST_EXCEEDED",
  OutputTokensExceeded: "HMZ_OUTPUT_TOKENS_EXCEEDED",
  FlowCancelled: "HMZ_FLOW_CANCELLED",
  StateNotSerializable: "HMZ_STATE_NOT_SERIALIZABLE",
  OutworlderAway: "HMZ_OUTWORLDER_AWAY",
  HarnessError: "HMZ_HARNESS_ERROR",
  HarnessNotInstalled: "HMZ_HARNESS_NOT_INSTALLED",
  HarnessContended: "HMZ_HARNESS_CONTENDED",
  HarnessThrottled: "HMZ_HARNESS_THROTTLED",
  HarnessRefused: "HMZ_HARNESS_REFUSED",
  ModelUnavailable: "HMZ_MODEL_UNAVAILABLE",
  HarnessMissing: "HMZ_HARNESS_MISSING",
  HarnessSandboxed: "HMZ_HARNESS_SANDBOXED",
  HarnessKilled: "HMZ_HARNESS_KILLED",
  HarnessDropped: "HMZ_HARNESS_DROPPED",
  HarnessUnrecoverable: "HMZ_HARNESS_UNRECOVERABLE",
  OutputSchemaError: "HMZ_OUTPUT_SCHEMA_ERROR",
  SessionError: "HMZ_SESSION_ERROR",
  UnsupportedOperation: "HMZ_UNSUPPORTED_OPERATION",
  EnvError: "HMZ_ENV_ERROR",
  EnvUnavailable: "HMZ_ENV_UNAVAILABLE",
  EnvConnectionError: "ECONNRESET",
  EnvCommandTimeout: "ETIMEDOUT",
  EnvFileNotFound: "ENOENT",
  EnvPermissionDenied: "EACCES",
  WorktreeError: "HMZ_WORKTREE_ERROR",
  TempCloneBusy: "HMZ_TEMP_CLONE_BUSY",
  ScratchError: "HMZ_SCRATCH_ERROR",
  RewindError: "HMZ_REWIND_ERROR",
};

type ErrorClass = new (message: string, options?: ErrorOptions) => FlowException;

function classOf(name: string): ErrorClass {
  return (flows as unknown as Record<string, ErrorClass>)[name] as ErrorClass;
}

describe("the errors", () => {
  it("are 46 names", () => {
    assert.equal(Object.keys(TREE).length, 46);
    const exported = Object.entries(flows)
      .filter(([, value]) => typeof value === "function" && (value as object) === classOf(value.name))
      .filter(([, value]) => value === FlowException || (value as ErrorClass).prototype instanceof FlowException)
      .map(([name]) => name);
    assert.deepEqual(exported.sort(), Object.keys(TREE).sort());
  });

  for (const [name, parent] of Object.entries(TREE)) {
    it(`${name} is a ${parent}, and crosses as itself`, () => {
      const errorClass = classOf(name);
      const superclass = Object.getPrototypeOf(errorClass) as { name: string };
      assert.equal(superclass.name, parent);
      const error = new errorClass("what is wrong");
      assert.ok(error instanceof FlowException && error instanceof errorClass);
      assert.equal(error.name, name);
      assert.equal(error.message, "what is wrong");
      assert.equal(Object.hasOwn(error, "cause"), false);
      assert.equal(error.code, CODES[name as keyof typeof CODES]);

      const crossed = FlowException.from(JSON.parse(JSON.stringify(error)));
      assert.equal(crossed.constructor, errorClass);
      assert.deepEqual(crossed.toJSON(), error.toJSON());
      assert.deepEqual(error.toJSON(), { name, code: error.code, message: "what is wrong" });
    });
  }

  for (const name of Object.keys(TREE)) {
    it(`${name} is caught as every class above it, and as none beside it`, () => {
      const above = new Set<string>([name]);
      for (let at: string | undefined = name; at && at !== "Error"; at = TREE[at as keyof typeof TREE]) above.add(at);
      const error = new (classOf(name))("what is wrong");
      for (const other of Object.keys(TREE)) assert.equal(error instanceof classOf(other), above.has(other), other);
    });
  }

  it("cross with the errors that caused them", () => {
    const cause = new flows.HarnessThrottled("slow down", { cause: new TypeError("fetch failed") });
    const error = new flows.HarnessDropped("gone", { cause });
    const crossed = FlowException.from(JSON.parse(JSON.stringify(error)));
    assert.ok(crossed instanceof flows.HarnessDropped);
    assert.ok(crossed.cause instanceof flows.HarnessThrottled);
    assert.equal(crossed.cause.message, "slow down");
    assert.ok(crossed.cause.cause instanceof FlowException);
    assert.equal(crossed.cause.cause.message, "fetch failed");
  });

  it("of an unknown name are a FlowException", () => {
    const crossed = FlowException.from({ name: "FromTheFuture", message: "new", cause: "no error" });
    assert.equal(crossed.constructor, FlowException);
    assert.equal(crossed.message, "new");
    assert.equal(crossed.cause, undefined);
  });

  it("made from JSON that a name of every object stands in are a FlowException", () => {
    assert.equal(FlowException.from({ name: "__proto__", message: "x" }).constructor, FlowException);
    assert.equal(FlowException.from({ name: "constructor", message: "x" }).constructor, FlowException);
  });
});
