import assert from "node:assert/strict";
import { test } from "node:test";
import { RecordingHost } from "../../../test/conformance/recording-host.ts";
import { play, says, USER } from "../../../test/fixtures/claude/played.ts";

const task = (subtype: string, task_id = "1", more = {}): Readonly<Record<string, unknown>> => ({
  out: { type: "system", subtype, task_id, tool_use_id: "t", ...more },
});

test("hazard 20: a result while a sub-agent is at work in the background is not the last one", async () => {
  await using played = await play([
    USER,
    says.init(),
    says.tool("t", "Agent", { prompt: "look", subagent_type: "Explore" }),
    task("task_started", "1", { is_backgrounded: true }),
    says.toolResult("t"),
    says.result("not yet"),
    { wait: 300 },
    task("task_notification", "1", { status: "completed", summary: "found" }),
    { wait: 100 },
    says.init(),
    says.text("the answer"),
    says.result("the answer"),
  ]);
  const { text, host } = await played.turn();
  assert.equal(text, "the answer");
  assert.deepEqual(host.moments, ["subagent_start Explore", "subagent_stop Explore"]);
});

test("hazard 20: a background that ends without a word of the agent ends the turn too", async () => {
  const acts = [
    USER,
    says.init(),
    task("task_started"),
    says.result("a"),
    { out: { type: "system", subtype: "background_tasks_changed", tasks: [] } },
  ];
  await using played = await play(acts, { limits: { settle: 50 } });
  assert.equal((await played.turn()).text, "a");
});

test("hazard 20: a background that never ends is not waited for for ever", async () => {
  await using played = await play([USER, says.init(), task("task_started"), says.result("a")], {
    limits: { background: 100 },
  });
  const { text, host } = await played.turn();
  assert.equal(text, "a");
  assert.ok(host.events.some((event) => event.kind === "notice"));
});

test("hazard 20: a steered line that the model has not been given keeps the turn going", async () => {
  const life = (command_uuid: string, state: string): Readonly<Record<string, unknown>> => ({
    out: { type: "command_lifecycle", command_uuid, state },
  });
  await using played = await play([
    { in: { type: "user", uuid: "line-1" } },
    life("line-1", "queued"),
    life("line-1", "started"),
    says.init(),
    says.text("the first"),
    { in: { type: "user", uuid: "line-2" } },
    life("line-2", "queued"),
    says.result("the first"),
    { wait: 100 },
    life("line-2", "started"),
    says.init(),
    says.text("the second"),
    says.result("the second"),
  ]);
  const host = new RecordingHost(played.setup);
  const turn = played.turn({ host });
  await host.heard("text");
  assert.equal(await played.session.steer?.("and this", true), true);
  const { text } = await turn;
  assert.equal(text, "the second");
  assert.ok(host.events.some((event) => event.kind === "took" && event.text === "and this"));
});
