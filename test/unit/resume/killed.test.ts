/**
 * A run that is killed at random points and picked up each time ends as an undisturbed one; nothing that was finished is
 * done again, and nothing is left. `HMZ_KILLS` says how many times: 200 in CI's long tests, a few here.
 */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { put } from "../../support/git.ts";
import { temporaryDirectory } from "../../support/temporary.ts";

const KILLS = Number(process.env["HMZ_KILLS"] ?? 6);
const victim = fileURLToPath(new URL("victim.ts", import.meta.url));

interface Outcome {
  readonly results: readonly string[];
  readonly files: readonly string[];
}

interface Place {
  readonly root: string;
  readonly workspace: string;
  readonly home: string;
  readonly log: string;
}

function place(): Place {
  const root = temporaryDirectory("killed");
  put(root, { "workspace/a.txt": "a" });
  return { root, workspace: join(root, "workspace"), home: join(root, "home"), log: join(root, "log") };
}

function start({ root, workspace, home, log }: Place) {
  const child = spawn(process.execPath, ["--conditions=hmz-source", victim, workspace, home, log], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TMPDIR: root },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (data: Buffer) => (stdout += data.toString()));
  child.stderr.on("data", (data: Buffer) => (stderr += data.toString()));
  const ended = once(child, "close").then(([status]) => ({ status: status as number | null, stdout, stderr }));
  return { child, ended };
}

async function toItsEnd(at: Place): Promise<Outcome> {
  const { status, stdout, stderr } = await start(at).ended;
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout) as Outcome;
}

test(`killed ${KILLS} times and picked up each time`, { timeout: 600_000 }, async (t) => {
  const undisturbed = await toItsEnd(place());
  assert.equal(undisturbed.results.length, 120);

  const at = place();
  let over: Outcome | undefined;
  let lives = 0;
  for (let kills = 0; kills < KILLS && !over; kills++) {
    const { child, ended } = start(at);
    // Anywhere from before it began to well into its work.
    const late = setTimeout(() => child.kill("SIGKILL"), 150 + Math.random() * 250);
    const { status, stdout, stderr } = await ended;
    clearTimeout(late);
    lives++;
    if (status === 0) over = JSON.parse(stdout) as Outcome;
    else assert.equal(status, null, stderr);
  }
  over ??= await toItsEnd(at);
  t.diagnostic(`${lives} lives were cut short or came to the end`);
  assert.deepEqual(over, undisturbed);

  const finished = new Set<string>();
  for (const line of readFileSync(at.log, "utf8").trimEnd().split("\n")) {
    const [what, n = ""] = line.split(" ");
    if (what === "finished") finished.add(n);
    else assert.ok(!finished.has(n), `step ${n} was finished, and worked on again in one of ${lives} lives`);
  }
  assert.equal(finished.size, 120);

  const [envs = ""] = readdirSync(join(at.home, "envs"));
  assert.deepEqual(readdirSync(join(at.home, "envs")), [envs]);
  // What a run with a journal keeps is one copy and one scratch directory; no half of one, and no lock.
  assert.deepEqual(readdirSync(join(at.home, "envs", envs, "clones")), ["work"]);
  assert.deepEqual(readdirSync(join(at.home, "envs", envs, "scratch")), ["notes"]);
  const machine = readdirSync(at.root).find((name) => name.startsWith("humanize-")) ?? "";
  const going = join(at.root, machine, "going");
  assert.deepEqual(existsSync(going) ? readdirSync(going) : [], []);
  // No process names the place: pgrep ends with 1 where it finds none.
  assert.throws(() => execFileSync("pgrep", ["-f", at.root]), { status: 1 });
});
