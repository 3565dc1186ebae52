/** `hmz exec` as a process: what only a process has, signals, pipes and what a flow prints. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { execIn, howItEnded } from "../support/exec-process.ts";

const root = mkdtempSync(join(tmpdir(), "hmz-exec-"));
after(() => rmSync(root, { recursive: true }));
mkdirSync(join(root, ".hmz", "flows"), { recursive: true });
writeFileSync(
  join(root, ".hmz", "flows", "odd.ts"),
  `import { agent, flow } from "hmz/flows";
export const says = flow({ name: "says", agents: { builder: agent() } }, async (task, { agents: { builder } }) => {
  console.log("from the flow");
  console.error("to stderr");
  process.stdout.write(new TextEncoder().encode("é".repeat(3) + "\\n"));
  await builder.run(task);
});
export const waits = flow({ name: "waits" }, async (_task, { ctx }) => {
  console.log("ready");
  try {
    await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
  } finally {
    console.log("cleaned up");
  }
});
export const deaf = flow({ name: "deaf" }, async () => {
  console.log("ready");
  setInterval(() => {}, 1_000);
  await new Promise(() => {});
});
export const lingers = flow({ name: "lingers" }, async () => {
  setInterval(() => {}, 1_000);
});
export const crashes = flow({ name: "crashes" }, async (_task, { ctx }) => {
  setTimeout(() => {
    throw new RangeError("in a timer");
  }, 1);
  await new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
});
export const leaves = flow({ name: "leaves" }, async () => {
  await new Promise((resolve) => setTimeout(resolve, 5));
  process.exit(0);
});
export const leaves_turn = flow({ name: "leaves_turn", agents: { builder: agent() } }, async (task, { agents: { builder } }) => {
  void builder.run(task);
  return 1;
});
export const spins = flow({ name: "spins" }, async () => {
  console.log("spinning");
  await new Promise((resolve) => setTimeout(resolve, 5));
  for (;;);
});
export const forgets = flow({ name: "forgets" }, async () => {
  void Promise.reject(new Error("forgotten"));
  await new Promise((resolve) => setTimeout(resolve, 20));
});
`,
);
writeFileSync(join(root, "script.json"), JSON.stringify({ scenes: [{ steps: [{ say: "answer" }] }] }));

const exec = execIn(root);

test("what a flow prints: to its streams, and under --json to stderr alone", async () => {
  const argv = ["-f", "odd:says", "-a", "builder=native/scripted/script.json", "x"];
  const plain = await exec(argv).ended;
  assert.equal(plain.code, 0);
  assert.equal(plain.stdout, "from the flow\nééé\nanswer\n");
  assert.match(plain.stderr, /^to stderr\n● builder is working/);
  const json = await exec([...argv, "--json"]).ended;
  assert.equal(json.code, 0);
  assert.ok(json.stdout.split("\n").every((line) => line === "" || line.startsWith('{"at":')));
  assert.match(json.stderr, /^from the flow\nto stderr\nééé\n/);
});

for (const [signal, status] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
] as const) {
  test(`${signal}: the flow's finally blocks run, the record says stopped`, async () => {
    const run = exec(["-f", "odd:waits", "x"]);
    await run.said("ready");
    run.child.kill(signal);
    const { code, stdout, stderr } = await run.ended;
    assert.equal(code, status);
    assert.equal(stdout, "ready\ncleaned up\n");
    assert.equal(howItEnded(stderr), "stopped");
  });
}

test("under nohup a HUP is ignored, though Node took its disposition away", async () => {
  const run = exec(["-f", "odd:waits", "x"], { _: "/usr/bin/nohup" });
  await run.said("ready");
  run.child.kill("SIGHUP");
  run.child.kill("SIGTERM");
  const { code, stderr } = await run.ended;
  // Whichever of the two is heard first, a HUP that counted would be the status.
  assert.equal(code, 143);
  assert.equal(howItEnded(stderr), "stopped");
});

test("a second ^C does not wait for a flow that listens to nothing; its record is still ended", async () => {
  const run = exec(["-f", "odd:deaf", "x"]);
  await run.said("ready");
  run.child.kill("SIGINT");
  // Two of one signal at once are one.
  await run.said("hmz: stopping");
  run.child.kill("SIGINT");
  const { code, stderr } = await run.ended;
  assert.equal(code, 130);
  assert.equal(howItEnded(stderr), "stopped");
});

test("what a flow leaves open does not hold the process", async () => {
  const { code } = await exec(["-f", "odd:lingers", "x"]).ended;
  assert.equal(code, 0);
});

test("an error that nothing could catch fails the run with itself, after all was released", async () => {
  const { code, stderr } = await exec(["-f", "odd:crashes", "x"]).ended;
  assert.equal(code, 1);
  assert.match(stderr, /^hmz: RangeError: in a timer\n {4}at .*odd\.ts:\d+:\d+\)\n/);
  assert.equal(howItEnded(stderr), "failed");
});

test("a promise that the flow forgot is noted, and ends nothing", async () => {
  const { code, stderr } = await exec(["-f", "odd:forgets", "x"]).ended;
  assert.equal(code, 0);
  assert.match(stderr, /^hmz: Error: forgotten \(a promise that the flow does not wait for\)\n/);
  assert.equal(howItEnded(stderr), "done");
});

test("a reader of stdout that leaves does not end the run", async () => {
  const run = exec(["-f", "odd:says", "-a", "builder=native/scripted/script.json", "--json", "x"]);
  run.child.stdout?.destroy();
  const { code, stderr } = await run.ended;
  assert.equal(code, 0);
  assert.equal(howItEnded(stderr), "done");
});

test("a flow that ends the process: said, recorded as failed, status 1", async () => {
  const { code, stderr } = await exec(["-f", "odd:leaves", "x"]).ended;
  assert.equal(code, 1);
  assert.match(stderr, /hmz: the flow's code ended the process: process\.exit\(0\)\nrecord: /);
  assert.equal(howItEnded(stderr), "failed");
});

test("a turn that the flow forgot when it returned is noted, and ends nothing", async () => {
  const argv = ["-f", "odd:leaves_turn", "-a", "builder=native/scripted/script.json", "x"];
  const { code, stderr } = await exec(argv).ended;
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stderr, /^ +at /m);
});

test("a flow that never lets go of the process leaves a record that it began", async () => {
  const run = exec(["-f", "odd:spins", "x"]);
  await run.said("spinning");
  run.child.kill("SIGKILL");
  await run.ended;
  const epics = join(root, "home", "epics");
  const [workspace = ""] = readdirSync(epics);
  const newest = readdirSync(join(epics, workspace)).sort().at(-1) ?? "";
  assert.match(
    readFileSync(join(epics, workspace, newest, "epic.jsonl"), "utf8"),
    /"event":"began".*"ref":"odd:spins"/,
  );
});

test("a signal while a module is imported ends it at once: nothing has started", async () => {
  writeFileSync(
    join(root, "slow.ts"),
    `import { flow } from "hmz/flows";
console.log("importing");
await new Promise((resolve) => setTimeout(resolve, 4_000));
console.log("imported");
export const slow = flow({}, async () => {});
`,
  );
  const run = exec(["-f", "./slow.ts", "x"]);
  await run.said("importing");
  run.child.kill("SIGINT");
  const { code, stdout, stderr } = await run.ended;
  assert.equal(code, 130);
  assert.doesNotMatch(stdout + stderr, /imported|record:/);
});

test("output that is lost to a full disk is no success", { skip: !existsSync("/dev/full") }, async () => {
  const argv = ["-f", "odd:says", "-a", "builder=native/scripted/script.json", "x"];
  for (const json of [[], ["--json"]]) {
    const { code, stderr } = await exec([...argv, ...json], {}, "/dev/full").ended;
    assert.equal(code, 1);
    assert.match(stderr, /a part of the output could not be written/);
  }
});
