/**
 * Every error that the flow API raises: `FlowException` and the 45 classes under it, in three branches.
 *
 * `FlowRuntimeError`: hmz refused something, or a budget ran out. `HarnessError`: a coding agent could not take the
 * turn. `EnvError`: an environment could not do what it was asked. An error that the flow's own code throws is never
 * converted, and a called flow's error reaches its caller as itself.
 */

/** What an error is as JSON, so that it crosses a process boundary as itself. */
export interface FlowExceptionJson {
  readonly name: string;
  readonly code: string;
  readonly message: string;
  readonly cause?: FlowExceptionJson | { readonly name: string; readonly message: string };
}

/** The root of every error that hmz raises. Takes its message, and `cause` as an option. */
export class FlowException extends Error {
  /** Stable across releases: the class's name as `HMZ_FLOW_NOT_FOUND`, or Node's own code where one names the failure. */
  readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = NODE_CODES[new.target.name] ?? codeOf(new.target.name);
  }

  toJSON(): FlowExceptionJson {
    const { cause } = this;
    return {
      name: this.name,
      code: this.code,
      message: this.message,
      ...(cause instanceof FlowException
        ? { cause: cause.toJSON() }
        : cause instanceof Error
          ? { cause: { name: cause.name, message: cause.message } }
          : {}),
    };
  }

  /** The error that `toJSON` wrote down, of its own class. A name that is not of the tree is a `FlowException`. */
  static from(json: { readonly name: string; readonly message: string; readonly cause?: unknown }): FlowException {
    const errorClass = ERRORS.get(json.name) ?? FlowException;
    return isErrorJson(json.cause)
      ? new errorClass(json.message, { cause: FlowException.from(json.cause) })
      : new errorClass(json.message);
  }
}

function isErrorJson(value: unknown): value is { name: string; message: string; cause?: unknown } {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { name?: unknown }).name === "string" &&
    typeof (value as { message?: unknown }).message === "string"
  );
}

const NODE_CODES: Readonly<Record<string, string>> = {
  DurationExceeded: "ETIMEDOUT",
  EnvCommandTimeout: "ETIMEDOUT",
  EnvFileNotFound: "ENOENT",
  EnvPermissionDenied: "EACCES",
  EnvConnectionError: "ECONNRESET",
};

const codes = new Map<string, string>();

function codeOf(className: string): string {
  let code = codes.get(className);
  if (code === undefined) {
    code = `HMZ_${className.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase()}`;
    codes.set(className, code);
  }
  return code;
}

// ── hmz refused something, or a budget ran out ──────────────────────────────────────────────────────────────────────

/** hmz refused something, or a limit ran out; also a flow called outside a run. */
export class FlowRuntimeError extends FlowException {}
/** A ref names no flow, or its repository cannot be fetched. */
export class FlowNotFound extends FlowRuntimeError {}
/** A ref is malformed, or relative with nothing to be relative to. */
export class FlowRefError extends FlowRuntimeError {}
/** A flow is written wrong, its module fails to import, or a skill that a role names is missing. */
export class FlowDefinitionError extends FlowRuntimeError {}
/** A flow's package asks for another release of hmz than the one that runs. */
export class FlowLoadConflict extends FlowRuntimeError {}
/** What was given does not meet the declaration; nothing ran. */
export class RequirementError extends FlowRuntimeError {}
/** A required role was not given. */
export class MissingRole extends RequirementError {}
/** An agent or an environment lacks what its role needs. */
export class CapabilityMissing extends RequirementError {}
/** An agent's permission does not cover its role's. */
export class PermissionTooNarrow extends RequirementError {}
/** A machine has less than the role declares. */
export class ResourceUnmet extends RequirementError {}
/** A role of one harness was given another. */
export class HarnessMismatch extends RequirementError {}
/** An operation that the role did not declare, or a grant that `derive` would widen. */
export class CapabilityNotGranted extends FlowRuntimeError {}
/** Params do not validate. */
export class ParamsError extends FlowRuntimeError {}
/** A call would be 65 deep. */
export class FlowDepthExceeded extends FlowRuntimeError {}
/** A budget of this call or of one above is spent; it stays spent. */
export class BudgetExceeded extends FlowRuntimeError {}
/** The budget's duration elapsed. */
export class DurationExceeded extends BudgetExceeded {}
/** The budget's cost is spent. */
export class CostExceeded extends BudgetExceeded {}
/** The budget's output tokens are spent. */
export class OutputTokensExceeded extends BudgetExceeded {}
/** The run, or a caller above, has ended while this call still runs. */
export class FlowCancelled extends FlowRuntimeError {}
/** A state key is not a string, or a value is not JSON. */
export class StateNotSerializable extends FlowRuntimeError {}
/** An away outworlder was asked for a schema that has a field without a default. */
export class OutworlderAway extends FlowRuntimeError {}

// ── a coding agent could not take the turn ──────────────────────────────────────────────────────────────────────────

/** A harness could not take a turn, or could not do what was asked. */
export class HarnessError extends FlowException {}
/** The CLI is not installed where its harness runs. */
export class HarnessNotInstalled extends HarnessError {}
/** Two turns reached one local store of the CLI at once, and this one lost. */
export class HarnessContended extends HarnessError {}
/** A rate limit, or a spent quota. Transient. */
export class HarnessThrottled extends HarnessError {}
/** The provider refused the credential. */
export class HarnessRefused extends HarnessError {}
/** The model is not served to this account, retired, or unknown. */
export class ModelUnavailable extends HarnessError {}
/** The CLI would not start. */
export class HarnessMissing extends HarnessError {}
/** The fence cannot be held, by the CLI or by the machine. */
export class HarnessSandboxed extends HarnessError {}
/** The CLI died in the middle of a turn. */
export class HarnessKilled extends HarnessError {}
/** The connection to the CLI or the provider broke in the middle of a turn. Transient. */
export class HarnessDropped extends HarnessError {}
/** Any other failure that no retry would change. */
export class HarnessUnrecoverable extends HarnessError {}
/** The answer is not of the output schema. */
export class OutputSchemaError extends HarnessError {}
/** A session is closed, another agent's, busy, interrupted, not forkable yet, or its prompt was blocked by a hook. */
export class SessionError extends HarnessError {}
/** The harness cannot do this at all. */
export class UnsupportedOperation extends HarnessError {}

// ── an environment could not do what it was asked ───────────────────────────────────────────────────────────────────

/** An environment could not do what it was asked. */
export class EnvError extends FlowException {}
/** The machine is gone, or the workdir does not exist. */
export class EnvUnavailable extends EnvError {}
/** The connection to a remote environment failed. */
export class EnvConnectionError extends EnvError {}
/** A command ran past its timeout and was killed. */
export class EnvCommandTimeout extends EnvError {}
/** A file to read is missing. */
export class EnvFileNotFound extends EnvError {}
/** A read, a write or a command was refused for want of permission. */
export class EnvPermissionDenied extends EnvError {}
/** A worktree could not be made. */
export class WorktreeError extends EnvError {}
/** Another environment holds the temporary clone of that id. */
export class TempCloneBusy extends EnvError {}
/** A scratch directory could not be made or removed. */
export class ScratchError extends EnvError {}
/** A snapshot, a rewind or their list failed. */
export class RewindError extends EnvError {}

type ErrorClass = new (message: string, options?: ErrorOptions) => FlowException;

const ERRORS: ReadonlyMap<string, ErrorClass> = new Map(
  [
    FlowException,
    FlowRuntimeError,
    FlowNotFound,
    FlowRefError,
    FlowDefinitionError,
    FlowLoadConflict,
    RequirementError,
    MissingRole,
    CapabilityMissing,
    PermissionTooNarrow,
    ResourceUnmet,
    HarnessMismatch,
    CapabilityNotGranted,
    ParamsError,
    FlowDepthExceeded,
    BudgetExceeded,
    DurationExceeded,
    CostExceeded,
    OutputTokensExceeded,
    FlowCancelled,
    StateNotSerializable,
    OutworlderAway,
    HarnessError,
    HarnessNotInstalled,
    HarnessContended,
    HarnessThrottled,
    HarnessRefused,
    ModelUnavailable,
    HarnessMissing,
    HarnessSandboxed,
    HarnessKilled,
    HarnessDropped,
    HarnessUnrecoverable,
    OutputSchemaError,
    SessionError,
    UnsupportedOperation,
    EnvError,
    EnvUnavailable,
    EnvConnectionError,
    EnvCommandTimeout,
    EnvFileNotFound,
    EnvPermissionDenied,
    WorktreeError,
    TempCloneBusy,
    ScratchError,
    RewindError,
  ].map((errorClass): [string, ErrorClass] => [errorClass.name, errorClass]),
);
