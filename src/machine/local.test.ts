import assert from "node:assert/strict";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { machineConformance } from "../../test/conformance/machine.ts";
import { EnvError, EnvPermissionDenied, EnvUnavailable } from "../flows/errors.ts";
import { localMachine } from "./local.ts";

async function scratch(): Promise<{ workdir: string; cleanup: () => Promise<void> }> {
  const workdir = await realpath(await mkdtemp(join(tmpdir(), "hmz-local-")));
  return { workdir, cleanup: async () => rm(workdir, { recursive: true, force: true }) };
}

machineConformance("local", async () => ({ machine: localMachine(), ...(await scratch()) }));

test("a file that is written keeps its mode, and leaves no draft beside it", async (t) => {
  const { workdir, cleanup } = await scratch();
  t.after(cleanup);
  const path = join(workdir, "run.sh");
  await writeFile(path, "old");
  await chmod(path, 0o751);
  await localMachine().write(path, Buffer.from("new"));
  assert.equal((await stat(path)).mode & 0o7777, 0o751);
  assert.deepEqual(await readdir(workdir), ["run.sh"]);
});

test("what is no regular file is not read: a device would not end, a pipe would be waited for", async (t) => {
  const { workdir, cleanup } = await scratch();
  t.after(cleanup);
  const pipe = join(workdir, "pipe");
  await localMachine().exec(["mkfifo", pipe], { cwd: workdir, timeout: 0 });
  for (const path of [pipe, "/dev/zero"]) {
    await assert.rejects(localMachine().read(path), {
      name: "EnvError",
      message: `${path} is not a regular file, and is not read`,
    });
  }
});

test("a link that is written through stays a link, whether or not its file is there", async (t) => {
  const { workdir, cleanup } = await scratch();
  t.after(cleanup);
  await mkdir(join(workdir, "real"));
  await writeFile(join(workdir, "real/file"), "old");
  await symlink("real/file", join(workdir, "link"));
  await symlink("real/later", join(workdir, "dangling"));
  await localMachine().write(join(workdir, "link"), Buffer.from("new"));
  await localMachine().write(join(workdir, "dangling"), Buffer.from("new"));
  for (const link of ["link", "dangling"]) assert.ok((await lstat(join(workdir, link))).isSymbolicLink());
  for (const file of ["real/file", "real/later"]) assert.equal(await readFile(join(workdir, file), "utf8"), "new");
  await symlink("loop", join(workdir, "loop"));
  await assert.rejects(localMachine().write(join(workdir, "loop"), Buffer.from("x")), EnvError);
});

test(
  "what may not be read, written or run is EnvPermissionDenied",
  { skip: process.getuid?.() === 0 && "root may do all" },
  async (t) => {
    const { workdir, cleanup } = await scratch();
    t.after(cleanup);
    const path = join(workdir, "secret");
    await writeFile(path, "x", { mode: 0o200 });
    await assert.rejects(localMachine().read(path), EnvPermissionDenied);
    await chmod(path, 0o400);
    await assert.rejects(localMachine().write(path, Buffer.from("y")), EnvPermissionDenied);
  },
);

test("a file without the bit to run it is EnvPermissionDenied", async (t) => {
  const { workdir, cleanup } = await scratch();
  t.after(cleanup);
  await writeFile(join(workdir, "plain"), "#!/bin/sh\n", { mode: 0o644 });
  await assert.rejects(localMachine().exec(["./plain"], { cwd: workdir, timeout: 0 }), EnvPermissionDenied);
});

test("a machine without git or bash on its PATH says what needs it", async (t) => {
  const { workdir, cleanup } = await scratch();
  const path = process.env["PATH"];
  t.after(async () => {
    process.env["PATH"] = path;
    await cleanup();
  });
  const derive = { envs: workdir, locks: {} as never };
  const needs = ["shell", "files", "bash", "temp_clone", "scratch", "git", "worktree", "rewind"] as const;
  const lacks = () => needs.map((need) => localMachine({ derive }).lacks?.(need));
  const none = "on the machine's PATH, and it has none";
  process.env["PATH"] = workdir;
  assert.deepEqual(lacks(), [
    undefined,
    undefined,
    `bash needs bash ${none}`,
    undefined,
    undefined,
    `git needs git ${none}`,
    `worktree needs git ${none}`,
    `rewind needs git ${none}`,
  ]);
  for (const program of ["git", "bash"]) await writeFile(join(workdir, program), "", { mode: 0o755 });
  assert.deepEqual(lacks(), Array<undefined>(needs.length).fill(undefined));
});

test("a workdir that is a file is EnvUnavailable", async (t) => {
  const { workdir, cleanup } = await scratch();
  t.after(cleanup);
  const file = join(workdir, "file");
  await writeFile(file, "");
  await assert.rejects(localMachine().exec(["true"], { cwd: file, timeout: 0 }), EnvUnavailable);
});

test("output over the cap says in its place how much is missing", async (t) => {
  const { workdir, cleanup } = await scratch();
  t.after(cleanup);
  const machine = localMachine({ maxOutput: 100 });
  const { stdout } = await machine.exec(["seq", "1000"], { cwd: workdir, timeout: 0 });
  assert.match(stdout, /^1\n2\n/);
  assert.match(stdout, /\n\[3793 bytes left out\]\n/);
  assert.match(stdout, /999\n1000\n$/);
});
