import assert from "node:assert/strict";
import { chmodSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { test } from "node:test";
import { isHeld, locked } from "./lock.ts";
import { isAlive, parseOwner, thisOwner } from "./owner.ts";
import { changeWhole, writeWhole } from "./write-whole.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

const fresh = (): string => temporaryDirectory("whole");
/** A process that ended: the highest id that Linux gives, which no test machine reaches. */
const GONE = { pid: 4_194_304 - 1, start: 1 };

test("a file is replaced, keeps its mode, and nothing is left beside it", () => {
  const directory = fresh();
  const file = join(directory, "settings.yaml");
  writeWhole(file, "one");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  chmodSync(file, 0o664);
  writeWhole(file, "two");
  assert.equal(readFileSync(file, "utf8"), "two");
  assert.equal(statSync(file).mode & 0o777, 0o664);
  assert.deepEqual(readdirSync(directory), ["settings.yaml"]);
});

test("a symbolic link stays a link: its file is replaced", () => {
  const directory = fresh();
  const real = join(directory, "real");
  const link = join(directory, "link");
  writeFileSync(real, "one");
  symlinkSync(real, link);
  writeWhole(link, "two");
  assert.ok(lstatSync(link).isSymbolicLink());
  assert.equal(readFileSync(real, "utf8"), "two");
});

test("what cannot be written leaves nothing behind", () => {
  const directory = fresh();
  // A directory cannot be replaced by a file.
  assert.throws(() => writeWhole(directory, "one"));
  assert.deepEqual(readdirSync(directory), []);
});

test("changes at once do not lose each other", async () => {
  const file = join(fresh(), "count");
  const one = (content = "0"): string => String(Number(content) + 1);
  await Promise.all(Array.from({ length: 8 }, () => changeWhole(file, one)));
  assert.equal(readFileSync(file, "utf8"), "8");
});

test("a change that throws leaves the file, and the lock is let go", async () => {
  const file = join(fresh(), "settings");
  writeFileSync(file, "as: it was");
  await assert.rejects(
    changeWhole(file, () => {
      throw new Error("does not parse");
    }),
    /does not parse/,
  );
  await changeWhole(file, () => undefined);
  assert.equal(readFileSync(file, "utf8"), "as: it was");
});

test("the lock of a process that is gone is taken over, that of one that lives is waited for", async () => {
  const lock = join(fresh(), ".lock");
  writeFileSync(lock, JSON.stringify(GONE));
  assert.equal(await locked(lock, () => isHeld(lock), 1_000), true);
  assert.equal(isHeld(lock), false);

  writeFileSync(lock, JSON.stringify(thisOwner()));
  await assert.rejects(
    locked(lock, () => "never", 0),
    /is held by another hmz: wait for it to finish/,
  );
});

test("an id that was given to another process is not the owner", () => {
  const owner = thisOwner();
  assert.equal(isAlive(owner), true);
  assert.equal(isAlive(GONE), false);
  if (owner.start !== undefined) assert.equal(isAlive({ pid: owner.pid, start: owner.start + 1 }), false);
});

test("a lock file that names no process is nobody's", () => {
  for (const text of ["", "\0\0\0", "{}", "[1]", "null", '{"pid":-1}', '{"pid":0}', '{"pid":"1"}', '{"pid":1.5}']) {
    assert.equal(parseOwner(text), undefined, text);
  }
});

test("processes that change a file at once do not lose each other's change", async () => {
  const file = join(fresh(), "count");
  const script = `
    import { changeWhole } from ${JSON.stringify(new URL("./write-whole.ts", import.meta.url).href)};
    for (let n = 0; n < 10; n += 1) {
      await changeWhole(${JSON.stringify(file)}, (content = "0") => String(Number(content) + 1));
    }`;
  const run = promisify(execFile);
  await Promise.all(Array.from({ length: 4 }, () => run(process.execPath, ["--input-type=module", "-e", script])));
  assert.equal(readFileSync(file, "utf8"), "40");
});
