import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { FlowNotFound } from "../flows/errors.ts";
import { findByName, findByPath, type FoundModule, modulesIn } from "./find.ts";
import { type CatalogPlaces, placesOf, shownPath } from "./places.ts";
import { parseRef } from "./ref.ts";

const top = realpathSync(mkdtempSync(join(tmpdir(), "hmz-find-")));
after(() => rmSync(top, { recursive: true, force: true }));

let places: CatalogPlaces;
let base: string;
let count = 0;

beforeEach(() => {
  count += 1;
  base = join(top, String(count));
  places = {
    workspace: join(base, "work"),
    userFlows: join(base, "user"),
    builtin: join(base, "builtin"),
    flowverses: [
      { name: "theirs", installed: join(base, "theirs") },
      { name: "official", installed: join(base, "official") },
      { name: "others", installed: join(base, "others") },
    ],
  };
});

function file(path: string, text = ""): string {
  const whole = join(base, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
  return whole;
}

function find(ref: string, asking?: FoundModule): FoundModule {
  const parsed = parseRef(ref);
  if (parsed.kind === "name") return findByName(parsed, places, asking);
  if (parsed.kind === "path") return findByPath(parsed, places);
  throw new Error(ref);
}

function refused(ref: string, message: string): void {
  assert.throws(
    () => find(ref),
    (error) => {
      assert.ok(error instanceof FlowNotFound);
      assert.equal(error.message, message);
      return true;
    },
  );
}

test("the nearest place wins: local, user, built in, official, the others by name", () => {
  const nearest = [
    file("theirs/x/index.ts"),
    file("others/x/index.ts"),
    file("official/x/index.ts"),
    file("builtin/x.ts"),
    file("user/x.ts"),
    file("work/.hmz/flows/x.ts"),
  ];
  for (const verse of ["others", "theirs", "official"]) file(`${verse}/x/.installed.json`, "{}");
  for (const entry of nearest.toReversed()) {
    assert.equal(find("x").entry, entry);
    rmSync(entry);
  }
  refused("x", "x: no flow is called 'x'");
});

test("a directory wins over a file, and index.ts over the other extensions", () => {
  file("user/x.ts");
  for (const extension of ["mjs", "mts", "js", "ts"]) {
    const entry = file(`user/x/index.${extension}`);
    assert.deepEqual([find("x").entry, find("x").single, find("x").directory], [entry, false, join(base, "user/x")]);
  }
});

test("what starts with _, a directory without an index, a test and a declaration are no flows", () => {
  for (const path of [
    "_x.ts",
    "_y/index.ts",
    "bare/readme.md",
    "a.test.ts",
    "a.d.ts",
    "node_modules/index.js",
    "n.txt",
  ]) {
    file(`user/${path}`);
  }
  file("user/good.mts");
  file("user/bare.js");
  for (const name of ["_x", "_y", "a.test", "a.d", "node_modules", "n"])
    refused(name, `${name}: no flow is called '${name}'`);
  const user = placesOf(places).find(({ flowverse }) => flowverse === "user");
  assert.deepEqual(user && modulesIn(user).map(({ listed }) => listed), ["@user/bare", "@user/good"]);
});

test("an installed flow has its .installed.json, and may be under a user", () => {
  file("theirs/alice/kernel/index.ts");
  refused("@theirs/alice/kernel", "@theirs/alice/kernel: no flow is called '@theirs/alice/kernel'");
  file("theirs/alice/kernel/.installed.json", "torn{");
  refused("@theirs/alice/kernel", "@theirs/alice/kernel: no flow is called '@theirs/alice/kernel'");
  file("theirs/alice/kernel/.installed.json", "{}");
  assert.equal(find("@theirs/alice/kernel").listed, "@theirs/alice/kernel");
  refused("alice/kernel", "alice/kernel: no flow is called 'alice/kernel'");
  file("official/alice/kernel/index.ts");
  file("official/alice/kernel/.installed.json", "{}");
  assert.equal(find("alice/kernel").listed, "alice/kernel");
  const listed = placesOf(places).flatMap(modulesIn);
  assert.deepEqual(
    listed.map(({ listed }) => listed),
    ["alice/kernel", "@theirs/alice/kernel"],
  );
});

test("a flow that asks finds those beside it first, an installed one those of its flowverse", () => {
  for (const path of ["user/a.ts", "user/b.ts", "work/.hmz/flows/b.ts", "elsewhere/c/index.ts", "elsewhere/b.ts"])
    file(path);
  assert.equal(find("b").listed, "@local/b");
  assert.equal(find("b", find("a")).listed, "@user/b");
  assert.equal(find("b", find("../elsewhere/c".replace("..", base))).entry, join(base, "elsewhere/b.ts"));
  for (const verse of ["theirs", "official"]) {
    for (const flow of ["m", "al/k"]) {
      file(`${verse}/${flow}/index.ts`);
      file(`${verse}/${flow}/.installed.json`, "{}");
    }
  }
  const asking = find("@theirs/al/k");
  assert.equal(find("m", asking).listed, "@theirs/m");
  assert.equal(find("al/k", asking).listed, "@theirs/al/k");
  assert.equal(find("al/k").listed, "al/k");
  assert.equal(find("b", asking).listed, "@local/b");
});

test("a path is a directory, its index, a file, or a file without its extension", () => {
  const entry = file("work/loops/x/index.js");
  const single = file("work/loops/y.mts");
  for (const ref of ["./loops/x", "./loops/x/index.js", "./loops/x/index", entry]) assert.equal(find(ref).entry, entry);
  for (const ref of ["./loops/y", "./loops/y.mts"]) assert.equal(find(ref).entry, single);
  assert.equal(find("./loops/x/index").single, false);
  assert.equal(find("./loops/y").name, "y");
  refused("./loops", `./loops: there is no flow at ${join(base, "work/loops")}`);
  refused("~/no/such/flow", "~/no/such/flow: there is no flow at ~/no/such/flow");
  file("work/notes.txt");
  refused("./notes.txt", `./notes.txt: there is no flow at ${join(base, "work/notes.txt")}`);
});

test("a name that nothing answers to is told what may be meant", () => {
  file("work/flows/x.ts");
  refused("local/x", "local/x: a flow of local is called @local/x now");
  refused("theirs/x", "theirs/x: a flow of theirs is called @theirs/x now");
  refused("official/x", "official/x: a flow of official is called x now");
  refused("flows/x", "flows/x: a path starts with ./, / or ~, as ./flows/x does");
  refused("@nobody/x", "@nobody/x: no flow is called '@nobody/x'");
});

test("a name that an index lists, or may list, says so", () => {
  const verses = places.flowverses ?? [];
  const withIndex = (indexes: Record<string, { fetched?: boolean; lists?: (flow: string) => boolean }>): void => {
    places = { ...places, flowverses: verses.map((verse) => ({ ...verse, ...indexes[verse.name] })) };
  };
  withIndex({ others: { fetched: true, lists: (flow) => flow === "x" || flow === "al/k" } });
  refused("x", "x: not installed -- install it from /flow (flowverse others)");
  refused("@others/al/k", "@others/al/k: not installed -- install it from /flow (flowverse others)");
  refused("al/k", "al/k: no flow is called 'al/k'");
  withIndex({ official: { fetched: false } });
  refused("x", "x: the official flowverse has not been fetched yet -- fetch it from /flow");
  refused("al/k", "al/k: the official flowverse has not been fetched yet -- fetch it from /flow");
  refused("@theirs/x", "@theirs/x: no flow is called '@theirs/x'");
  withIndex({ official: { fetched: false }, theirs: { fetched: false } });
  refused("x", "x: the official and theirs flowverses have not been fetched yet -- fetch them from /flow");
});

test("a path under the home directory is shown with ~", () => {
  assert.equal(shownPath(join(homedir(), ".hmz/flows/x")), "~/.hmz/flows/x");
  assert.equal(shownPath(`${homedir()}er/x`), `${homedir()}er/x`);
});
