// The process: hangs, orphans and pipes. Real programs, with the leash and without it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { collect, ENV, goes, lives, Scene, WAYS } from "../../test/support/processes.ts";
import { startChild } from "./child.ts";
import { processEntry } from "./process-table.ts";
import { runProgram } from "./run.ts";
import { newMark, signalProcess, sweep } from "./tree.ts";

for (const { way, leash } of WAYS) {
  const options = (scene: Scene, ...argv: string[]) => ({ argv, cwd: scene.dir, env: ENV, leash }) as const;

  test(`hazard 1, ${way}: a CLI that prints its result and stays is ended with its answer kept`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake(`echo '{"type":"result","result":"ok"}'; exec sleep 60`);
    const child = await startChild({ ...options(scene, fake), stdin: "closed" });
    for await (const line of child.lines()) {
      assert.deepEqual(line, { kind: "line", text: '{"type":"result","result":"ok"}' });
      await child.stop();
    }
    assert.deepEqual(await child.closed, { code: null, signal: "SIGTERM" });
  });

  test(`hazard 2, ${way}: a grandchild that holds the output does not hold the reader, and is ended`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake("echo RESULT; sh -c 'echo $$ > $0/held; exec sleep 60' $DIR & exit 0");
    const child = await startChild({ ...options(scene, fake), stdin: "closed" });
    assert.deepEqual(await collect(child.lines()), [{ kind: "line", text: "RESULT" }]);
    assert.deepEqual(await child.closed, { code: 0, signal: null });
    assert.equal(lives(await scene.pid("held")), false);
    const ran = await runProgram(options(scene, fake));
    assert.deepEqual({ ...ran }, { status: 0, stdout: "RESULT\n", stderr: "", truncated: false, timedOut: false });
  });

  test(`hazard 2, ${way}: what is still written just after the end is read`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake("(sleep 0.15; echo last) & echo first");
    assert.equal((await runProgram(options(scene, fake))).stdout, "first\nlast\n");
  });

  test(`hazard 4, ${way}: a CLI that reads its standard input to the end does not wait`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake("cat; echo completed");
    assert.equal((await runProgram(options(scene, fake))).stdout, "completed\n");
    const child = await startChild({ ...options(scene, fake), stdin: "closed" });
    assert.equal((await collect(child.lines())).length, 1);
    await assert.rejects(child.write("x"), /standard input closed/);
    const open = await startChild({ ...options(scene, fake), stdin: "open" });
    await open.write("≤ in\n");
    open.end();
    assert.deepEqual(await collect(open.lines()), [
      { kind: "line", text: "≤ in" },
      { kind: "line", text: "completed" },
    ]);
  });

  test(`hazard 5, ${way}: stopping ends the children too, those that ignore TERM included`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake(`
      sh -c 'echo $$ > $0/plain; exec sleep 60' $DIR &
      sh -c 'trap "" TERM; echo $$ > $0/deaf; while :; do sleep 1; done' $DIR &
      wait`);
    const child = await startChild({ ...options(scene, fake), stdin: "closed" });
    const pids = [await scene.pid("plain"), await scene.pid("deaf")];
    await child.stop({ graceMs: 100 });
    assert.deepEqual(pids.map(lives), [false, false]);
    assert.equal(lives(child.pid), false);
  });

  test(`hazard 6, ${way}: what left the group, by setsid or by a double fork, is ended`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake(`
      setsid sh -c 'echo $$ > $0/session; exec sleep 60' $DIR &
      (setsid sh -c '(setsid sh -c "echo \\$\\$ > $0/orphan; exec sleep 60" &)' $DIR &)
      wait`);
    const child = await startChild({ ...options(scene, fake), stdin: "closed" });
    const pids = [await scene.pid("session"), await scene.pid("orphan")];
    assert.deepEqual(pids.map(lives), [true, true]);
    await child.stop();
    assert.deepEqual(pids.map(lives), [false, false]);
  });

  test(`hazard 6, ${way}: what is left in a session of its own by a program that ended is ended`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake(`
      setsid sh -c 'echo $$ > $0/daemon; exec sleep 60' $DIR > /dev/null 2>&1 < /dev/null &
      while ! [ -s $DIR/daemon ]; do sleep 0.02; done`);
    assert.equal((await runProgram(options(scene, fake))).status, 0);
    assert.equal(lives(await scene.pid("daemon")), false);
  });

  test(`hazard 8, ${way}: a full standard error does not stop the program, and its end is kept`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake("head -c 300000 /dev/zero >&2; echo the fault >&2; echo done");
    const child = await startChild({ ...options(scene, fake), stdin: "closed" });
    assert.deepEqual(await collect(child.lines()), [{ kind: "line", text: "done" }]);
    await child.closed;
    assert.equal(child.stderr.total, 300_010);
    assert.equal(child.stderr.bytes().length, 65_536);
    assert.ok(child.stderr.text().endsWith("the fault\n"));
  });

  test(`hazard 19, ${way}: output without end takes bounded memory and says what is missing`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake(`yes '{"type":"text","text":"≤"}' | head -c 3000000`);
    const ran = await runProgram({ ...options(scene, fake), maxOutput: 1000 });
    assert.ok(ran.truncated);
    const left = /\n\[(\d+) bytes left out\]\n/.exec(ran.stdout);
    assert.ok(left !== null);
    assert.equal(Buffer.byteLength(ran.stdout) - left[0].length + Number(left[1]), 3_000_000);
    assert.ok(!ran.stdout.includes("\ufffd"));
  });

  test(`hazard 19, ${way}: a program that writes faster than it is read waits`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake(`head -c 20000000 /dev/zero; echo $$ > $DIR/through`);
    const child = await startChild({ ...options(scene, fake), stdin: "closed" });
    const reader = child.stdout[Symbol.asyncIterator]();
    await reader.next();
    await new Promise((wake) => setTimeout(wake, 100));
    assert.equal(lives(child.pid), true);
    let size = 0;
    for (let next = await reader.next(); next.done !== true; next = await reader.next()) size += next.value.length;
    assert.ok(size > 19_000_000);
    assert.deepEqual(await child.exited, { code: 0, signal: null });
  });

  test(`${way}: a program that stops reading rejects the write and nothing else`, async (t) => {
    const scene = await Scene.set(t);
    const child = await startChild({
      ...options(scene, await scene.fake("exec <&-; echo up; exec sleep 60")),
      stdin: "open",
    });
    for await (const _ of child.lines()) break;
    await assert.rejects(async () => {
      for (;;) await child.write("x".repeat(100_000));
    }, /does not read its standard input any more/);
    await child.stop();
  });

  test(`${way}: the program's exit is the child's: status, signal, and the signal that is sent to it`, async (t) => {
    const scene = await Scene.set(t);
    const exitOf = async (script: string) =>
      (await startChild({ ...options(scene, await scene.fake(script)), stdin: "closed" })).closed;
    assert.deepEqual(await exitOf("exit 7"), { code: 7, signal: null });
    assert.deepEqual(await exitOf("kill -SEGV $$"), { code: null, signal: "SIGSEGV" });
    assert.deepEqual(await exitOf("kill -KILL $$"), { code: null, signal: "SIGKILL" });
    const child = await startChild({
      ...options(scene, await scene.fake("trap 'exit 9' INT; echo up; while :; do sleep 0.02; done")),
      stdin: "closed",
    });
    for await (const _ of child.lines()) child.signal("SIGINT");
    assert.deepEqual(await child.closed, { code: 9, signal: null });
  });

  test(`${way}: what cannot start rejects as Node has it`, async (t) => {
    const scene = await Scene.set(t);
    const start = async (...argv: string[]) => startChild({ ...options(scene, ...argv), stdin: "closed" });
    await assert.rejects(start("no-such-program-hmz"), { code: "ENOENT", path: "no-such-program-hmz" });
    await assert.rejects(start("/dev/null"), { code: "EACCES" });
    await assert.rejects(start(""), { code: "ENOENT" });
    await assert.rejects(startChild({ ...options(scene, "true"), cwd: `${scene.dir}/no`, stdin: "closed" }), {
      code: "ENOENT",
      syscall: "chdir",
    });
  });

  test(`${way}: a second stop with a shorter grace cuts the first one short`, async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake(`trap '' TERM; echo $$ > $DIR/deaf; while :; do sleep 0.05; done`);
    const child = await startChild({ ...options(scene, fake), stdin: "closed" });
    const pid = await scene.pid("deaf");
    const patient = child.stop({ graceMs: 60_000 });
    assert.deepEqual(await child.stop({ graceMs: 50 }), await patient);
    assert.equal(lives(pid), false);
  });

  test(`${way}: a run that its hmz left behind is swept by its mark, and no other`, async (t) => {
    const scene = await Scene.set(t);
    const mark = newMark();
    const fake = await scene.fake(`
      setsid sh -c 'echo $$ > $0/$1' $DIR $1 &
      exec sleep 60`);
    const mine = await startChild({ ...options(scene, fake, "mine"), stdin: "closed", mark });
    const other = await startChild({ ...options(scene, fake, "other"), stdin: "closed", mark: `${mark}x` });
    await scene.pid("mine");
    await scene.pid("other");
    assert.ok((await sweep(mark)) >= 1);
    await mine.closed;
    assert.equal(lives(mine.pid), false);
    assert.equal(lives(other.pid), true);
    assert.equal(await sweep([mark]), 0);
    await other.stop();
  });
}

test("hazard 7: a pid that was given again, or a mark that is only spelled somewhere, is let be", async (t) => {
  const mark = newMark();
  const bystander = spawn("sleep", ["60"], {
    // The words of a mark, but not as the variable; and a variable that another one's name ends with.
    env: { ...ENV, NOTE: `HMZ_MARK=${mark}.x`, XHMZ_MARK: `${mark}.x` },
    argv0: `HMZ_MARK=${mark}.x`,
    stdio: "ignore",
  });
  t.after(() => bystander.kill("SIGKILL"));
  await once(bystander, "spawn");
  const pid = bystander.pid ?? 0;
  const entry = processEntry(pid);
  assert.ok(entry !== undefined);
  assert.equal(await sweep(mark), 0);
  assert.equal(signalProcess({ pid, start: String(Number(entry.start) - 1) }, "SIGKILL"), false);
  for (const nobody of [0, -1, 1, process.pid, -pid]) {
    assert.equal(signalProcess({ pid: nobody, start: processEntry(nobody)?.start ?? "" }, "SIGKILL"), false);
  }
  assert.equal(lives(pid), true);
  assert.equal(signalProcess(entry, "SIGKILL"), true);
  assert.ok(await goes(pid));
});

for (const { way, leash } of WAYS) {
  test(`${way}: a tree that outlives an orderly exit of hmz is killed on the way out`, async (t) => {
    const scene = await Scene.set(t);
    const { pids } = await orphaned(scene, leash, "process.exit(0)");
    for (const pid of pids) assert.ok(await goes(pid));
  });
}

if (WAYS.length > 1) {
  test("with the leash: SIGKILL of hmz ends the tree, what has a session of its own included", async (t) => {
    const scene = await Scene.set(t);
    const { pids } = await orphaned(scene, true, "process.kill(process.pid, 'SIGKILL')");
    for (const pid of pids) assert.ok(await goes(pid));
  });

  test("with the leash: where somebody kills the leash, nothing outlives it", async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake(`
      setsid sh -c 'echo $$ > $0/far; exec sleep 60' $DIR &
      echo $$ > $DIR/near
      wait`);
    const child = await startChild({ argv: [fake], cwd: scene.dir, env: ENV, stdin: "closed" });
    const pids = [await scene.pid("far"), await scene.pid("near")];
    child.signal("SIGKILL");
    assert.deepEqual(await child.closed, { code: null, signal: "SIGKILL" });
    assert.deepEqual(pids.map(lives), [false, false]);
  });

  test("with the leash: a program whose interpreter is missing says so, with the status of a shell", async (t) => {
    const scene = await Scene.set(t);
    await writeFile(`${scene.dir}/odd`, "#!/no/such/interpreter\n", { mode: 0o755 });
    const ran = await runProgram({ argv: ["./odd"], cwd: scene.dir, env: ENV });
    assert.equal(ran.status, 127);
    assert.match(ran.stderr, /^hmz: cannot start .*odd: No such file or directory\n$/);
  });

  test("with the leash: the end of a thread that started it is not the end of hmz", async (t) => {
    const scene = await Scene.set(t);
    const fake = await scene.fake("echo $$ > $DIR/up; exec sleep 60");
    const child = new URL("child.ts", import.meta.url).href;
    const started = JSON.stringify({ argv: [fake], cwd: scene.dir, env: ENV, stdin: "closed" });
    const body = `
      const { Worker } = await import("node:worker_threads");
      const { writeFileSync } = await import("node:fs");
      const worker = new Worker(\`
        import(${JSON.stringify(child)})
          .then(({ startChild }) => startChild(${started}))
          .then(() => import("node:worker_threads"))
          .then(({ parentPort }) => parentPort.postMessage("started"));
      \`, { eval: true });
      await new Promise((told) => worker.once("message", told));
      await worker.terminate();
      writeFileSync(${JSON.stringify(`${scene.dir}/ended`)}, "0\\n");
      setInterval(() => {}, 1000);`;
    const hmz = spawn(process.execPath, ["--conditions=hmz-source", "--input-type=module", "-e", body], {
      stdio: "ignore",
    });
    t.after(() => hmz.kill("SIGKILL"));
    const pid = await scene.pid("up");
    await scene.pid("ended");
    // Time for a death that must not come: the kernel has told the leash already.
    await new Promise((wake) => setTimeout(wake, 200));
    assert.ok(lives(pid));
    hmz.kill("SIGKILL");
    assert.ok(await goes(pid));
  });
}

test("without the leash: what SIGKILL of hmz leaves behind, the next sweep finds", async (t) => {
  const scene = await Scene.set(t);
  const mark = newMark();
  const { pids } = await orphaned(scene, false, "process.kill(process.pid, 'SIGKILL')", mark);
  assert.deepEqual(pids.map(lives), [true, true]);
  assert.ok((await sweep(mark)) >= 2);
  assert.deepEqual(pids.map(lives), [false, false]);
});

/** Another process of ours that starts a tree and then goes in some way. */
async function orphaned(scene: Scene, leash: boolean, end: string, mark = newMark()): Promise<{ pids: number[] }> {
  const fake = await scene.fake(`
    setsid sh -c 'trap "" HUP; echo $$ > $0/far; exec sleep 60' $DIR &
    echo $$ > $DIR/near
    wait`);
  const child = new URL("child.ts", import.meta.url).href;
  const hmz = spawn(
    process.execPath,
    [
      "--conditions=hmz-source",
      "--input-type=module",
      "-e",
      `const { startChild } = await import(${JSON.stringify(child)});
       await startChild(${JSON.stringify({ argv: [fake], cwd: scene.dir, env: ENV, stdin: "closed", leash, mark })});
       process.stdin.on("data", () => { ${end} });`,
    ],
    { stdio: ["pipe", "ignore", "inherit"] },
  );
  const ended = once(hmz, "exit");
  const pids = [await scene.pid("far"), await scene.pid("near")];
  hmz.stdin?.write("now");
  await ended;
  return { pids };
}
