import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { ENV, Scene, WAYS } from "../../test/support/processes.ts";
import { leash } from "./leash.ts";
import { runProgram } from "./run.ts";

test("however small the cap, nothing is miscounted and no character is broken", async (t) => {
  const scene = await Scene.set(t);
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: "grapheme", maxLength: 60 }),
      fc.integer({ min: 2, max: 80 }),
      async (text, maxOutput) => {
        await writeFile(join(scene.dir, "text"), text);
        const ran = await runProgram({ argv: ["cat", "text"], cwd: scene.dir, env: ENV, maxOutput });
        const size = Buffer.byteLength(text);
        assert.equal(ran.truncated, size > maxOutput);
        if (!ran.truncated) return assert.equal(ran.stdout, text);
        const [, head = "", left, tail = ""] = /^([^]*)\n\[(\d+) bytes left out\]\n([^]*)$/.exec(ran.stdout) ?? [];
        assert.ok(text.startsWith(head) && text.endsWith(tail));
        assert.equal(Buffer.byteLength(head) + Number(left) + Buffer.byteLength(tail), size);
      },
    ),
    { numRuns: 30 },
  );
});

for (const { way, leash } of WAYS) {
  test(`${way}: a program's name, its place and its environment are its own`, async (t) => {
    const scene = await Scene.set(t);
    const options = { cwd: scene.dir, env: { ...ENV, A: "≤" }, leash };
    const ran = await runProgram({ ...options, argv: ["sh", "-c", 'echo "$0 $A $HMZ_MARK"; pwd'] });
    assert.match(ran.stdout, new RegExp(`^sh ≤ [\\w-]+\\.[\\w-]+\n${scene.dir}\n$`));
  });

  test(`${way}: a name is looked for on the PATH that the program has, a path from where it runs`, async (t) => {
    const scene = await Scene.set(t);
    const file = await scene.fake("echo found");
    const name = file.slice(scene.dir.length + 1);
    const argvs = [[name], [`./${name}`], [file]];
    for (const argv of argvs) {
      const env = { PATH: `/nowhere:${scene.dir}:/usr/bin:/bin` };
      assert.equal((await runProgram({ argv, cwd: scene.dir, env, leash })).stdout, "found\n");
    }
    await assert.rejects(runProgram({ argv: [name], cwd: scene.dir, env: ENV, leash }), { code: "ENOENT" });
  });

  test(`${way}: a script without an interpreter's line is sh's`, async (t) => {
    const scene = await Scene.set(t);
    await writeFile(join(scene.dir, "plain"), "echo plain\n", { mode: 0o755 });
    assert.equal((await runProgram({ argv: ["./plain"], cwd: scene.dir, env: ENV, leash })).stdout, "plain\n");
  });

  test(`${way}: what is running is ended before the timeout is told`, async (t) => {
    const scene = await Scene.set(t);
    const ran = await runProgram({
      argv: ["sh", "-c", "echo some; sleep 60"],
      cwd: scene.dir,
      env: ENV,
      timeout: 100,
      leash,
    });
    assert.deepEqual({ ...ran }, { status: 143, stdout: "some\n", stderr: "", truncated: false, timedOut: true });
  });
}

test("the leash lies where it is built, or says why not", () => {
  const found = leash();
  if ("path" in found) assert.match(found.path, /native\/leash\/bin\/linux-\w+\/leash$/);
  else assert.match(found.missing, /\w/);
});
