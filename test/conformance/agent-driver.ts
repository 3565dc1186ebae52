/**
 * What every agent driver must do, whichever harness it drives: the suite over the ports `AgentDriver` and
 * `SessionDriver`. The agent is told what to do by a script inside its prompt, which `Subject.prompt` writes the way
 * that this driver's agent follows: a scripted model behind a real program, a scripted loop, a fake's reply.
 */

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Tokens } from "../../src/engine/events.ts";
import type {
  AgentDriver,
  KeptConversation,
  OfferedTool,
  Opening,
  Place,
  SessionDriver,
  TurnSetup,
} from "../../src/engine/ports.ts";
import { SessionError, UnsupportedOperation } from "../../src/flows/errors.ts";
import { HARNESSES } from "../../src/flows/harness.ts";
import { permission } from "../../src/flows/permission.ts";
import { temporaryDirectory } from "../support/temporary.ts";
import { RecordingHost, totalOf, type HostAnswers } from "./recording-host.ts";

/** One thing that the agent does. Steps are done in order, each a model call of its own; the turn ends after the last. */
export type ScriptStep = ScriptAct & {
  /** What the model call costs, where the driver lets a script say so (`spend`). */
  readonly tokens?: Tokens;
};

export type ScriptAct =
  /** Says a text. As the last step it is the answer. */
  | { readonly say: string }
  /** Gives the object that the turn's schema asks for, by the harness's own way; the last step. */
  | { readonly give: Readonly<Record<string, unknown>> }
  /** Runs a shell command in the workdir, through the agent's own tool. */
  | { readonly shell: string }
  /** Writes a file of the workdir, through the agent's own tool. */
  | { readonly write: string; readonly content: string }
  /** Calls a tool that the flow offers. */
  | { readonly call: string; readonly input: Readonly<Record<string, unknown>> }
  /** The model does not answer until the turn is interrupted. */
  | { readonly hang: true };

export type ScriptVerb = "say" | "give" | "shell" | "write" | "call" | "hang" | "spend";

/** A driver under test, and how its agent is told what to do. */
export interface Subject {
  readonly driver: AgentDriver;
  /** An empty directory. */
  readonly place: Place;
  /** Another one on the same machine. */
  readonly elsewhere: Place;
  /** The steps that this driver's agent can be made to do. Tests of the rest are skipped. */
  readonly can: ReadonlySet<ScriptVerb>;
  /** A prompt that makes the agent do the steps. `words` stand in it as they are. */
  prompt(steps: readonly ScriptStep[], words?: string): string;
  /** Another driver of the same agent, as a later run makes one. Closed by `close`. */
  again(): AgentDriver;
  /** What the agent had said before, as its model was told with the last turn: that of `session`. */
  remembered(session: SessionDriver): readonly string[];
  /** Releases what `make` took, the driver closed. */
  close(): Promise<void>;
}

/** Defines the suite. `make` is called once, before its first test. */
export function agentDriverConformance(name: string, make: () => Promise<Subject>): void {
  describe(`${name}: an agent driver`, () => {
    let subject: Subject;
    before(async () => {
      subject = await make();
    });
    after(async () => {
      await subject.close();
    });

    const open = (more: Partial<Opening> = {}): SessionDriver =>
      subject.driver.open({ role: "worker", permission: permission(), skills: [], callbacks: {}, ...more });
    const setupOf = (more: Partial<TurnSetup> = {}): TurnSetup => ({
      place: subject.place,
      hung: new Set(),
      tools: [],
      clis: [],
      schema: undefined,
      ...more,
    });
    const take = async (
      session: SessionDriver,
      steps: readonly ScriptStep[],
      { setup = setupOf(), answers = {} }: { setup?: TurnSetup; answers?: HostAnswers } = {},
    ): Promise<{ text: string; structured?: unknown; host: RecordingHost }> => {
      const host = new RecordingHost(setup, answers);
      await session.ready(setup);
      const answer = await session.take(subject.prompt(steps), host);
      return { ...answer, host };
    };
    /** A test that needs the agent to be able to do some things. */
    const needing = (verbs: readonly ScriptVerb[], title: string, run: () => Promise<void>): void =>
      void test(title, async (context) => {
        const missing = verbs.filter((verb) => !subject.can.has(verb));
        if (missing.length > 0) return context.skip(`cannot be made to ${missing.join(", ")}`);
        await run();
      });

    needing(["say"], "an opened session that took no turn has no id, and closes", async () => {
      const session = open();
      assert.equal(session.id, "");
      await session.close();
      await session.close();
    });

    needing(["say"], "takes a turn: the text is the answer, and the harness names its conversation", async () => {
      const session = open();
      const { text, host } = await take(session, [{ say: "hello there" }]);
      assert.equal(text, "hello there");
      assert.notEqual(session.id, "");
      assert.equal(host.names.at(-1), session.id);
      const said = host.events.filter((event) => event.kind === "text").map((event) => event.text);
      assert.equal(said.join(""), "hello there");
      await session.close();
    });

    needing(["say"], "takes turn after turn in one conversation", async () => {
      const session = open();
      const first = await take(session, [{ say: "one" }]);
      const id = session.id;
      const second = await take(session, [{ say: "two" }]);
      assert.deepEqual([first.text, second.text], ["one", "two"]);
      assert.equal(session.id, id);
      await session.close();
    });

    needing(["say", "spend"], "what is spent is told as differences", async () => {
      const session = open();
      const hosts: RecordingHost[] = [];
      for (const output of [7, 11, 13]) {
        hosts.push((await take(session, [{ say: "paid", tokens: { input: 100, output } }])).host);
      }
      assert.deepEqual(
        hosts.map((host) => Object.values(totalOf(host.spends))),
        [7, 11, 13].map((output) => [{ input: 100, output }]),
      );
      await session.close();
    });

    needing(["say", "write"], "the agent's tools work in the workdir, and are told in one line", async () => {
      const session = open();
      const { text, host } = await take(session, [{ write: "made.txt", content: "by the agent\n" }, { say: "done" }]);
      assert.equal(text, "done");
      assert.equal(await readFile(join(subject.place.workdir, "made.txt"), "utf8"), "by the agent\n");
      const tools = host.events.filter((event) => event.kind === "tool");
      assert.equal(tools.length, 1);
      for (const tool of tools) {
        assert.notEqual(tool.tool, "");
        assert.ok(tool.text.length <= 120, tool.text);
        assert.doesNotMatch(tool.text, /[\r\n]/);
      }
      await session.close();
    });

    needing(["say", "shell"], "a turn in another workdir works there", async () => {
      const session = open();
      await take(session, [{ say: "here" }]);
      const id = session.id;
      const setup = setupOf({ place: subject.elsewhere });
      const { text } = await take(session, [{ shell: "pwd > where.txt" }, { say: "there" }], { setup });
      assert.equal(text, "there");
      assert.equal(session.id, id);
      const where = await readFile(join(subject.elsewhere.workdir, "where.txt"), "utf8");
      assert.equal(where.trim().split("/").at(-1), subject.elsewhere.workdir.split("/").at(-1));
      await session.close();
    });

    needing(["say", "hang"], "an aborted turn rejects with the signal's reason, and the session goes on", async () => {
      const session = open();
      await take(session, [{ say: "before" }]);
      const id = session.id;
      const setup = setupOf();
      const host = new RecordingHost(setup);
      await session.ready(setup);
      const reason = new Error("enough");
      const turn = session.take(subject.prompt([{ hang: true }, { say: "never" }]), host);
      setTimeout(() => host.abort(reason), 300);
      await assert.rejects(turn, (error) => error === reason);
      const { text } = await take(session, [{ say: "after" }]);
      assert.equal(text, "after");
      assert.equal(session.id, id);
      await session.close();
    });

    needing(["say"], "a turn whose signal was aborted before does nothing", async () => {
      const session = open();
      const reason = new Error("too late");
      const setup = setupOf();
      await session.ready(setup);
      const host = new RecordingHost(setup, { signal: AbortSignal.abort(reason) });
      await assert.rejects(session.take(subject.prompt([{ say: "no" }]), host), (error) => error === reason);
      assert.deepEqual(host.spends, []);
      await session.close();
    });

    needing(["say"], "two sessions take their turns at once", async () => {
      const sessions = [open(), open()];
      const answers = await Promise.all(sessions.map((session, at) => take(session, [{ say: `answer ${at}` }])));
      assert.deepEqual(
        answers.map(({ text }) => text),
        ["answer 0", "answer 1"],
      );
      assert.notEqual(sessions[0]?.id, sessions[1]?.id);
      await Promise.all(sessions.map((session) => session.close()));
    });

    needing(["say"], "a closed session takes no turn", async () => {
      const session = open();
      await take(session, [{ say: "one" }]);
      await Promise.all([session.close(), session.close()]);
      await assert.rejects(take(session, [{ say: "two" }]));
    });

    needing(["say", "hang"], "closing ends the turn under way", async () => {
      const session = open();
      const setup = setupOf();
      await session.ready(setup);
      const turn = session.take(subject.prompt([{ hang: true }]), new RecordingHost(setup));
      const rejected = assert.rejects(turn);
      await session.close();
      await rejected;
    });

    needing(["say"], "a fork carries on from its parent, which stays as it is", async () => {
      const { forks } = subject.driver;
      if (forks === "never") return;
      const parent = open();
      await take(parent, [{ say: "root" }]);
      const id = parent.id;
      const fork = open({ forkOf: parent });
      const setup = setupOf(forks === "anywhere" ? { place: subject.elsewhere } : {});
      const { text } = await take(fork, [{ say: "branch" }], { setup });
      assert.equal(text, "branch");
      assert.notEqual(fork.id, id);
      assert.equal((await take(parent, [{ say: "trunk" }])).text, "trunk");
      assert.equal(parent.id, id);
      await Promise.all([parent.close(), fork.close()]);
    });

    /** Copies a conversation as it stands into a directory of its own. */
    const kept = (session: SessionDriver): KeptConversation => {
      const at = temporaryDirectory("kept");
      session.keep?.(at);
      assert.notDeepEqual(readdirSync(at), []);
      return { id: session.id, at };
    };
    const carrying = (carries: KeptConversation, driver = subject.driver): SessionDriver =>
      driver.open({ role: "worker", permission: permission(), skills: [], callbacks: {}, carries });
    const keeps = (): boolean => subject.driver.forks !== "never";

    needing(["say"], "a kept conversation is carried on from where it stood, as often as one likes", async () => {
      if (!keeps()) return;
      const { forks } = subject.driver;
      const original = open();
      await take(original, [{ say: "first" }]);
      await take(original, [{ say: "second" }]);
      const copy = kept(original);
      const before = filesOf(copy.at);
      const { id } = original;
      await take(original, [{ say: "gone on" }]);

      const one = carrying(copy);
      assert.equal(one.id, "");
      assert.equal((await take(one, [{ say: "branch" }])).text, "branch");
      assert.deepEqual(subject.remembered(one), ["first", "second"]);
      assert.notEqual(one.id, "");
      assert.notEqual(one.id, id);
      await take(one, [{ say: "leaf" }]);
      assert.deepEqual(subject.remembered(one), ["first", "second", "branch"]);

      // The original is over and another run carries it on, where the harness can, elsewhere.
      await original.close();
      const other = carrying(copy, subject.again());
      const setup = setupOf(forks === "anywhere" ? { place: subject.elsewhere } : {});
      assert.equal((await take(other, [{ say: "another" }], { setup })).text, "another");
      assert.deepEqual(subject.remembered(other), ["first", "second"]);
      assert.deepEqual(filesOf(copy.at), before);
      await Promise.all([one.close(), other.close()]);
    });

    needing(["say"], "what carries a kept conversation on is kept in its turn", async () => {
      if (!keeps()) return;
      const original = open();
      await take(original, [{ say: "root" }]);
      const branch = carrying(kept(original));
      await take(branch, [{ say: "branch" }]);
      const leaf = carrying(kept(branch));
      await take(leaf, [{ say: "leaf" }]);
      assert.deepEqual(subject.remembered(leaf), ["root", "branch"]);
      await Promise.all([original.close(), branch.close(), leaf.close()]);
    });

    needing(["say", "hang"], "a conversation that was interrupted is kept as it stands then", async () => {
      if (!keeps()) return;
      const original = open();
      await take(original, [{ say: "before" }]);
      const setup = setupOf();
      const host = new RecordingHost(setup);
      await original.ready(setup);
      const reason = new Error("enough");
      const turn = original.take(subject.prompt([{ hang: true }]), host);
      setTimeout(() => host.abort(reason), 300);
      await assert.rejects(turn, (error) => error === reason);
      const carried = carrying(kept(original));
      assert.equal((await take(carried, [{ say: "after" }])).text, "after");
      assert.equal(subject.remembered(carried)[0], "before");
      await Promise.all([original.close(), carried.close()]);
    });

    needing(["say", "spend"], "a carried conversation pays its own turns alone", async () => {
      if (!keeps()) return;
      const original = open();
      await take(original, [{ say: "dear", tokens: { input: 1000, output: 500 } }]);
      const carried = carrying(kept(original));
      const hosts: RecordingHost[] = [];
      for (const output of [7, 11]) {
        hosts.push((await take(carried, [{ say: "paid", tokens: { input: 100, output } }])).host);
      }
      assert.deepEqual(
        hosts.map((host) => Object.values(totalOf(host.spends))),
        [7, 11].map((output) => [{ input: 100, output }]),
      );
      await Promise.all([original.close(), carried.close()]);
    });

    needing(["say"], "a copy that is gone, of another conversation or no conversation at all is refused", async () => {
      if (!keeps()) return;
      const { harness } = subject.driver;
      const original = open();
      await take(original, [{ say: "root" }]);
      const copy = kept(original);
      const refused = async (carries: KeptConversation): Promise<void> => {
        const session = carrying(carries);
        await assert.rejects(session.ready(setupOf()), (error) => {
          assert.ok(error instanceof SessionError, String(error));
          const lost = `the session cannot be forked: ${harness}: no conversation ${carries.id} under ${carries.at}`;
          assert.equal(error.message, lost);
          return true;
        });
        await session.close();
      };
      await refused({ id: copy.id, at: join(copy.at, "deleted") });
      await refused({ id: "00000000-0000-4000-8000-000000000000", at: copy.at });
      for (const garbage of ["", "garbage\n\0\0\0\n", '{"id":7}\n', "[]\n"]) {
        for (const file of Object.keys(filesOf(copy.at))) writeFileSync(join(copy.at, file), garbage);
        await refused(copy);
      }
      rmSync(copy.at, { recursive: true });
      mkdirSync(copy.at);
      await refused(copy);
      await original.close();
    });

    needing(["say"], "a harness that does not fork keeps no conversation and carries none on", async () => {
      if (keeps()) return;
      const session = open();
      await take(session, [{ say: "once" }]);
      const refusal = (error: unknown): boolean =>
        error instanceof UnsupportedOperation && error.message === `${subject.driver.harness} cannot fork a session`;
      const at = temporaryDirectory("kept");
      assert.throws(() => session.keep?.(at), refusal);
      assert.deepEqual(readdirSync(at), []);
      await assert.rejects(carrying({ id: session.id, at }).ready(setupOf()), refusal);
      await session.close();
    });

    needing(["say"], "a session that took no turn is not kept", async () => {
      const session = open();
      const at = temporaryDirectory("kept");
      assert.throws(() => session.keep?.(at));
      await session.ready(setupOf());
      assert.throws(() => session.keep?.(at));
      assert.deepEqual(readdirSync(at), []);
      await session.close();
    });

    needing(["give"], "a turn with a schema gives its object", async () => {
      const session = open();
      const schema = {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: { count: { type: "number" } },
        required: ["count"],
        additionalProperties: false,
      };
      const setup = setupOf({ schema });
      const { structured } = await take(session, [{ give: { count: 3 } }], { setup });
      assert.deepEqual(structured, { count: 3 });
      await session.close();
    });

    const echo = (seen: unknown[], answer: (input: unknown) => { text: string; failed: boolean }): OfferedTool => ({
      name: "echo",
      about: "says what it is told",
      schema: { type: "object", properties: { word: { type: "string" } }, required: ["word"] },
      call: async (input) => {
        seen.push(input);
        return answer(input);
      },
    });

    needing(
      ["say", "call"],
      "a tool of the flow is called with its input, and one that failed fails no turn",
      async () => {
        if (!subject.driver.serves.has("tools")) return;
        const session = open();
        const seen: unknown[] = [];
        const tools = [echo(seen, () => ({ text: "heard", failed: seen.length > 1 }))];
        const steps: ScriptStep[] = [
          { call: "echo", input: { word: "one" } },
          { call: "echo", input: { word: "two" } },
          { say: "called" },
        ];
        const { text } = await take(session, steps, { setup: setupOf({ tools }) });
        assert.equal(text, "called");
        assert.deepEqual(seen, [{ word: "one" }, { word: "two" }]);
        await session.close();
      },
    );

    needing(["say", "call"], "a steered line reaches the turn under way", async () => {
      if (!subject.driver.serves.has("steering")) return;
      const session = open();
      const took: (boolean | undefined)[] = [];
      const line = subject.prompt([{ say: "as steered" }], "change of plan.");
      const tools = [
        {
          ...echo([], () => ({ text: "ok", failed: false })),
          call: async () => {
            took.push(await session.steer?.(line, true));
            return { text: "ok", failed: false };
          },
        },
      ];
      const steps: ScriptStep[] = [{ call: "echo", input: { word: "now" } }, { say: "as asked" }];
      const { text, host } = await take(session, steps, { setup: setupOf({ tools }) });
      assert.deepEqual(took, [true]);
      assert.equal(text, "as steered");
      assert.ok(host.events.some((event) => event.kind === "took" && event.text === line));
      await session.close();
    });

    needing(["say", "hang"], "a line that is not queued ends the step under way", async () => {
      if (!subject.driver.serves.has("steering")) return;
      const session = open();
      const setup = setupOf();
      await session.ready(setup);
      const turn = session.take(subject.prompt([{ hang: true }]), new RecordingHost(setup));
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert.equal(await session.steer?.(subject.prompt([{ say: "at once" }]), false), true);
      assert.equal((await turn).text, "at once");
      assert.equal((await take(session, [{ say: "next" }])).text, "next");
      await session.close();
    });

    needing(["say"], "nothing is steered between turns", async () => {
      if (!subject.driver.serves.has("steering")) return;
      const session = open();
      await take(session, [{ say: "over" }]);
      assert.equal(await session.steer?.("late", true), false);
      await session.close();
    });

    needing(["say", "shell"], "a tool that is refused before it runs does not run", async () => {
      if (!HARNESSES[subject.driver.harness].gatesTools) return;
      const session = open();
      const setup = setupOf({ hung: new Set(["pre_tool_use"]) });
      const { text, host } = await take(session, [{ shell: "touch refused.txt" }, { say: "went on" }], {
        setup,
        answers: { preToolUse: async () => ({ allow: false, reason: "not that" }) },
      });
      assert.equal(text, "went on");
      assert.equal(host.moments.filter((moment) => moment.startsWith("pre_tool_use")).length, 1);
      await assert.rejects(readFile(join(subject.place.workdir, "refused.txt")));
      await session.close();
    });
  });
}

/** Every file under a directory, by its path there. */
function filesOf(directory: string): Readonly<Record<string, string>> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return Object.fromEntries(files.map((file) => [file.slice(directory.length + 1), readFileSync(file, "utf8")]));
}
