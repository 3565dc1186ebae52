/** ^C in the middle of an agent's command: nothing that it started lives on, and the record says how it ended. */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { execIn, howItEnded } from "../support/exec-process.ts";

/** An agent's command that ignores the interrupt, beside one that left its group. */
const COMMAND = "trap '' INT TERM; echo begun > begun; setsid sleep 4321 & sleep 4322";

function place(t: { after: (fn: () => void) => void }, finallyDoes: string): string {
  const root = mkdtempSync(join(tmpdir(), "hmz-hazard-9-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const steps = [{ tools: [{ tool: "shell", input: { command: COMMAND } }] }, { say: "never" }];
  writeFileSync(join(root, "script.json"), JSON.stringify({ scenes: [{ steps }] }));
  writeFileSync(
    join(root, "stuck.ts"),
    `import { agent, flow } from "hmz/flows";
export const stuck = flow({ agents: { worker: agent() } }, async (task, { agents: { worker } }) => {
  try {
    await worker.run(task);
  } finally {
    ${finallyDoes}
  }
});
`,
  );
  return root;
}

/** What runs in a directory: its path is in the environment of all that was started for it. */
function runningIn(root: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "latin1").includes(root);
    } catch {
      return false;
    }
  });
}

const ARGV = ["-f", "./stuck.ts", "-a", "worker=native/scripted/script.json", "go"];

async function begun(root: string): Promise<void> {
  while (!existsSync(join(root, "begun"))) await wait(20);
}

test(
  "^C once: finally runs, the record says stopped, nothing lives on",
  { skip: process.platform !== "linux" },
  async (t) => {
    const root = place(t, 'console.log("cleaned up");');
    const run = execIn(root)(ARGV);
    await begun(root);
    run.child.kill("SIGINT");
    const { code, stdout, stderr } = await run.ended;
    assert.equal(code, 130);
    assert.match(stdout, /cleaned up/);
    assert.equal(howItEnded(stderr), "stopped");
    assert.deepEqual(runningIn(root), []);
  },
);

test("^C twice: a flow that does not end is not waited for", { skip: process.platform !== "linux" }, async (t) => {
  const root = place(t, 'console.log("in finally"); await new Promise(() => {});');
  const run = execIn(root)(ARGV);
  await begun(root);
  run.child.kill("SIGINT");
  await run.said("in finally");
  run.child.kill("SIGINT");
  const { code, stderr } = await run.ended;
  assert.equal(code, 130);
  assert.equal(howItEnded(stderr), "stopped");
  assert.deepEqual(runningIn(root), []);
});
