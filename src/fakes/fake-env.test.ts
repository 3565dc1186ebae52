import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EnvCommandTimeout, EnvError, EnvFileNotFound, EnvUnavailable } from "hmz/flows";
import { FakeEnv, type FakeCommand } from "hmz/fakes";

const at = { cwd: "/work", timeout: 0 };

describe("a fake machine's commands", () => {
  const env = new FakeEnv({ files: { "a.txt": "A", "src/b.txt": "B\n", ".hidden": "" } });
  const rows: readonly (readonly [readonly string[], number, string, RegExp?])[] = [
    [["true"], 0, ""],
    [["false"], 1, ""],
    [["echo", "a", "b"], 0, "a b\n"],
    [["echo", "-n", "a"], 0, "a"],
    [["cat", "a.txt", "src/b.txt"], 0, "AB\n"],
    [["cat", "a.txt", "none"], 1, "A", /none: No such file/],
    [["ls"], 0, "a.txt\nsrc\n"],
    [["ls", "src"], 0, "b.txt\n"],
    [["ls", "/"], 0, "work\n"],
    [["ls", "none"], 2, "", /none/],
    [["sleep", "0"], 0, ""],
    [["git", "rev-parse", "--is-inside-work-tree"], 0, "true\n"],
    [["git", "status"], 127, "", /git/],
    [["make"], 127, "", /make/],
    [["bash", "-c", "ls | wc"], 127, "", /bash/],
  ];
  for (const [argv, status, stdout, stderr = /^$/] of rows) {
    it(argv.join(" "), async () => {
      const outcome = await env.exec(argv, at);
      assert.deepEqual([outcome.status, outcome.stdout], [status, stdout]);
      assert.match(outcome.stderr, stderr);
    });
  }

  it("outside a repository git says so", async () => {
    const { status } = await new FakeEnv({ repo: false }).exec(["git", "rev-parse", "--is-inside-work-tree"], at);
    assert.equal(status, 128);
  });

  it("are answered by a table, of argvs joined and of scripts", async () => {
    const env = new FakeEnv({ run: { "make\0test": { status: 2, stderr: "boom" }, "ls | wc -l": { stdout: "3\n" } } });
    assert.deepEqual(await env.exec(["make", "test"], at), { status: 2, stdout: "", stderr: "boom" });
    assert.deepEqual(await env.exec(["bash", "-c", "ls | wc -l"], at), { status: 0, stdout: "3\n", stderr: "" });
    assert.equal((await env.exec(["make"], at)).status, 127);
    assert.equal((await env.exec(["toString"], at)).status, 127);
    assert.deepEqual(env.commands, [["make", "test"], "ls | wc -l", ["make"], ["toString"]]);
  });

  it("are answered by a function, that may leave them", async () => {
    const asked: unknown[] = [];
    const env = new FakeEnv({
      run: async (command: FakeCommand, given, { cwd }) => {
        asked.push([command, given === env, cwd]);
        return command[0] === "make" ? { stdout: "built" } : undefined;
      },
    });
    await env.makeDirectory("/work/sub");
    assert.equal((await env.exec(["make"], { ...at, cwd: "/work/sub" })).stdout, "built");
    assert.equal((await env.exec(["echo", "x"], at)).stdout, "x\n");
    assert.deepEqual(asked, [
      [["make"], true, "/work/sub"],
      [["echo", "x"], true, "/work"],
    ]);
  });

  it("end at their timeout, and when they are interrupted", async () => {
    await assert.rejects(env.exec(["sleep", "60"], { ...at, timeout: 1 }), EnvCommandTimeout);
    const aborter = new AbortController();
    const hung = new FakeEnv({ run: () => new Promise(() => {}) });
    for (const running of [
      env.exec(["sleep", "60"], { ...at, signal: aborter.signal }),
      hung.exec(["make"], { ...at, signal: aborter.signal }),
    ]) {
      aborter.abort(new Error("stop"));
      await assert.rejects(running, /stop/);
    }
  });

  it("need a program, and a directory", async () => {
    await assert.rejects(env.exec([], at), EnvError);
    await assert.rejects(env.exec(["true"], { ...at, cwd: "/gone" }), EnvUnavailable);
  });
});

describe("a fake machine's files", () => {
  it("are read, written whole, and listed by where they are", async () => {
    const env = new FakeEnv({ files: { "a/b.txt": "text" }, workdir: "/repo/" });
    assert.equal(env.workdir, "/repo");
    await env.write("/repo/c/d.bin", new Uint8Array([1, 2]));
    await env.write("/elsewhere/e", new Uint8Array());
    assert.deepEqual(Object.keys(env.files), ["a/b.txt", "c/d.bin"]);
    assert.deepEqual([...env.machine.keys()], ["/repo/a/b.txt", "/repo/c/d.bin", "/elsewhere/e"]);
    assert.equal(env.text("a/b.txt"), "text");
    assert.deepEqual([...(await env.read("/repo/c/d.bin"))], [1, 2]);
    assert.equal(await env.isDirectory("/repo/c"), true);
    assert.equal(await env.isDirectory("/repo/a/b.txt"), false);
  });

  it("are not shared with who reads or writes them", async () => {
    const env = new FakeEnv();
    const data = new Uint8Array([1]);
    await env.write("/work/a", data);
    data[0] = 9;
    const read = await env.read("/work/a");
    read[0] = 8;
    assert.deepEqual([...(await env.read("/work/a"))], [1]);
  });

  it("that are missing, or are directories, are refused", async () => {
    const env = new FakeEnv({ files: { "a/b": "" } });
    await assert.rejects(env.read("/work/none"), EnvFileNotFound);
    await assert.rejects(env.read("/work/a"), EnvError);
    await assert.rejects(env.write("/work/a", new Uint8Array()), EnvError);
    await assert.rejects(env.write("/work/a/b/c", new Uint8Array()), EnvError);
    await assert.rejects(env.makeDirectory("/work/a/b"), EnvError);
    assert.throws(() => env.text("none"), EnvFileNotFound);
  });
});

describe("a fake machine", () => {
  it("serves what it does and is large, unless told otherwise", () => {
    const env = new FakeEnv();
    assert.deepEqual([...env.serves], ["shell", "bash", "files", "worktree", "temp_clone", "scratch", "rewind", "git"]);
    assert.deepEqual(env.size, { cpus: 8, memory: 64 * 2 ** 30, gpus: 0, gpuMemory: 0 });
    assert.deepEqual([env.backend, env.provider, env.workdir], ["local", "", "/work"]);
    const small = new FakeEnv({
      needs: ["files"],
      cpus: 1,
      memory: 1,
      gpus: 2,
      gpuMemory: 3,
      backend: "ssh",
      provider: "h",
    });
    assert.deepEqual([...small.serves], ["files"]);
    assert.deepEqual(small.size, { cpus: 1, memory: 1, gpus: 2, gpuMemory: 3 });
    assert.deepEqual([small.backend, small.provider], ["ssh", "h"]);
  });

  it("has an absolute workdir", () => {
    assert.throws(() => new FakeEnv({ workdir: "work" }), RangeError);
  });
});
