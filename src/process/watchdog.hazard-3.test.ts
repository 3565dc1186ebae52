// Output stops and nothing ever says so: silence has a limit, a longer one while a tool is known to run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ENV, Scene } from "../../test/support/processes.ts";
import { startChild } from "./child.ts";
import { Watchdog } from "./watchdog.ts";

test("a CLI that stops in the middle is noticed and ended, stopped processes included", async (t) => {
  const scene = await Scene.set(t);
  const fake = await scene.fake("echo init; echo tool; kill -STOP $$; echo never");
  const child = await startChild({ argv: [fake], cwd: scene.dir, env: ENV, stdin: "closed" });
  let silence = 0;
  const watchdog = new Watchdog({
    limit: 150,
    onSilence: (ms) => {
      silence = ms;
      void child.stop({ graceMs: 1000 });
    },
  });
  const lines: unknown[] = [];
  for await (const line of child.lines()) {
    watchdog.beat();
    lines.push(line);
  }
  assert.equal(lines.length, 2);
  assert.ok(silence >= 150);
  assert.equal((await child.closed).signal, "SIGTERM");
});

test("a beat puts it off; what is busy has the longer limit", async () => {
  let fired = 0;
  const watchdog = new Watchdog({ limit: 120, busyLimit: 60_000, onSilence: () => (fired += 1) });
  for (let beat = 0; beat < 8; beat += 1) {
    await delay(30);
    watchdog.beat();
  }
  assert.equal(fired, 0);
  watchdog.busy();
  await delay(200);
  assert.equal(fired, 0);
  watchdog.idle();
  watchdog.idle();
  await delay(300);
  assert.equal(fired, 1);
});

test("it fires once, and never once stopped", async () => {
  let fired = 0;
  const once = new Watchdog({ limit: 5, onSilence: () => (fired += 1) });
  const stopped = new Watchdog({ limit: 5, onSilence: () => (fired += 10) });
  stopped.stop();
  stopped.busy();
  await delay(60);
  once.beat();
  once.busy();
  await delay(60);
  assert.equal(fired, 1);
});

test("a limit longer than a timer's longest does not fire at once", async () => {
  let fired = false;
  const watchdog = new Watchdog({ limit: 2 ** 40, onSilence: () => (fired = true) });
  await delay(20);
  watchdog.stop();
  assert.equal(fired, false);
});
