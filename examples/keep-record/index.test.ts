import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Hmz } from "hmz";
import { FakeAgent } from "hmz/fakes";
import { agent, flow } from "hmz/flows";
import { runAndKeep } from "./index.ts";

const workspace = mkdtempSync(join(tmpdir(), "hmz-keep-record-"));
after(() => rmSync(workspace, { recursive: true }));
const hmz = new Hmz({ workspace, home: join(workspace, "home") });
const budget = { cost: 1 };

const once = flow({ agents: { builder: agent() } }, async (task, { agents: { builder } }) => builder.run(task));
const fails = flow({ agents: { builder: agent() } }, async (task, { agents: { builder } }) => {
  await builder.run(task);
  throw new Error("it does not build");
});

test("a run that is done keeps its result; one that failed, its record and its trace", async () => {
  const done = await runAndKeep(hmz, once, "build it", { agents: { builder: new FakeAgent() }, budget });
  assert.deepEqual(done, { result: "ok" });
  const kept = await runAndKeep(hmz, fails, "build it", { agents: { builder: new FakeAgent() }, budget });
  assert.match(String(kept.error), /it does not build/);
  assert.ok(kept.archive !== undefined && existsSync(kept.archive));
  assert.equal(kept.trace, join(workspace, "failed.trace.json"));
});

test("a run that was refused has no record", async () => {
  await assert.rejects(runAndKeep(hmz, once, "build it", { budget }), /needs an agent for 'builder'/);
});
