/** What left its group outlives a run that was killed: the next start finds it by its mark, and nothing else. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Home, machineDir } from "../home/paths.ts";
import { noteRun } from "./leftovers.ts";

test(
  "the next run ends what a killed run left, and leaves a stranger alone",
  { skip: process.platform !== "linux" },
  async (t) => {
    const temporary = mkdtempSync(join(tmpdir(), "hmz-leftovers-"));
    t.after(() => rmSync(temporary, { recursive: true, force: true }));
    const env = { TMPDIR: temporary };
    const start = (mark: string) =>
      spawn("sleep", ["600"], { detached: true, stdio: "ignore", env: { PATH: process.env["PATH"], HMZ_MARK: mark } });
    const left = start("killed.tree");
    const stranger = start("another.tree");
    t.after(() => stranger.kill("SIGKILL"));
    const gone = once(left, "exit");

    // The note of a run whose process is no more: the pid is taken, by a process that started at another time.
    const end = await noteRun(env, new Home(temporary));
    const directory = join(machineDir(env), "going");
    writeFileSync(join(directory, "note.json"), JSON.stringify({ pid: process.pid, start: 1, mark: "killed" }));
    const endAnother = await noteRun(env, new Home(temporary));

    await gone;
    assert.equal(stranger.exitCode ?? stranger.signalCode, null);
    end();
    endAnother();
    assert.deepEqual(readdirSync(directory), []);
  },
);
