import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { test } from "node:test";
import { ENV, Scene } from "../../test/support/processes.ts";
import { CAN_PROFILE, type SeenProgram, startProfile } from "./profile.ts";
import { runProgram } from "./run.ts";

const options = { skip: CAN_PROFILE ? false : "this system does not show its processes" };

/** What was seen, and what of it last. */
function watched(environmentOnly = false): {
  readonly seen: readonly SeenProgram[];
  last(word: string): SeenProgram | undefined;
  until(found: () => boolean): Promise<void>;
  stop(): void;
} {
  const seen: SeenProgram[] = [];
  const profile = startProfile({ pid: process.pid, environmentOnly, seen: (program) => void seen.push(program) });
  return {
    seen,
    last: (word) => seen.findLast(({ argv }) => argv.includes(word)),
    until: async (found) => {
      for (let tries = 0; !found(); tries += 1) {
        assert.ok(tries < 2_000, JSON.stringify(seen));
        await delay(5);
      }
    },
    stop: () => profile.stop(),
  };
}

test("a program and what it starts are seen, with who started them, when, and that they left", options, async (t) => {
  const scene = await Scene.set(t);
  const program = await scene.fake("sleep 0.61 &\nsleep 0.62\nwait");
  const profile = watched();
  const before = Date.now() / 1_000;
  await runProgram({ argv: [program, "an argument"], cwd: scene.dir, env: ENV });
  const after = Date.now() / 1_000;
  await profile.until(() => profile.last("0.62")?.event === "left" && profile.last("an argument")?.event === "left");
  profile.stop();
  const [head, one, other] = ["an argument", "0.61", "0.62"].map((word) => profile.last(word));
  assert.ok(head?.ended && one && other);
  assert.equal(head.ppid, process.pid);
  assert.deepEqual([one.ppid, other.ppid], [head.pid, head.pid]);
  assert.equal(one.name, "sleep");
  assert.deepEqual(one.argv, ["sleep", "0.61"]);
  for (const { of, began, ended = 0, seen, threads, pid } of [head, one, other]) {
    assert.equal(of, "environment");
    assert.ok(began > before - 1 && began < after + 1 && seen >= began - 1 && ended >= seen);
    assert.equal(threads[0]?.[0], pid);
  }
  assert.ok(!profile.seen.some(({ name }) => name === "hmz-leash"));
  // A program is told of while it runs, once, and when it has left.
  assert.deepEqual(
    profile.seen.filter(({ pid }) => pid === other.pid).map(({ event }) => event),
    ["ran", "left"],
  );
});

test(
  "what the flow's own code starts is told apart, and left out where only the environment is asked for",
  options,
  async (t) => {
    const scene = await Scene.set(t);
    const [all, environment] = [watched(), watched(true)];
    const own = spawn("/bin/sh", ["-c", "sleep 0.63; true"], { stdio: "ignore" });
    const exited = once(own, "exit");
    await runProgram({ argv: ["sleep", "0.64"], cwd: scene.dir, env: ENV });
    await exited;
    await all.until(() => all.last("0.63")?.event === "left" && all.last("0.64")?.event === "left");
    all.stop();
    environment.stop();
    assert.equal(all.last("0.63")?.of, "flow");
    assert.equal(all.last("0.63")?.ppid, own.pid);
    assert.equal(all.last("0.64")?.of, "environment");
    assert.ok(environment.last("0.64"));
    assert.equal(environment.last("0.63"), undefined);
  },
);

test("a profile that is stopped tells of what is still there, and looks no more", options, async () => {
  const own = spawn("sleep", ["30"], { stdio: "ignore" });
  await once(own, "spawn");
  const profile = watched();
  await profile.until(() => profile.last("30") !== undefined);
  profile.stop();
  const told = profile.seen.length;
  assert.equal(profile.last("30")?.event, "ran");
  own.kill();
  await once(own, "exit");
  await delay(120);
  assert.equal(profile.seen.length, told);
  profile.stop();
  assert.equal(profile.seen.length, told);
});
