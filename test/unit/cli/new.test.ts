import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { fresh, typed } from "./in-process.ts";

const COPY = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");

test("a new flow is listed, shown, and its test is beside it", async () => {
  const cwd = fresh();
  const { status, stdout } = await typed(["new", "two-passes"], { cwd });
  assert.equal(status, 0);
  for (const said of [
    "wrote .hmz/flows/two-passes/index.ts",
    "wrote .hmz/flows/two-passes/index.test.ts",
    "  node --test .hmz/flows/two-passes/index.test.ts",
    "  hmz flows two-passes",
  ]) {
    assert.ok(stdout.includes(`${said}\n`), said);
  }
  assert.match((await typed(["flows"], { cwd })).stdout, /^@local\/two-passes +Does the work, then reads it back/m);
  const sheet = JSON.parse((await typed(["flows", "two-passes", "--json"], { cwd })).stdout) as Record<string, unknown>;
  assert.equal(sheet["ref"], "two-passes:two-passes");
  assert.equal(readlinkSync(join(cwd, ".hmz/node_modules/hmz")), COPY);
  assert.deepEqual(JSON.parse(readFileSync(join(cwd, ".hmz/package.json"), "utf8")), { private: true, type: "module" });
});

for (const [name, identifier] of [
  ["twice", "twice"],
  ["two-passes", "twoPasses"],
  ["class", "classFlow"],
  ["agent", "agentFlow"],
  ["2nd", "flow2nd"],
  ["a-2", "a2"],
  ["trailing-", "trailing"],
] as const) {
  test(`'${name}' is exported as ${identifier}, and found by its name`, async () => {
    const cwd = fresh();
    await typed(["new", name], { cwd });
    assert.match(
      readFileSync(join(cwd, `.hmz/flows/${name}/index.ts`), "utf8"),
      new RegExp(`export const ${identifier} =`),
    );
    assert.equal((await typed(["flows", name], { cwd })).stderr, "");
  });
}

for (const name of ["", "../out", "a/b", ".hidden", "_private", "a b", "a.b", "-x", "a\nb", "é"]) {
  test(`${JSON.stringify(name)} is no name, and nothing is written`, async () => {
    const cwd = fresh();
    const { status, stderr } = await typed(["new", "--", name], { cwd });
    assert.equal(status, 2);
    assert.match(stderr, /hmz new: error: '[^]*' is not a name for a flow: letters, digits, /);
    assert.deepEqual(readdirSync(cwd), []);
  });
}

test("a name that is taken is refused, whichever shape holds it", async () => {
  const cwd = fresh();
  mkdirSync(join(cwd, ".hmz/flows/one"), { recursive: true });
  writeFileSync(join(cwd, ".hmz/flows/two.ts"), "// mine");
  assert.match(
    (await typed(["new", "one"], { cwd })).stderr,
    /\.hmz\/flows\/one is there already: choose another name/,
  );
  assert.equal((await typed(["new", "two"], { cwd })).status, 2);
  assert.ok(!existsSync(join(cwd, ".hmz/flows/two")));
});

test("what is there beside the flow is left, a link to another copy is turned round", async () => {
  const cwd = fresh();
  mkdirSync(join(cwd, ".hmz/node_modules"), { recursive: true });
  writeFileSync(join(cwd, ".hmz/tsconfig.json"), "{}");
  symlinkSync("/nowhere", join(cwd, ".hmz/node_modules/hmz"));
  await typed(["new", "one"], { cwd });
  assert.equal(readFileSync(join(cwd, ".hmz/tsconfig.json"), "utf8"), "{}");
  assert.equal(readlinkSync(join(cwd, ".hmz/node_modules/hmz")), COPY);

  assert.equal((await typed(["new", "--link"], { cwd })).stdout, "the links are there already\n");
  rmSync(join(cwd, ".hmz/node_modules"), { recursive: true });
  mkdirSync(join(cwd, ".hmz/node_modules/hmz"), { recursive: true });
  await typed(["new", "--link"], { cwd });
  // An installed package is somebody's choice.
  assert.throws(() => readlinkSync(join(cwd, ".hmz/node_modules/hmz")), { code: "EINVAL" });
});

test("a name or --link, one of them", async () => {
  assert.match((await typed(["new"])).stderr, /give a name for the flow, or --link alone/);
  assert.equal((await typed(["new", "one", "--link"])).status, 2);
});
