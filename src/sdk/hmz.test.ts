import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { FlowNotFound, FlowRefError, load } from "../flows/index.ts";
import { Hmz, Refused } from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "hmz-sdk-"));
after(() => rmSync(root, { recursive: true }));
mkdirSync(join(root, ".hmz", "flows"), { recursive: true });
writeFileSync(
  join(root, ".hmz", "flows", "count.ts"),
  `/** Counts the letters. */
import { flow, z } from "hmz/flows";
export const count = flow({ params: z.object({ times: z.number().default(1) }) }, async (task, { params }) => {
  return task.length * params.times;
});
`,
);
writeFileSync(join(root, ".hmz", "flows", "torn.ts"), "export const torn = ;");
const hmz = new Hmz({ workspace: root, env: { HUMANIZE_HOME: join(root, "home"), TMPDIR: root } });
const budget = { cost: 1 };

test("flows: listed with what cannot be imported, loaded by ref", async () => {
  const listed = await hmz.flows.list();
  const count = listed.find(({ name }) => name === "@local/count");
  assert.equal(count?.description, "Counts the letters.");
  assert.equal(listed.find(({ name }) => name === "@local/torn")?.flow, undefined);
  assert.ok(listed.some(({ name }) => name === "chat"));
  assert.equal((await hmz.flows.load("count")).ref, "count:count");
  await assert.rejects(hmz.flows.load("nowhere"), FlowNotFound);
});

test("a flow that is named runs, its params read as on the command line", async () => {
  const run = hmz.run("count", "four", { params: { times: "3" }, budget });
  assert.equal(await run.wait(), 12);
  assert.equal(run.ref, "count:count");
  assert.equal(run.flow, "count");
});

test("a flow that will not load is refused with why", async () => {
  const torn = hmz.run("torn", "x", { budget });
  await assert.rejects(torn.wait(), (error) => error instanceof Refused && /torn/.test(error.message));
});

test("epics: what ran is listed, found and read", async () => {
  const run = hmz.run("count", "epic", { budget });
  await run.wait();
  const { epics, more } = await hmz.epics.list({ most: 1 });
  assert.equal(epics[0]?.directory, run.epic);
  assert.equal(epics[0]?.state, "done");
  assert.equal(more >= 1, true);
  assert.deepEqual(await hmz.epics.find("last"), [run.epic]);
  assert.deepEqual(await hmz.epics.find(basename(run.epic ?? "")), [run.epic]);
  assert.equal((await hmz.epics.read(run.epic ?? "")).began.task, "epic");
  assert.deepEqual((await new Hmz({ workspace: "/", home: join(root, "home") }).epics.list()).epics, []);
});

test("load outside any run finds flows once hmz is imported", async () => {
  assert.equal((await load("chat")).ref, "chat:chat");
  await assert.rejects(load(":sub"), FlowRefError);
});
