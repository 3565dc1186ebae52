import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
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
    `  ${COPY}/bin/hmz.js flows two-passes`,
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
  writeFileSync(join(cwd, ".hmz/node_modules/hmz/package.json"), "{}");
  await typed(["new", "--link"], { cwd });
  // An installed package is somebody's choice.
  assert.throws(() => readlinkSync(join(cwd, ".hmz/node_modules/hmz")), { code: "EINVAL" });
});

test("a name or --link, one of them", async () => {
  assert.match((await typed(["new"])).stderr, /give a name for the flow, or --link alone/);
  assert.equal((await typed(["new", "one", "--link"])).status, 2);
});

test("where a package should be, an empty directory gives way to the link, and anything else is refused", async () => {
  const cwd = fresh();
  const hmz = join(cwd, ".hmz/node_modules/hmz");
  mkdirSync(hmz, { recursive: true });
  assert.match((await typed(["new", "--link"], { cwd })).stdout, /^made \.hmz\/node_modules\/hmz$/m);
  assert.equal(readlinkSync(hmz), COPY);
  rmSync(hmz);
  mkdirSync(join(hmz, "dist"), { recursive: true });
  assert.deepEqual(await typed(["new", "--link"], { cwd }), {
    status: 2,
    stdout: "",
    stderr: "hmz new: error: .hmz/node_modules/hmz is no package: remove it, then run hmz new --link\n",
  });
});

test("a name that another place's flow has is said to stand before it", async () => {
  const cwd = fresh();
  const { stdout } = await typed(["new", "chat"], { cwd });
  assert.match(
    stdout,
    /^Here, chat is this flow from now on: it stands before the one in the package, .* @official\/chat$/m,
  );
  assert.equal((await typed(["flows", "@official/chat"], { cwd })).status, 0);
  assert.doesNotMatch((await typed(["new", "nobodys"], { cwd })).stdout, /stands before/);
});

/** Everything under a directory, links by where they lead. */
function tree(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return entry.isSymbolicLink() ? `${path} -> ${readlinkSync(path)}` : path;
    })
    .sort();
}

for (const [what, make, argv] of [
  ["a name that is too long", () => {}, ["n".repeat(300)]],
  [".hmz a file", (cwd: string) => writeFileSync(join(cwd, ".hmz"), ""), ["one"]],
  [".hmz/flows a file", (cwd: string) => inside(cwd, "flows"), ["one"]],
  [".hmz/node_modules a file", (cwd: string) => inside(cwd, "node_modules"), ["one"]],
  [".hmz/node_modules a file", (cwd: string) => inside(cwd, "node_modules"), ["--link"]],
  [".hmz/node_modules/@types a file", (cwd: string) => inside(cwd, "node_modules/@types"), ["one"]],
  [".hmz a link that leads nowhere", (cwd: string) => symlinkSync("nowhere/at/all", join(cwd, ".hmz")), ["one"]],
  [".hmz a link to itself", (cwd: string) => symlinkSync(".hmz", join(cwd, ".hmz")), ["one"]],
  ["a flow that is a link to nowhere", (cwd: string) => inside(cwd, "flows/one", "link"), ["one"]],
  ["a tsconfig.json that is a link to nowhere", (cwd: string) => inside(cwd, "tsconfig.json", "link"), ["one"]],
] as const) {
  test(`hmz new ${argv[0].slice(0, 9)}, ${what}: one sentence, and nothing half written`, async () => {
    const cwd = fresh();
    make(cwd);
    const before = tree(cwd);
    const { status, stdout, stderr } = await typed(["new", ...argv], { cwd });
    assert.match(stderr, /^hmz new: error: (?!.*(?:syscall|ENO|EEX|ELO|EAC)).*\n$/);
    assert.deepEqual([status, stdout, tree(cwd)], [2, "", before]);
  });
}

function inside(cwd: string, path: string, what: "file" | "link" = "file"): void {
  const file = join(cwd, ".hmz", path);
  mkdirSync(join(file, ".."), { recursive: true });
  if (what === "link") symlinkSync("nowhere", file);
  else writeFileSync(file, "");
}

test("whatever a flow is called, what is written is right: it type-checks, is found, and its test passes", async () => {
  const cwd = fresh();
  await typed(["new", "first"], { cwd });
  const own = ["index.ts", "index.test.ts"].map((file) => readFileSync(join(cwd, ".hmz/flows/first", file), "utf8"));
  const words = new Set([
    // Every word of the templates, the words of their strings among them.
    ...own.flatMap((text) => text.match(/[A-Za-z]\w*/g) ?? []),
    ...(
      "abstract any arguments as async await boolean break case catch class const constructor continue debugger " +
      "declare default delete do else enum eval export exports extends false finally for from function get global " +
      "globalThis hasOwnProperty if implements import in infer instanceof interface is keyof let module namespace NaN " +
      "never new null number object Object of package private process Promise protected prototype public readonly " +
      "require return satisfies set static string super switch symbol then this throw toString true try type typeof " +
      "undefined unique unknown using var void while with yield console name length hmz zod index show last"
    ).split(" "),
  ]);
  words.delete("first");
  // Not every file system tells `Read` from `read`.
  const lower = new Set<string>();
  for (const word of words) {
    if (lower.has(word.toLowerCase())) words.delete(word);
    lower.add(word.toLowerCase());
  }
  for (const word of words) assert.equal((await typed(["new", word], { cwd })).status, 0, word);

  const listed = (await typed(["flows", "--json"], { cwd })).stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { name: string; error?: string });
  assert.deepEqual(
    listed.filter(({ error }) => error !== undefined),
    [],
  );
  const names = new Set(listed.map(({ name }) => name));
  for (const word of words) assert.ok(names.has(`@local/${word}`), word);

  const checked = spawnSync(
    process.execPath,
    [join(COPY, "node_modules/typescript/bin/tsc"), "-p", join(cwd, ".hmz"), "--customConditions", "hmz-source"],
    { encoding: "utf8", cwd },
  );
  assert.deepEqual(
    checked.stdout.split("\n").filter((line) => line.includes("flows/") && !line.includes("src/")),
    [],
  );
  const tests = [...words].map(
    (word) => `await import(${JSON.stringify(join(cwd, ".hmz/flows", word, "index.test.ts"))});`,
  );
  writeFileSync(join(cwd, ".hmz/all.mjs"), tests.join("\n"));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const ran = spawnSync(
    process.execPath,
    ["--conditions=hmz-source", "--disable-warning=ExperimentalWarning", join(cwd, ".hmz/all.mjs")],
    { encoding: "utf8", env },
  );
  assert.equal(ran.status, 0, ran.stdout.slice(-2_000) + ran.stderr.slice(-2_000));
  assert.match(ran.stdout, new RegExp(`pass ${words.size}$`, "m"));
});
