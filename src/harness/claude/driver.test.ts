import assert from "node:assert/strict";
import { test } from "node:test";
import {
  EnvUnavailable,
  HarnessDropped,
  type HarnessError,
  HarnessMissing,
  HarnessNotInstalled,
  HarnessRefused,
  HarnessThrottled,
  HarnessUnrecoverable,
  ModelUnavailable,
  SessionError,
  UnsupportedOperation,
} from "../../flows/errors.ts";
import { startChild } from "../../process/child.ts";
import { RecordingHost, totalOf } from "../../../test/conformance/recording-host.ts";
import { INTERRUPT, play, says, USER } from "../../../test/fixtures/claude/played.ts";
import { claudeDriver } from "./driver.ts";

const ONE_CALL = { input: 100, output: 20, cache_read: 30, cache_write: 10 };

test("a recorded turn, and the next one on the same process", async () => {
  await using played = await play("turns");
  const { text, host } = await played.turn();
  assert.equal(text, "one");
  assert.deepEqual(
    host.events.map((event) => [event.kind, event.text]),
    [
      ["reasoning", "hm"],
      ["text", "Working."],
      ["tool", "Bash echo hi"],
      ["tool-ends", "hi"],
      ["text", "one"],
    ],
  );
  assert.deepEqual(totalOf(host.spends), {
    "scripted-model": { input: 200, output: 40, cache_read: 60, cache_write: 20 },
  });
  assert.equal(host.names.at(-1), played.session.id);
  const next = await played.turn();
  assert.equal(next.text, "two");
  assert.deepEqual(totalOf(next.host.spends), { "scripted-model": ONE_CALL });
  assert.equal((await played.starts()).length, 1);
});

test("a recorded sub-agent", async () => {
  await using played = await play("subagent");
  const told: string[] = [];
  const { text, host } = await played.turn({
    answers: {
      subagentStart: async (name, task) => void told.push(`${name} starts: ${task.slice(0, 8)}`),
      subagentStop: async (name, said) => void told.push(`${name} stops: ${said}`),
    },
  });
  assert.equal(text, "parent done");
  assert.deepEqual(told, ["general-purpose starts: the task", "general-purpose stops: found it"]);
  const { input, output } = totalOf(host.spends)["scripted-model"] ?? {};
  assert.deepEqual([input, output], [400, 80]);
});

test("a recorded call of a flow's tool", async () => {
  await using played = await play("flow-tool");
  const inputs: unknown[] = [];
  const echo = {
    name: "echo",
    about: "",
    schema: {},
    call: async (input: unknown) => {
      inputs.push(input);
      return { text: "heard", failed: false };
    },
  };
  const { text, host } = await played.turn({ setup: { tools: [echo] } });
  assert.equal(text, "called");
  assert.deepEqual(inputs, [{ word: "one" }]);
  assert.equal(host.events.find((event) => event.kind === "tool")?.text, 'echo {"word":"one"}');
});

test("a recorded question", async () => {
  await using played = await play("ask-user");
  const { text, host } = await played.turn({ answers: { askUser: async () => "Blue" } });
  assert.equal(text, "asked");
  assert.deepEqual(host.moments, ["ask_user Which colour?"]);
});

test("a recorded interrupt in the middle of a tool", async () => {
  await using played = await play("interrupt");
  const host = new RecordingHost(played.setup);
  const taken = played.turn({ host });
  const reason = new Error("enough");
  void host.heard("tool").then(() => host.abort(reason));
  await assert.rejects(taken, (error) => error === reason);
  assert.deepEqual(totalOf(host.spends), { "scripted-model": ONE_CALL });
});

const FAILURES: readonly (readonly [string, typeof HarnessError])[] = [
  ["http-401", HarnessRefused],
  ["http-404", ModelUnavailable],
  ["http-429", HarnessThrottled],
  ["http-500", HarnessDropped],
  ["drop-before", HarnessDropped],
];
for (const [recording, leaf] of FAILURES) {
  test(`a recorded failure: ${recording}`, async () => {
    await using played = await play(recording);
    await assert.rejects(played.turn(), (error) => error instanceof leaf && error.message.startsWith("claude: "));
  });
}

test("a recorded failure, then a turn that works", async () => {
  await using played = await play("http-401");
  await assert.rejects(played.turn(), HarnessRefused);
  assert.equal((await played.turn()).text, "now");
});

test("a recorded rate limit that passed is told", async () => {
  await using played = await play("http-429-passing");
  const { text, host } = await played.turn();
  assert.equal(text, "through");
  assert.ok(host.events.some((event) => event.kind === "notice" && event.text.includes("429")));
});

test("a hook that throws ends the turn with what it threw", async () => {
  await using played = await play([
    USER,
    says.init(),
    says.tool("agent", "Agent", { prompt: "look", subagent_type: "Explore" }),
    INTERRUPT,
    says.result("", { subtype: "error_during_execution", is_error: true, terminal_reason: "aborted_tools" }),
  ]);
  const thrown = new Error("thrown by a hook");
  const turn = played.turn({ answers: { subagentStart: () => Promise.reject(thrown) } });
  await assert.rejects(turn, (error) => error === thrown);
});

test("an interrupt that brings no result ends the process, and the conversation is kept", async () => {
  const acts = [USER, says.init(), says.text("so far"), says.tool("t"), INTERRUPT];
  await using played = await play(acts, { limits: { interrupt: 50 } });
  const host = new RecordingHost(played.setup);
  const turn = played.turn({ host });
  void host.heard("tool").then(() => host.abort(new Error("enough")));
  await assert.rejects(turn, /enough/);
  const id = played.session.id;
  await played.session.ready(played.setup);
  const starts = await played.starts();
  assert.equal(starts.length, 2);
  assert.ok(starts[1]?.join(" ").includes(`--resume ${id}`));
});

test("each attempt to open has an id of its own, until the model has answered", async () => {
  await using played = await play([USER, says.init(), { stderr: "API Error: 401 no" }, { exit: 1 }]);
  await assert.rejects(played.turn(), HarnessRefused);
  await assert.rejects(played.turn(), HarnessRefused);
  const ids = (await played.starts()).map((argv) => argv[argv.indexOf("--session-id") + 1]);
  assert.equal(new Set(ids).size, 2);
});

test("the id is the one that the program tells", async () => {
  const other = "99999999-9999-4999-8999-999999999999";
  await using played = await play([USER, says.init(other), says.text("a"), says.result("a")]);
  const { host } = await played.turn();
  assert.equal(played.session.id, other);
  assert.deepEqual(host.names, [other]);
});

test("it is started anew, on the same conversation, for another workdir, hook table, tools or schema", async () => {
  await using played = await play([USER, says.init(), says.text("a"), says.result("a")]);
  const tool = { name: "t", about: "", schema: {}, call: async () => ({ text: "", failed: false }) };
  const { setup } = played;
  const changes = [{}, { schema: { type: "object" } }, { tools: [tool] }, { hung: new Set(["pre_tool_use" as const]) }];
  for (const change of changes) {
    await played.turn({ setup: change });
    // The same again: nothing is started.
    await played.session.ready({ ...setup, ...change });
  }
  const starts = await played.starts();
  assert.equal(starts.length, changes.length);
  for (const argv of starts.slice(1)) assert.ok(argv.includes("--resume"));
});

test("a fork is cut from its parent's conversation", async () => {
  await using played = await play([USER, says.init(), says.text("a"), says.result("a")]);
  await assert.rejects(played.open({ forkOf: played.session }).ready(played.setup), SessionError);
  await played.turn();
  await played.open({ forkOf: played.session }).ready(played.setup);
  const last = (await played.starts()).at(-1)?.join(" ") ?? "";
  assert.match(last, new RegExp(`--resume ${played.session.id} --fork-session --session-id \\S+`));
});

test("a program that would not start says why", async () => {
  await using refused = await play([{ stderr: "error: unknown option\n" }, { exit: 1 }]);
  await assert.rejects(refused.session.ready(refused.setup), (error) => {
    return error instanceof HarnessMissing && error.message.includes("unknown option");
  });
  await using lost = await play([{ stderr: "No conversation found with session ID: x" }, { exit: 1 }]);
  await assert.rejects(lost.session.ready(lost.setup), HarnessUnrecoverable);
  await using absent = await play([], { program: "/nowhere/claude" });
  await assert.rejects(absent.session.ready(absent.setup), HarnessNotInstalled);
});

test("a workdir that is not there, and a machine that is not this one", async () => {
  await using played = await play([]);
  const { machine } = played.setup.place;
  const nowhere = { ...played.setup, place: { machine, workdir: "/nowhere/at/all" } };
  await assert.rejects(played.session.ready(nowhere), EnvUnavailable);
  const remote = { ...played.setup, place: { machine: { ...machine, backend: "ssh" as const }, workdir: "/" } };
  await assert.rejects(played.session.ready(remote), UnsupportedOperation);
});

test("a policy that forbids running without approvals is told once, and requests are answered yes", async () => {
  const mode = { in: { type: "control_request", request: { subtype: "set_permission_mode" } } };
  await using played = await play([
    USER,
    says.init(undefined, { permissionMode: "default" }),
    mode,
    {
      out: {
        type: "control_request",
        request_id: "q",
        request: { subtype: "can_use_tool", tool_name: "Bash", input: {} },
      },
    },
    { in: { type: "control_response" } },
    says.text("a"),
    says.result("a"),
  ]);
  const { host } = await played.turn();
  assert.equal(host.events.filter((event) => event.kind === "notice" && event.text.includes("policy")).length, 1);
});

test("lines that are no messages are notices, and the turn goes on", async () => {
  await using played = await play([
    USER,
    { raw: "npm notice new version" },
    says.init(),
    says.text("a"),
    { raw: "{broken" },
    says.result("a"),
  ]);
  const { text, host } = await played.turn();
  assert.equal(text, "a");
  assert.deepEqual(
    host.events.filter((event) => event.kind === "notice").map((event) => event.text),
    ["npm notice new version", "{broken"],
  );
});

test("a message of a kind that is not known is let pass", async () => {
  await using played = await play([
    USER,
    { out: { type: "telepathy", subtype: 7 } },
    { out: { type: "system", subtype: "mood" } },
    { out: [1, 2] },
    says.init(),
    says.result("a"),
  ]);
  assert.equal((await played.turn()).text, "a");
});

test("what the program spends between turns, waking by itself, is told with the next one", async () => {
  const spent = (inputTokens: number): Readonly<Record<string, unknown>> => ({
    model_usage_since_last_result: { m: { inputTokens } },
  });
  const line = (command_uuid: string, state: string): Readonly<Record<string, unknown>> => ({
    out: { type: "command_lifecycle", command_uuid, state },
  });
  await using played = await play([
    { in: { type: "user", uuid: "line-1" } },
    line("line-1", "started"),
    says.init(),
    says.text("a"),
    says.result("a", spent(1)),
    says.init(),
    says.result("woke", spent(10)),
    { in: { type: "user", uuid: "line-2" } },
    says.result("woke again", spent(1000)),
    line("line-2", "started"),
    says.init(),
    says.result("b", spent(100)),
  ]);
  const first = await played.turn();
  const second = await played.turn();
  assert.deepEqual([first.text, second.text], ["a", "b"]);
  assert.deepEqual(totalOf([...first.host.spends, ...second.host.spends]), { m: { input: 1111 } });
});

test("a fence starts the program, and is told for which permission and place", async () => {
  const asked: unknown[] = [];
  await using played = await play([USER, says.init(), says.result("a")], {
    start: (options, { permission, place }) => {
      asked.push([permission.local, place.workdir === options.cwd]);
      return startChild(options);
    },
  });
  await played.turn();
  assert.deepEqual(asked, [["all", true]]);
});

test("what the driver serves is the harness's row", () => {
  const driver = claudeDriver({ model: "m", effort: "", provider: "" });
  assert.equal(driver.harness, "claude");
  assert.ok(driver.serves.has("steering") && driver.serves.has("tools") && !driver.serves.has("model_callbacks"));
  assert.equal(driver.forks, "anywhere");
});
