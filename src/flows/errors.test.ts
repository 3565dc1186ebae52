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

const CODES: Readonly<Record<string, string>> = {
  DurationExceeded: "ETIMEDOUT",
  EnvCommandTimeout: "ETIMEDOUT",
  EnvFileNotFound: "ENOENT",
  EnvPermissionDenied: "EACCES",
  EnvConnectionError: "ECONNRESET",
  FlowNotFound: "HMZ_FLOW_NOT_FOUND",
  FlowException: "HMZ_FLOW_EXCEPTION",
  OutputSchemaError: "HMZ_OUTPUT_SCHEMA_ERROR",
  TempCloneBusy: "HMZ_TEMP_CLONE_BUSY",
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
      if (CODES[name]) assert.equal(error.code, CODES[name]);
      assert.match(error.code, /^(HMZ(_[A-Z]+)+|E[A-Z]+)$/);

      const crossed = FlowException.from(JSON.parse(JSON.stringify(error)));
      assert.equal(crossed.constructor, errorClass);
      assert.deepEqual(crossed.toJSON(), error.toJSON());
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
