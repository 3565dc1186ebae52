import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { z } from "zod";
import * as ours from "../flows/index.ts";
import { definition } from "../flows/definition.ts";
import { FlowDefinitionError, FlowLoadConflict, FlowNotFound, FlowRefError } from "../flows/errors.ts";
import type { Flow } from "../flows/flow.ts";
import { type Catalog, createCatalog } from "./index.ts";

const top = realpathSync(mkdtempSync(join(tmpdir(), "hmz-catalog-")));
after(() => rmSync(top, { recursive: true, force: true }));

let base: string;
let catalog: Catalog;
let count = 0;

beforeEach(() => {
  count += 1;
  base = join(top, String(count));
  catalog = createCatalog({
    workspace: join(base, "work"),
    userFlows: join(base, "user"),
    builtin: join(base, "builtin"),
    flowverses: [{ name: "theirs", installed: join(base, "theirs") }],
    cache: join(base, "cache"),
  });
});

function file(path: string, text: string): string {
  const whole = join(base, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
  return whole;
}

const HEAD = `import { flow } from "hmz/flows";\n`;

/** A flow that returns a value; the catalog runs nothing, so the test calls its function. */
function said(flow: Flow): unknown {
  return definition(flow).run("", {} as never);
}

async function refused(asked: Promise<unknown>, kind: new (message: string) => Error, message: string): Promise<Error> {
  let found: Error | undefined;
  await assert.rejects(asked, (error) => {
    assert.ok(error instanceof kind, String(error));
    assert.equal(error.message, message);
    found = error;
    return true;
  });
  return found as Error;
}

test("a TypeScript directory, its own modules included, with types that are stripped", async () => {
  file(
    "user/deep/index.ts",
    `/**\n * Two lines,\n * of which this is not shown.\n */\n${HEAD}import { words } from "./lib/words.ts";\nimport data from "./data.json" with { type: "json" };
interface Nothing { readonly a: string }
export const deep = flow({}, (_task: string, _given: unknown): string => words() + data.end);`,
  );
  file(
    "user/deep/lib/words.ts",
    `import { more } from "../more.mjs";\nexport const words = (): string => "one " + more;`,
  );
  file("user/deep/more.mjs", `export const more = "two ";`);
  file("user/deep/data.json", `{ "end": "three" }`);
  const deep = await catalog.load("deep");
  assert.equal(said(deep), "one two three");
  assert.deepEqual([deep.name, deep.ref, deep.description], ["deep", "deep:deep", "Two lines,"]);
  assert.equal(definition(deep).identity.directory, join(base, "user/deep"));
  assert.deepEqual(catalog.origin(deep)?.entry, join(base, "user/deep/index.ts"));
});

test("a .js file is a module whatever package.json says, and needs no node_modules", async () => {
  file("work/package.json", `{ "type": "commonjs" }`);
  file("work/.hmz/flows/plain.js", `${HEAD}import { z } from "zod";\nexport const plain = flow({}, () => z.string);`);
  assert.equal(said(await catalog.load("plain")), z.string);
});

test("a flow imports the copy of hmz that runs, although another is nearer", async () => {
  file("user/node_modules/hmz/package.json", `{ "name": "hmz", "exports": { "./flows": "./wrong.js" } }`);
  file("user/node_modules/hmz/wrong.js", `export const flow = () => { throw new Error("the wrong hmz"); };`);
  file(
    "user/node_modules/zod/package.json",
    `{ "name": "zod", "exports": { ".": "./wrong.js", "./own": "./wrong.js" } }`,
  );
  file("user/node_modules/zod/wrong.js", `export const z = "the wrong zod";`);
  file("user/node_modules/helper/package.json", `{ "name": "helper", "type": "module", "exports": "./index.js" }`);
  file(
    "user/node_modules/helper/index.js",
    `import * as flows from "hmz/flows";\nimport { z } from "zod";\nexport { flows, z };`,
  );
  file(
    "user/same.ts",
    `import * as flows from "hmz/flows";\nimport * as helper from "helper";\nimport { z } from "zod";
export const same = flows.flow({}, () => ({ flows, z, helper }));`,
  );
  const seen = said(await catalog.load("same")) as {
    flows: unknown;
    z: unknown;
    helper: { flows: unknown; z: unknown };
  };
  assert.equal((seen.flows as typeof ours).flow, ours.flow);
  assert.equal((seen.helper.flows as typeof ours).flow, ours.flow);
  assert.equal(seen.z, z);
  // A library of the flow's own keeps the zod that it was written for.
  assert.equal(seen.helper.z, "the wrong zod");
});

test("a flow under node_modules, as those in the package are, is stripped too", async () => {
  file("node_modules/pkg/flows/typed.ts", `${HEAD}const a: number = 1;\nexport const typed = flow({}, () => a);`);
  assert.equal(said(await catalog.load(join(base, "node_modules/pkg/flows/typed"))), 1);
});

test("a module whose files changed is imported anew, and a run keeps its copy", async () => {
  const index = `${HEAD}import { value } from "./value.ts";\nexport const change = flow({}, () => value);`;
  file("user/change/index.ts", index);
  file("user/change/value.ts", `export const value: number = 1;`);
  const run = catalog.loader();
  const first = await run("change");
  assert.equal(await catalog.load("change"), first);
  file("user/change/value.ts", `export const value: number = 2;`);
  assert.equal(await run("change"), first);
  assert.equal(await run(":change", definition(first).identity), first);
  const second = await catalog.load("change");
  assert.notEqual(second, first);
  assert.deepEqual([said(first), said(second)], [1, 2]);
  assert.equal(first.ref, second.ref);
  assert.equal(await catalog.load("change"), second);
});

test("what failed to import is imported anew once it is mended", async () => {
  file("user/mended.ts", `${HEAD}import "./_gone.ts";\nexport const mended = flow({}, () => 1);`);
  await assert.rejects(catalog.load("mended"), FlowDefinitionError);
  file("user/_gone.ts", ``);
  assert.equal(said(await catalog.load("mended")), 1);
});

test("two modules of one name do not collide", async () => {
  for (const place of ["user", "work/.hmz/flows"]) {
    file(
      `${place}/twin/index.ts`,
      `${HEAD}import { value } from "./value.ts";\nexport const twin = flow({}, () => value);`,
    );
    file(`${place}/twin/value.ts`, `export const value = "${place}";`);
  }
  const [user, local] = await Promise.all([catalog.load("@user/twin"), catalog.load("twin")]);
  assert.deepEqual([said(user), said(local)], ["user", "work/.hmz/flows"]);
});

test("one file under two names is two modules", async () => {
  file("user/real.ts", `${HEAD}const it = flow({}, () => 1);\nexport { it as default };`);
  symlinkSync(join(base, "user/real.ts"), join(base, "user/linked.ts"));
  assert.deepEqual(
    [(await catalog.load("real")).ref, (await catalog.load("linked")).ref, (await catalog.load("real")).ref],
    ["real:real", "linked:linked", "real:real"],
  );
});

test("a directory that is a link holds its own flows", async () => {
  file("elsewhere/thing/index.ts", `${HEAD}export const thing = flow({}, () => 1);`);
  mkdirSync(join(base, "user"), { recursive: true });
  symlinkSync(join(base, "elsewhere/thing"), join(base, "user/thing"));
  assert.equal((await catalog.load("@user/thing")).ref, "thing:thing");
});

test("a module's flows: named by declaration, export or module; what is from elsewhere is not one", async () => {
  file("user/other.ts", `${HEAD}export const other = flow({}, () => 1);`);
  file(
    "user/many/index.ts",
    `/* a licence */
// and a note
/** What the bare name means. */
${HEAD}import { inner } from "./_inner.ts";
import { other } from "../other.ts";
export { inner, other };
export const made = flow({ name: "gen-idea", description: "Makes one." }, () => 2);
const many = flow({}, () => 3);
export { many };
export default many;
export const secret = flow({ hidden: true }, () => 4);
export const notAFlow = 5;`,
  );
  file("user/many/_inner.ts", `${HEAD}export const inner = flow({}, () => 6);`);
  const many = await catalog.load("many");
  assert.deepEqual([said(many), many.description], [3, "What the bare name means."]);
  assert.equal(said(await catalog.load("many:gen-idea")), 2);
  assert.equal(said(await catalog.load("many:inner")), 6);
  assert.equal(said(await catalog.load(":secret", definition(many).identity)), 4);
  assert.equal((await catalog.load("many:inner")).description, undefined);
  await refused(
    catalog.load("many:other"),
    FlowNotFound,
    `many:other: ${join(base, "user/many")} holds no flow called 'other'; it holds gen-idea, inner, many`,
  );
  const listed = await catalog.list();
  assert.deepEqual(
    listed.map(({ name, flowverse, description }) => [name, flowverse, description]),
    [
      ["@user/many", "user", "What the bare name means."],
      ["@user/many:gen-idea", "user", "Makes one."],
      ["@user/many:inner", "user", undefined],
      ["@user/other", "user", undefined],
    ],
  );
});

test("a bare name means the flow named after the module, else the only one not hidden", async () => {
  file(
    "user/solo.ts",
    `${HEAD}export const any = flow({}, () => 1);\nexport const h = flow({ hidden: true }, () => 2);`,
  );
  assert.equal(said(await catalog.load("solo")), 1);
  assert.equal((await catalog.load("solo")).ref, "solo:any");
  file("user/def.ts", `${HEAD}export default flow({}, () => 3);`);
  assert.deepEqual([said(await catalog.load("def")), (await catalog.load("def")).name], [3, "def"]);
  file("user/humanize1.ts", `${HEAD}export const b = flow({}, () => 1);\nexport const a = flow({}, () => 2);`);
  await refused(
    catalog.load("humanize1"),
    FlowNotFound,
    `humanize1: ${join(base, "user/humanize1.ts")} holds a, b and none is called 'humanize1'; name one as humanize1:<flow>`,
  );
  file("user/none.ts", `export const a = 1;`);
  await refused(catalog.load("none"), FlowNotFound, `none: ${join(base, "user/none.ts")} defines no flow`);
  assert.deepEqual(
    (await catalog.list()).map(({ name }) => name),
    ["@user/def", "@user/humanize1:a", "@user/humanize1:b", "@user/solo"],
  );
});

test("two flows of one name, and a name that is none, are refused", async () => {
  file(
    "user/two/index.ts",
    `${HEAD}export const a = flow({}, () => 1);\nexport const b = flow({ name: "a" }, () => 2);`,
  );
  await refused(catalog.load("two"), FlowDefinitionError, `${join(base, "user/two")}: two flows are called 'a'`);
  file("user/odd.ts", `${HEAD}export const $x = flow({}, () => 1);`);
  await refused(
    catalog.load("odd"),
    FlowDefinitionError,
    `${join(base, "user/odd.ts")}: '$x' is not a flow name: letters, digits, \`_\`, \`.\` and \`-\``,
  );
});

const FAILING: readonly (readonly [what: string, name: string, text: string, said: string])[] = [
  ["TypeScript that is none", "bad.ts", `${HEAD}const x: number = = 3;`, "bad.ts:2: Expression expected"],
  ["JavaScript that is none", "bad.js", `${HEAD}\nconst x = = 3;`, "bad.js:3: Unexpected token '='"],
  [
    "an enum",
    "enum.ts",
    `${HEAD}\nenum A { B }`,
    "enum.ts:3: TypeScript enum is not supported in strip-only mode: the types of a flow are stripped, and nothing of it is compiled; write it in plain JavaScript (an enum as an object, `as const`)",
  ],
  ["a missing file", "gone.ts", `${HEAD}import "./nothing.ts";`, "gone.ts:2: Cannot find module './nothing.ts'"],
  [
    "an extension left out",
    "short.ts",
    `${HEAD}import "./ok";`,
    "short.ts:2: Cannot find module './ok'; there is './ok.ts', and an import names a file whole",
  ],
  [
    "another extension",
    "js.ts",
    `${HEAD}import "./ok.js";`,
    "js.ts:2: Cannot find module './ok.js'; there is './ok.ts', and an import names a file whole",
  ],
  ["a missing package", "pkg.ts", `${HEAD}import x from 'left-pad';`, "pkg.ts:2: Cannot find package 'left-pad'"],
  [
    "an export that is not there",
    "exp.ts",
    `${HEAD}import { z } from "zod";\nimport { no } from "./ok.ts";\nexport default no;`,
    "exp.ts:3: The requested module './ok.ts' does not provide an export named 'no'",
  ],
  [
    "a part of hmz that there is not",
    "part.ts",
    `import { x } from "hmz/engine";`,
    "part.ts:1: 'hmz/engine' is not exported by its package",
  ],
  ["an error of its own", "own.ts", `interface A {}\n\nthrow new RangeError("too\\nfar");`, "own.ts:3: too"],
  ["what is no error", "text.ts", `throw "text";`, "text"],
  [
    "the end of the process",
    "leaves.ts",
    `${HEAD}\nprocess.exit(0);`,
    "leaves.ts:3: it calls process.exit outside of its flows",
  ],
  [
    "a declaration that is wrong",
    "decl.ts",
    `${HEAD}\nexport const decl = flow({ name: "a b" }, () => 1);`,
    "decl.ts:3: a b: 'a b' is not a flow name: letters, digits, `_`, `.` and `-`",
  ],
];

for (const [what, name, text, reason] of FAILING) {
  test(`an import that fails names the file, the line and the reason: ${what}`, async () => {
    file("user/ok.ts", `${HEAD}export const ok = flow({}, () => 1);`);
    const path = file(`user/${name}`, text);
    await assert.rejects(catalog.load(`@user/${name.split(".")[0]}`), (error) => {
      assert.ok(error instanceof FlowDefinitionError);
      assert.equal(error.message, `importing the flow at ${path} failed: ${reason}`);
      assert.notEqual(error.cause, undefined);
      return true;
    });
    const line = (await catalog.list()).find(({ path: listed }) => listed === path);
    assert.equal(line?.name, `@user/${name.split(".")[0]}`);
    assert.ok(line?.error instanceof FlowDefinitionError);
    assert.deepEqual([line.flow, line.description], [undefined, undefined]);
  });
}

test("an import that never comes to an end is a failure, and the others are listed", async (t) => {
  file("user/ok.ts", `${HEAD}export const ok = flow({}, () => 1);`);
  const path = file("user/stays.ts", `${HEAD}await new Promise(() => {});\nexport const stays = flow({}, () => 1);`);
  t.after(() => rmSync(path));
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const listing = catalog.list();
  const ticking = setInterval(() => t.mock.timers.tick(10_000), 5);
  t.after(() => clearInterval(ticking));
  const listed = await listing;
  assert.match(
    String(listed.find((one) => one.path === path)?.error?.message),
    /stays\.ts failed: it does not come to an end: an await outside of its flows waits for over 10 s$/,
  );
  assert.ok(listed.some(({ name, error }) => name === "@user/ok" && error === undefined));
});

test("a failure in a module of the flow's own names that module", async () => {
  file("user/far/index.ts", `${HEAD}import "./lib/a.ts";`);
  file("user/far/lib/a.ts", `\n\nconst a: string = null.length;`);
  const error = await refused(
    catalog.load("far"),
    FlowDefinitionError,
    `importing the flow at ${join(base, "user/far")} failed: lib/a.ts:3: Cannot read properties of null (reading 'length')`,
  );
  assert.ok(error.cause instanceof TypeError);
  file("user/far/lib/a.ts", `import "./b.mjs";`);
  file("user/far/lib/b.mjs", `\nconst b = = 1;`);
  await refused(
    catalog.load("far"),
    FlowDefinitionError,
    `importing the flow at ${join(base, "user/far")} failed: lib/b.mjs:2: Unexpected token '='`,
  );
});

test("a directory may be called anything", async () => {
  const odd = "work/.hmz/flows/../odd #1 ?hmz=2 (é) %20";
  file(`${odd}/it.ts`, `${HEAD}import { a } from "./_a.ts";\nexport const it = flow({}, () => a);`);
  file(`${odd}/_a.ts`, `export const a: number = 1;`);
  file(`${odd}/bad.ts`, `${HEAD}\nnull.x;`);
  const path = join(base, odd);
  assert.equal(said(await catalog.load(join(path, "it"))), 1);
  await refused(
    catalog.load(join(path, "bad.ts")),
    FlowDefinitionError,
    `importing the flow at ${join(path, "bad.ts")} failed: bad.ts:3: Cannot read properties of null (reading 'x')`,
  );
});

test("a flow catches its own import with the code that Node gives", async () => {
  file(
    "user/tries.ts",
    `${HEAD}const code = await import("./nothing.ts" as string).catch((error) => error.code);
export const tries = flow({}, () => code);`,
  );
  assert.equal(said(await catalog.load("tries")), "ERR_MODULE_NOT_FOUND");
});

test("a relative ref needs a flow that asks", async () => {
  await refused(
    catalog.load(":review"),
    FlowRefError,
    "':review' is relative to the flow asking, and no flow is asking",
  );
  const inline = ours.flow({}, () => 1);
  await refused(
    catalog.load(":review", definition(inline).identity),
    FlowRefError,
    "':review' is relative to the flow asking, and no flow is asking",
  );
});

test("a flow that asks finds its neighbours", async () => {
  for (const place of ["user", "work/.hmz/flows"]) {
    file(`${place}/one.ts`, `${HEAD}export const one = flow({}, () => "${place}");`);
    file(`${place}/asks.ts`, `${HEAD}export const asks = flow({}, () => 1);`);
  }
  const asking = definition(await catalog.load("@user/asks")).identity;
  assert.equal(said(await catalog.load("one", asking)), "user");
  assert.equal(said(await catalog.load("one")), "work/.hmz/flows");
});

test("where nothing fetches repositories a git ref is refused, and no password is said", async () => {
  await refused(
    catalog.load("git+https://me:s3cret@host/o/r"),
    FlowNotFound,
    "git+https://***@host/o/r: repositories are not fetched here; clone it, and name the flow by its path",
  );
});

test("a flow that asks for another release of hmz is refused, and still listed", async () => {
  file("user/late/index.ts", `${HEAD}export const late = flow({}, () => 1);`);
  file("user/late/package.json", `{ "peerDependencies": { "hmz": "^99.1.0" } }`);
  await assert.rejects(catalog.load("late"), FlowLoadConflict);
  const [line] = await catalog.list();
  assert.ok(line?.name === "@user/late" && line.error instanceof FlowLoadConflict);
});

test("what is stripped is kept, and taken from what is kept", async () => {
  const text = `${HEAD}export const kept: unknown = flow({}, () => "written");`;
  file("user/kept.ts", text);
  assert.equal(said(await catalog.load("kept")), "written");
  assert.equal(readdirSync(join(base, "cache")).length, 1);
  // The same source elsewhere is another module, and one entry of what is kept.
  file("user/again.ts", text);
  assert.equal(said(await catalog.load("again")), "written");
  assert.equal(readdirSync(join(base, "cache")).length, 1);
});

test("listing shows official, then the others, then local and user, each by name", async () => {
  const text = (name: string): string => `${HEAD}export const ${name} = flow({}, () => 1);`;
  file("user/b.ts", text("b"));
  file("user/a.ts", text("a"));
  file("work/.hmz/flows/b.ts", text("b"));
  file("builtin/chat.ts", text("chat"));
  file("theirs/al/k/index.ts", text("k"));
  file("theirs/al/k/.installed.json", "{}");
  assert.deepEqual(
    (await catalog.list()).map(({ name }) => name),
    ["chat", "@theirs/al/k", "@local/b", "@user/a", "@user/b"],
  );
  assert.equal((await catalog.load("@theirs/al/k")).ref, "al/k:k");
});

test("a workspace without any directory of flows has those in the package", async () => {
  const plain = createCatalog({ workspace: join(base, "empty"), userFlows: join(base, "none") });
  const names = (await plain.list()).map(({ name, error }) => [name, error]);
  assert.deepEqual(
    names,
    ["chat", "continue_loop", "flame_chase", "goal", "ralph_loop", "rlar", "stateful_ralph"].map((n) => [n, undefined]),
  );
});
