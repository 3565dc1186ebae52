import assert from "node:assert/strict";
import { test } from "node:test";
import { HarnessDropped } from "../../flows/errors.ts";
import { RecordingHost } from "../../../test/conformance/recording-host.ts";
import { play, says, USER } from "../../../test/fixtures/claude/played.ts";
import { processesWith } from "../../../test/conformance/processes.ts";

test("hazard 3: a program that stops in mid-turn is ended, and the next turn resumes the conversation", async () => {
  const acts = [USER, says.init(), says.text("so far"), says.tool("t"), says.toolResult("t"), { signal: "SIGSTOP" }];
  await using played = await play(acts, { limits: { idle: 300 } });
  await assert.rejects(played.turn(), (error) => error instanceof HarnessDropped && /not a word/.test(error.message));
  assert.deepEqual(await processesWith(played.mark), []);
  const { id } = played.session;
  await played.session.ready(played.setup);
  assert.ok((await played.starts()).at(-1)?.join(" ").includes(`--resume ${id}`));
});

test("hazard 3: while a tool runs, silence is let be for longer", async () => {
  const acts = [
    USER,
    says.init(),
    says.tool("t"),
    { wait: 600 },
    says.toolResult("t"),
    says.text("a"),
    says.result("a"),
  ];
  await using played = await play(acts, { limits: { idle: 200, tool: 60_000 } });
  assert.equal((await played.turn()).text, "a");
});

test("hazard 3: while a person is asked, nobody is impatient", async () => {
  const ask = { subtype: "can_use_tool", tool_name: "AskUserQuestion", input: { questions: [{ question: "Well?" }] } };
  const acts = [
    USER,
    says.init(),
    { out: { type: "control_request", request_id: "q", request: ask } },
    { in: { type: "control_response" } },
    says.result("a"),
  ];
  await using played = await play(acts, { limits: { idle: 200 } });
  const host = new RecordingHost(played.setup, {
    askUser: () => new Promise((resolve) => setTimeout(() => resolve("yes"), 700)),
  });
  assert.equal((await played.turn({ host })).text, "a");
});
