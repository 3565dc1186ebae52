/** Every class of the tree is raised by what it is for, and crosses a process boundary as itself. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import * as flows from "hmz/flows";
import {
  type Agent,
  agent,
  env,
  type EnvNeed,
  flow,
  FlowException,
  type FlowState,
  load,
  outworlder,
  z,
} from "hmz/flows";
import { FakeAgent, type FakeAgentOptions, FakeEnv, type FakeRunOptions, runFake } from "hmz/fakes";
import { checkRelease } from "../../src/catalog/release.ts";
import { diedAtStart, diedInTurn, turnFailure } from "../../src/harness/claude/failure.ts";
import { locks } from "../../src/home/lock.ts";
import { nativeDriver } from "../../src/loop/driver.ts";
import { localMachine } from "../../src/machine/local.ts";
import { temporaryDirectory } from "../support/temporary.ts";

const REF = "errors-raised.test";

/** Runs a function as a flow of one agent that needs nothing. */
function withAgent<R>(
  body: (a: Agent) => Promise<R>,
  fake: FakeAgentOptions = {},
  options: FakeRunOptions = {},
): Promise<R> {
  const top = flow({ name: "top", agents: { a: agent() } }, async (_task, { agents }) => body(agents.a));
  return runFake(top, "", { ...options, agents: { a: new FakeAgent(fake) } });
}

/** Runs a function as a flow of one environment that is granted every need. */
function withEnv(body: (e: Everything) => Promise<unknown>) {
  const needs = ["bash", "files", "worktree", "temp_clone", "scratch", "git"] as const satisfies readonly EnvNeed[];
  const top = flow({ name: "top", envs: { e: env({ needs }) } }, async (_task, { envs }) => body(envs.e));
  return runFake(top);
}
type Everything = flows.Env<"shell" | "bash" | "files" | "worktree" | "temp_clone" | "scratch" | "rewind" | "git">;

/** Calls a flow that is declared so from one that was given one agent and one environment. */
function handed(declaration: object, options: object): Promise<unknown> {
  const callee = flow({ name: "callee", ...declaration }, async () => {}) as unknown as (
    task: string,
    options: object,
  ) => Promise<void>;
  const caller = flow(
    { name: "caller", agents: { a: agent({ permission: { online: "none" } }) }, envs: { e: env() } },
    async (_task, given) => {
      const of = { a: given.agents.a, e: given.envs.e };
      const role = (roles: Readonly<Record<string, "a" | "e">> = {}) =>
        Object.fromEntries(Object.entries(roles).map(([name, which]) => [name, of[which]]));
      const { agents, envs } = options as Record<string, Record<string, "a" | "e">>;
      return callee("", { agents: role(agents), envs: role(envs) });
    },
  );
  return runFake(caller);
}

const inFile = (): string => {
  const file = join(temporaryDirectory("raised"), "file");
  writeFileSync(file, "plain");
  return file;
};
const heard = { result: undefined, error: "" };
const said = (words: string) => async () => {
  throw turnFailure({ result: undefined, error: words });
};

interface Row {
  readonly raise: () => Promise<unknown>;
  readonly message: string | RegExp;
}
/** Why a class is raised as itself by nothing. */
type Never = "the root of them all" | "the root of a branch" | "a machine that is reached by a connection, and none is";

const Answer = z.object({ n: z.number() }).meta({ title: "Answer" });
const SPENT = `${REF}:top: its budget's`;

const RAISED: Readonly<Record<string, Row | Never>> = {
  FlowException: "the root of them all",
  FlowRuntimeError: {
    raise: () => flow({ name: "f" }, async () => {})(""),
    message: `${REF}:f: a flow is called from inside a run; start one with new Hmz().run`,
  },
  FlowNotFound: { raise: () => runFake("/no/such/flow"), message: "/no/such/flow: there is no flow at /no/such/flow" },
  FlowRefError: {
    raise: () => load(":review"),
    message: "':review' is relative to the flow asking, and no flow is asking",
  },
  FlowDefinitionError: {
    raise: async () => flow({ name: "a b" }, async () => {}),
    message: "a b: 'a b' is not a flow name: letters, digits, `_`, `.` and `-`",
  },
  FlowLoadConflict: {
    raise: () => {
      const directory = temporaryDirectory("raised");
      writeFileSync(join(directory, "package.json"), `{ "peerDependencies": { "hmz": "^99.1.0" } }`);
      return checkRelease(directory, "0.1.0");
    },
    message: /asks for hmz \^99\.1\.0, and this is hmz 0\.1\.0: /,
  },
  RequirementError: {
    raise: () => handed({}, { agents: { b: "a" } }),
    message: `${REF}:callee has no agent role 'b'; available roles are none`,
  },
  MissingRole: {
    raise: () => handed({ agents: { a: agent() } }, {}),
    message: `${REF}:callee: no agent was given for 'a'`,
  },
  CapabilityMissing: {
    raise: () => handed({ agents: { h: outworlder() } }, { agents: { h: "a" } }),
    message: `${REF}:callee: 'h' is an Outworlder, and a is an agent`,
  },
  PermissionTooNarrow: {
    raise: () => handed({ agents: { a: agent() } }, { agents: { a: "a" } }),
    message: `${REF}:callee: 'a' needs local=all, user=read, system=read, online=all, and the agent given holds local=all, user=read, system=read, online=none`,
  },
  ResourceUnmet: {
    raise: () => handed({ envs: { e: env({ cpus: 9 }) } }, { envs: { e: "e" } }),
    message: `${REF}:callee: 'e' needs 9 CPUs, and the environment given has 8`,
  },
  HarnessMismatch: {
    raise: () => handed({ agents: { a: agent({ harness: "codex" }) } }, { agents: { a: "a" } }),
    message: `${REF}:callee: 'a' is codex, and the agent given is claude`,
  },
  CapabilityNotGranted: {
    raise: () => withAgent((a) => a.run("/goal win")),
    message: "a: /goal needs goal on the role",
  },
  ParamsError: {
    raise: () => runFake(flow({ name: "top", params: z.object({ n: z.number() }) }, async () => {})),
    message: `${REF}:top: n: Invalid input: expected number, received undefined`,
  },
  FlowDepthExceeded: {
    raise: () => {
      const dives = flow({ name: "dives" }, async (task): Promise<void> => dives(task));
      return runFake(dives);
    },
    message: `${REF}:dives: flows are called 65 deep, and 64 is the most`,
  },
  BudgetExceeded: "the root of a branch",
  DurationExceeded: {
    raise: () => withAgent((a) => a.run("x"), {}, { budget: { duration: 0, graceful: false } }),
    message: `${SPENT} duration is spent`,
  },
  CostExceeded: {
    raise: () => withAgent((a) => a.run("x"), {}, { budget: { cost: 0 } }),
    message: `${SPENT} cost is spent`,
  },
  OutputTokensExceeded: {
    raise: () => withAgent((a) => a.run("x"), {}, { budget: { outputTokens: 0 } }),
    message: `${SPENT} output tokens are spent`,
  },
  FlowCancelled: {
    raise: async () => (await withAgent(async (a) => ({ kept: a }))).kept.run("x"),
    message: `${REF}:top: the run has ended`,
  },
  StateNotSerializable: {
    raise: () =>
      runFake(
        flow({ name: "top", resumable: true }, async (_task, { ctx }) => (ctx.state satisfies FlowState).set("n", 1n)),
      ),
    message: /^BigInt cannot be kept in a flow's state: /i,
  },
  OutworlderAway: {
    raise: () =>
      runFake(
        flow({ agents: { human: outworlder() } }, async (_task, { agents }) =>
          agents.human.run("?", { outputSchema: Answer }),
        ),
      ),
    message: "nobody is there to answer with a Answer, and it has fields with no default",
  },

  HarnessError: "the root of a branch",
  HarnessNotInstalled: {
    raise: async () => {
      throw diedAtStart({ code: 127, signal: null, stderr: "claude: not found" }, "");
    },
    message: "claude: claude: not found",
  },
  HarnessContended: { raise: said("database is locked"), message: "claude: database is locked" },
  HarnessThrottled: { raise: said("rate_limit"), message: "claude: rate_limit" },
  HarnessRefused: { raise: said("authentication_failed"), message: "claude: authentication_failed" },
  ModelUnavailable: { raise: said("model_not_found"), message: "claude: model_not_found" },
  HarnessMissing: {
    raise: async () => {
      throw diedAtStart({ code: 1, signal: null, stderr: "" }, "");
    },
    message: "claude: the program would not start: status 1, and not a word",
  },
  HarnessSandboxed: {
    raise: said("bwrap: No permissions to create new namespace"),
    message: "claude: bwrap: No permissions to create new namespace",
  },
  HarnessKilled: {
    raise: async () => {
      throw diedInTurn({ code: null, signal: "SIGKILL", stderr: "" }, heard);
    },
    message: "claude: the program was ended by SIGKILL in the middle of a turn",
  },
  HarnessDropped: {
    raise: () =>
      withAgent((a) => a.run("x"), {
        reply: () => {
          throw Object.assign(new Error("read ECONNRESET"), { syscall: "read" });
        },
      }),
    message: "read ECONNRESET",
  },
  HarnessUnrecoverable: {
    raise: async () => nativeDriver({ model: "scripted/a.json", effort: "ludicrous" }),
    message: /^native has no effort 'ludicrous': /,
  },
  OutputSchemaError: {
    raise: () => withAgent((a) => a.run("x", { outputSchema: Answer }), { reply: "no" }),
    message: 'the answer is not a Answer: "no"',
  },
  SessionError: {
    raise: () =>
      withAgent(async (a) => {
        const session = await a.spawn();
        await session[Symbol.asyncDispose]();
        return a.run("x", { session });
      }),
    message: "a: the session is over",
  },
  UnsupportedOperation: {
    raise: () =>
      withAgent(
        async (a) => {
          const session = await a.spawn();
          await a.run("x", { session });
          return a.run("y", { session: await a.fork(session) });
        },
        { harness: "agy" },
      ),
    message: "agy cannot fork a session",
  },

  EnvError: {
    raise: () => localMachine().exec(["no-such-program-hmz"], { cwd: "/", timeout: 0 }),
    message: "cannot run no-such-program-hmz in /: there is no such program",
  },
  EnvUnavailable: {
    raise: () => localMachine().exec(["true"], { cwd: "/no/such", timeout: 0 }),
    message: "the workdir /no/such does not exist",
  },
  EnvConnectionError: "a machine that is reached by a connection, and none is",
  EnvCommandTimeout: {
    raise: () => localMachine().exec(["sleep", "60"], { cwd: "/", timeout: 1 }),
    message: "sleep ran longer than its timeout of 1 ms in / and was killed",
  },
  EnvFileNotFound: { raise: () => withEnv((e) => e.read("no/such")), message: /no\/such/ },
  EnvPermissionDenied: {
    raise: () => localMachine().exec([inFile()], { cwd: "/", timeout: 0 }),
    message: /^cannot run .* in \/: permission denied$/,
  },
  WorktreeError: {
    raise: () => withEnv((e) => e.deriveWorktree({ ref: "nonsense" })),
    message: /git knows no ref 'nonsense'/,
  },
  TempCloneBusy: {
    raise: async () => {
      const { derive } = new FakeEnv();
      const held = () => derive.tempClone("/work", "x", { holder: {}, outlives: false });
      await held();
      return held();
    },
    message: /is held by another environment$/,
  },
  ScratchError: {
    raise: async () =>
      localMachine({ derive: { envs: inFile(), locks } }).derive?.scratch("/", "x", { holder: {}, outlives: false }),
    message: /ENOTDIR|not a directory/,
  },
  RewindError: {
    raise: () => withEnv((e) => e.rewind("nonsense")),
    message: /^could not rewind \/work: /,
  },
};

describe("each class of the tree", () => {
  const classes = Object.entries(flows)
    .filter(([name, value]) => typeof value === "function" && value.name === name)
    .filter(
      ([, value]) => value === FlowException || (value as typeof FlowException).prototype instanceof FlowException,
    )
    .map(([name]) => name);

  it("has a row", () => {
    assert.equal(classes.length, 46);
    assert.deepEqual(Object.keys(RAISED).sort(), classes.sort());
  });

  for (const [name, row] of Object.entries(RAISED)) {
    if (typeof row === "string") continue;
    it(`is raised for real, and crosses as itself: ${name}`, async () => {
      const error = await row.raise().then(
        () => assert.fail("nothing was raised"),
        (raised: unknown) => raised,
      );
      assert.ok(error instanceof FlowException, String(error));
      assert.equal(error.constructor, (flows as unknown as Record<string, unknown>)[name], String(error));
      if (typeof row.message === "string") assert.equal(error.message, row.message);
      else assert.match(error.message, row.message);
      const crossed = FlowException.from(JSON.parse(JSON.stringify(error)));
      assert.equal(crossed.constructor, error.constructor);
      assert.equal(crossed.message, error.message);
      assert.equal(crossed.code, error.code);
    });
  }
});
