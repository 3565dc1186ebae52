/** A journal on a disk that fills up: what was set before is read after, and the flow hears of what could not be. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runFake } from "../fakes/index.ts";
import { flow, FlowRuntimeError } from "../flows/index.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { openJournal, readJournal } from "./journal.ts";

/** A disk of 256 KB; `undefined` where none may be mounted. */
function smallDisk(t: { after(fn: () => void): void }): string | undefined {
  const at = temporaryDirectory("small-disk");
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", at], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  t.after(() => execFileSync("umount", ["-l", at]));
  return at;
}

test("what was written before a disk was full is read, and what is written once it has room again", async (t) => {
  const disk = smallDisk(t);
  if (disk === undefined) return t.skip("no disk may be mounted here");
  const path = join(disk, "resume.jsonl");
  const filler = join(disk, "filler");
  const journal = openJournal({ path, trouble: () => {} });
  journal.begin(['{"t":"journal","v":1}']);
  writeFileSync(filler, Buffer.alloc(128 * 1024));
  const line = (id: number) => `{"t":"set","id":${id},"key":"k","value":"${"x".repeat(700)}"}`;
  let written = 0;
  assert.throws(
    () => {
      for (;;) {
        journal.append(line(written), true);
        written++;
      }
    },
    { code: "ENOSPC" },
  );
  assert.ok(written > 10);
  assert.throws(() => journal.append(line(-1), true), { code: "ENOSPC" });
  rmSync(filler);
  journal.append(line(-2), true);
  await journal.close();
  const ids = readJournal(path).records.map((record) => (record as { id: number }).id);
  assert.deepEqual(ids, [...Array.from({ length: written }, (_, id) => id), -2]);
});

test("a line that failed half-way is not there later, and those held back before it are, once there is room", async (t) => {
  const disk = smallDisk(t);
  if (disk === undefined) return t.skip("no disk may be mounted here");
  const path = join(disk, "resume.jsonl");
  const filler = join(disk, "filler");
  const troubles: string[] = [];
  const journal = openJournal({ path, trouble: (error) => troubles.push((error as NodeJS.ErrnoException).code ?? "") });
  journal.begin(['{"t":"journal","v":1}']);
  writeFileSync(filler, Buffer.alloc(200 * 1024));
  journal.append('{"t":"call","id":1}', false);
  const value = "x".repeat(100 * 1024);
  assert.throws(() => journal.append(`{"t":"set","id":1,"key":"k","value":"${value}"}`, true), { code: "ENOSPC" });
  assert.equal(readFileSync(path, "utf8"), '{"t":"journal","v":1}\n');
  // Held back, more of them than there is room for: told once.
  for (let id = 2; id < 5; id++) journal.append(`{"t":"call","id":${id},"ref":"${"x".repeat(70 * 1024)}"}`, false);
  assert.deepEqual(troubles, ["ENOSPC"]);
  rmSync(filler);
  journal.append('{"t":"set","id":1,"key":"k","value":1}', true);
  await journal.close();
  const { records, bad } = readJournal(path);
  assert.deepEqual(bad, []);
  const ids = records.map((record) => (record as { id: number }).id);
  assert.deepEqual(ids, [1, 2, 3, 4, 1]);
  assert.deepEqual(troubles, ["ENOSPC"]);
});

test("a set that could not be written fails in the flow, and leaves the state as it was", async (t) => {
  const disk = smallDisk(t);
  if (disk === undefined) return t.skip("no disk may be mounted here");
  const journal = join(disk, "resume.jsonl");
  const filling = flow({ name: "filling", resumable: true }, async (_task, { ctx }) => {
    if (ctx.resumed) return ctx.state.get("n");
    try {
      for (let n = 0; ; n++) ctx.state.set("n", { n, filler: "x".repeat(20_000) });
    } catch (error) {
      assert.ok(error instanceof FlowRuntimeError);
      assert.match(error.message, /^journal\.hazard-full-disk\.test:filling: its journal cannot be written: ENOSPC/);
      return ctx.state.get("n");
    }
  });
  const before = await runFake(filling, "", { journal });
  // As a person would who frees the disk: what is picked up is written whole again.
  const elsewhere = join(temporaryDirectory("elsewhere"), "resume.jsonl");
  writeFileSync(elsewhere, readFileSync(journal));
  assert.deepEqual(await runFake(filling, "", { journal: elsewhere, resume: true }), before);
});
