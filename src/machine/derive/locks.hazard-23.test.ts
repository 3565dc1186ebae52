/** One copy handed to two runs: a living holder refuses at once, a dead one is taken over, and what it left is swept. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { TempCloneBusy } from "../../flows/errors.ts";
import { isHeld, locks } from "../../home/lock.ts";
import { holding } from "../../../test/conformance/derive.ts";
import { put } from "../../../test/support/git.ts";
import { temporaryDirectory } from "../../../test/support/temporary.ts";
import { localMachine, sweepLocal } from "../local.ts";

const here = dirname(fileURLToPath(import.meta.url));

/** Another process, that derives a copy and a scratch directory, says where they are, and goes on living. */
async function another(work: string, envs: string, outlives: boolean) {
  const script = `
    import { localMachine } from ${JSON.stringify(join(here, "../local.ts"))};
    import { locks } from ${JSON.stringify(join(here, "../../home/lock.ts"))};
    const { derive } = localMachine({ derive: { envs: ${JSON.stringify(envs)}, locks } });
    const holding = { holder: {}, outlives: ${outlives} };
    const copy = await derive.tempClone(${JSON.stringify(work)}, "x", holding);
    const scratch = await derive.scratch(${JSON.stringify(work)}, "x", holding);
    console.log(JSON.stringify({ copy, scratch }));
    setInterval(() => {}, 1_000);
  `;
  const child = spawn(process.execPath, ["--conditions=hmz-source", "--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  const { copy, scratch } = JSON.parse(said.toString()) as { copy: string; scratch: string };
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return { copy, scratch, kill };
}

for (const outlives of [false, true]) {
  test(`two runs, one killed, of ${outlives ? "a run with a journal" : "a run without one"}`, async () => {
    const root = temporaryDirectory("hazard-23");
    const work = join(root, "work");
    const envs = join(root, "envs");
    put(work, { "a.txt": "a" });
    const first = await another(work, envs, outlives);
    const { derive } = localMachine({ derive: { envs, locks } });
    assert.ok(derive);
    await assert.rejects(derive.tempClone(work, "x", holding()), TempCloneBusy);
    assert.notEqual(await derive.scratch(work, "x", holding()), first.scratch);

    // While it lives, nothing of it is swept.
    await sweepLocal({ envs, locks }, isHeld);
    assert.ok(existsSync(join(first.copy, "a.txt")));
    writeFileSync(join(first.copy, "mark"), "left");
    await first.kill();

    await sweepLocal({ envs, locks }, isHeld);
    assert.equal(existsSync(first.copy), outlives);
    assert.equal(existsSync(first.scratch), outlives);
    const theirs = outlives ? holding({ earlier: first.copy }) : holding();
    assert.equal(await derive.tempClone(work, "x", theirs), first.copy);
    assert.equal(existsSync(join(first.copy, "mark")), outlives);
  });
}

test("a killed holder is taken over without a sweep", async () => {
  const root = temporaryDirectory("hazard-23");
  const work = join(root, "work");
  const envs = join(root, "envs");
  put(work, { "a.txt": "a" });
  const first = await another(work, envs, false);
  await first.kill();
  const { derive } = localMachine({ derive: { envs, locks } });
  assert.equal(await derive?.tempClone(work, "x", holding()), first.copy);
});

test("half of a copy is swept, and what cannot be read is left alone", async () => {
  const root = temporaryDirectory("hazard-23");
  const envs = join(root, "envs");
  const clones = join(envs, "work-0", "clones");
  mkdirSync(clones, { recursive: true });
  put(clones, {
    ".part.999999999.x/a": "half",
    [`.part.${process.pid}.y/a`]: "going",
    "z/a": "kept",
    "z.lock": "garbage",
  });
  await sweepLocal({ envs, locks }, isHeld);
  assert.deepEqual(readdirSync(clones).sort(), [`.part.${process.pid}.y`, "z", "z.lock"].sort());
  assert.equal(readFileSync(join(clones, "z/a"), "utf8"), "kept");
  await sweepLocal({ envs: join(root, "none"), locks }, isHeld);
});
