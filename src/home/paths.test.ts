import assert from "node:assert/strict";
import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Home, machineDir, workspaceKey } from "./paths.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

const fresh = (): string => temporaryDirectory("paths");

test("the home is HUMANIZE_HOME, else ~/.hmz; an empty HUMANIZE_HOME is none", () => {
  assert.equal(Home.of({ HUMANIZE_HOME: "/h", HOME: "/u" }).root, "/h");
  assert.equal(Home.of({ HUMANIZE_HOME: "", HOME: "/u" }).root, "/u/.hmz");
});

test("a workspace's key is its resolved path, whatever is no letter or digit a dash", () => {
  assert.equal(workspaceKey("/no-such/a b.c/é"), "-no-such-a-b-c--");
  const directory = fresh();
  const link = `${directory}-link`;
  symlinkSync(directory, link);
  assert.equal(workspaceKey(link), workspaceKey(directory));
  assert.equal(new Home("/h").epicsOf(directory), `/h/epics/${workspaceKey(directory)}`);
});

test("the machine's directory is made for its owner alone, and kept", () => {
  const TMPDIR = fresh();
  const path = machineDir({ TMPDIR });
  assert.equal(path, join(TMPDIR, `humanize-${userInfo().uid}`));
  assert.equal(statSync(path).mode & 0o777, 0o700);
  assert.equal(machineDir({ TMPDIR }), path);
});

test("a machine's directory that others can write, or that is a link, is refused", () => {
  const TMPDIR = fresh();
  const path = join(TMPDIR, `humanize-${userInfo().uid}`);
  mkdirSync(path);
  chmodSync(path, 0o770);
  assert.throws(() => machineDir({ TMPDIR }), /can be written by others: remove it, or set TMPDIR/);

  const other = fresh();
  symlinkSync(TMPDIR, join(other, `humanize-${userInfo().uid}`));
  assert.throws(() => machineDir({ TMPDIR: other }), /is not a directory/);

  const third = fresh();
  writeFileSync(join(third, `humanize-${userInfo().uid}`), "");
  assert.throws(() => machineDir({ TMPDIR: third }));
});
