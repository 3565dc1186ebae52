import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { flow, localEnv } from "../flows/index.ts";
import { CAN_PROFILE } from "../process/profile.ts";
import { Hmz } from "./hmz.ts";
import type { RunOptions } from "./prepare.ts";
import { prepareProfile } from "./profile.ts";

const options = { skip: CAN_PROFILE ? false : "this system does not show its processes" };
const root = temporaryDirectory("profile");
const hmz = new Hmz({
  workspace: root,
  home: join(root, "home"),
  env: { ...process.env, TMPDIR: root, A_KEY: "value-of-a-key" },
});

/** Starts one program of its own, and one in its environment. */
const works = flow({ envs: { here: localEnv({ needs: ["shell"] }) } }, async (_task, { envs: { here } }) => {
  const own = spawn("sh", ["-c", "sleep 0.51 # --api-key hunter2222 value-of-a-key"], { stdio: "ignore" });
  await Promise.all([once(own, "exit"), here.exec(["sh", "-c", "MY_TOKEN=hunter2222 sleep 0.52; true"])]);
  return 1;
});

type Line = Readonly<Record<string, unknown>>;

async function profiled(
  profile: RunOptions["profile"],
): Promise<{ text: string; lines: readonly Line[]; directory: string }> {
  const run = hmz.run(works, "x", { budget: { cost: 1 }, profile });
  assert.equal(await run.wait(), 1);
  assert.equal(run.trouble, undefined);
  const file = join(run.epic ?? "", "profile.jsonl");
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return {
    text,
    lines: text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line),
    directory: run.epic ?? "",
  };
}

for (const profile of [true, { flow: true }, { flow: true, environment: true }]) {
  test(
    `${JSON.stringify(profile)}: every program is in the record, without its secrets, and in the trace`,
    options,
    async () => {
      const { text, lines, directory } = await profiled(profile);
      assert.ok(!text.includes("hunter2222") && !text.includes("value-of-a-key"), text);
      const last = (word: string): Line | undefined =>
        lines.findLast(({ name, argv }) => name === "sleep" && (argv as string[]).includes(word));
      assert.deepEqual([last("0.51")?.["of"], last("0.52")?.["of"]], ["flow", "environment"]);
      const { file, programs } = await hmz.epics.trace(directory);
      assert.ok(programs >= 4);
      assert.ok(readFileSync(file, "utf8").includes('"sleep 0.51"'));
    },
  );
}

test("of the environment alone, what the flow's own code starts is none", options, async () => {
  const { text } = await profiled({ environment: true });
  assert.ok(text.includes("0.52"), text);
  assert.ok(!text.includes("0.51"), text);
});

test("where none is asked for, there is none", async () => {
  for (const profile of [undefined, false, {}, { flow: false }]) assert.equal((await profiled(profile)).text, "");
});

test("a profile that cannot be written is told once, and goes on", options, async () => {
  const directory = temporaryDirectory("profile");
  const start = await prepareProfile(true, {});
  const told: Error[] = [];
  assert.throws(
    () => start?.({ pid: process.pid, file: join(directory, "no/x"), trouble: (error) => told.push(error) }),
    /ENOENT/,
  );
  const profile = start?.({ pid: process.pid, file: "/dev/full", trouble: (error) => told.push(error) });
  const own = spawn("sleep", ["0.3"], { stdio: "ignore" });
  await once(own, "exit");
  profile?.stop();
  assert.deepEqual(
    told.map(({ message }) => /ENOSPC/.test(message)),
    [true],
  );
  rmSync(directory, { recursive: true });
});
