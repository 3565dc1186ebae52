import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { permission, type PermissionLike } from "../../flows/permission.ts";
import { machineWithPrograms, Workplace } from "../../../test/loop/session.ts";
import { Toolbox } from "./toolbox.ts";

type Use = (name: string, input: Readonly<Record<string, unknown>>) => Promise<string>;

function toolbox(at: Workplace, scopes?: PermissionLike): { readonly use: Use; readonly fails: Use } {
  const box = new Toolbox(at, permission(scopes), []);
  const outcome =
    (failed: boolean): Use =>
    async (name, input) => {
      const outcome = await box.run(name, input, new AbortController().signal);
      assert.equal(outcome.failed, failed, outcome.text);
      return outcome.text;
    };
  return { use: outcome(false), fails: outcome(true) };
}

function put(at: Workplace, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(at.workdir, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}

test("read numbers the lines, from offset, as many as limit, and says how many are left", async () => {
  using at = new Workplace();
  const { use, fails } = toolbox(at);
  put(at, { a: "one\r\ntwo\nthree\n", empty: "", bin: new Uint8Array([1, 0, 2]), "d/x": "", bom: "\uFEFFhi\n" });
  assert.equal(await use("read", { path: "a" }), "     1\tone\n     2\ttwo\n     3\tthree");
  assert.equal(
    await use("read", { path: "a", offset: 2, limit: 1 }),
    "     2\ttwo\n(1 more line: read on with offset 3)",
  );
  assert.equal(await use("read", { path: join(at.workdir, "a"), offset: 3 }), "     3\tthree");
  assert.equal(await use("read", { path: "empty" }), "(the file is empty)");
  assert.equal(await use("read", { path: "bom" }), "     1\thi");
  assert.match(await fails("read", { path: "a", offset: 4 }), /a has 3 lines: line 4 is past its end/);
  assert.match(await fails("read", { path: "bin" }), /is not UTF-8 text \(3 bytes\)/);
  assert.match(await fails("read", { path: "d" }), /d is a directory/);
  assert.match(await fails("read", { path: "nope" }), /nope/);
});

test("read bounds a huge file and a huge line", async () => {
  using at = new Workplace();
  const { use } = toolbox(at);
  put(at, { long: `${"x".repeat(1e6)}\n`, many: "line of text\n".repeat(100_000) });
  const long = await use("read", { path: "long" });
  assert.ok(long.length < 3000);
  assert.match(long, /the line has 1000000 characters/);
  const many = await use("read", { path: "many" });
  assert.ok(many.length < 65_000);
  assert.match(many, /\(98000 more lines: read on with offset 2001\)$/);
});

test("write makes the directories and replaces the file", async () => {
  using at = new Workplace();
  const { use, fails } = toolbox(at);
  assert.equal(await use("write", { path: "d/e/f.txt", content: "ä\n" }), "wrote d/e/f.txt (3 bytes)");
  await use("write", { path: "d/e/f.txt", content: "b" });
  assert.equal(readFileSync(join(at.workdir, "d/e/f.txt"), "utf8"), "b");
  assert.match(await fails("write", { path: "d", content: "" }), /d is a directory/);
});

test("edit replaces what is there exactly once, or everywhere where asked", async () => {
  using at = new Workplace();
  const { use, fails } = toolbox(at);
  put(at, { a: "x = 1;\n  y = $1;\nx = 2;\n" });
  assert.equal(await use("edit", { path: "a", old: "y = $1", new: "y = $&$2" }), "edited a: 1 place");
  assert.match(await fails("edit", { path: "a", old: "x = ", new: "z = " }), /old is in a 2 times/);
  assert.equal(await use("edit", { path: "a", old: "x = ", new: "z = ", replaceAll: true }), "edited a: 2 places");
  assert.equal(readFileSync(join(at.workdir, "a"), "utf8"), "z = 1;\n  y = $&$2;\nz = 2;\n");
  assert.match(await fails("edit", { path: "a", old: "z=1;", new: "" }), /old is not in a: read the file again/);
  assert.match(await fails("edit", { path: "a", old: "z  =  1;", new: "" }), /its blanks or line breaks differ/);
  assert.match(await fails("edit", { path: "a", old: "z", new: "z" }), /nothing would change/);
  assert.match(await fails("edit", { path: "nope", old: "a", new: "b" }), /nope/);
});

test("edit keeps CRLF and a byte order mark, and leaves bytes alone that are no text", async () => {
  using at = new Workplace();
  const { use, fails } = toolbox(at);
  put(at, { crlf: "\uFEFFa\r\nb\r\nc\r\n", bin: new Uint8Array([0x61, 0xff, 0x62]) });
  await use("edit", { path: "crlf", old: "a\nb", new: "a\nB\nb" });
  assert.equal(readFileSync(join(at.workdir, "crlf"), "utf8"), "\uFEFFa\r\nB\r\nb\r\nc\r\n");
  assert.match(await fails("edit", { path: "bin", old: "a", new: "c" }), /is not UTF-8 text/);
});

test("shell runs bash in the workdir, and says output, error output and status", async () => {
  using at = new Workplace();
  const { use, fails } = toolbox(at);
  assert.equal(await use("shell", { command: "[[ 1 == 1 ]] && pwd" }), at.workdir);
  assert.equal(await use("shell", { command: "echo out; echo err >&2; exit 3" }), "out\nstderr:\nerr\nexit status 3");
  assert.equal(await use("shell", { command: "cat" }), "(no output)");
  assert.match(await fails("shell", { command: "echo early; sleep 60", timeout: 0.05 }), /50/);
  const long = await use("shell", { command: "seq 100000" });
  assert.ok(long.length < 31_000);
  assert.match(long, /^1\n2\n[^]*characters left out[^]*\n100000$/);
});

test("shell does without bash where there is none", async () => {
  using tools = new Workplace();
  mkdirSync(join(tools.workdir, "bin"));
  for (const name of ["sh", "echo"]) symlinkSync(whereIs(name), join(tools.workdir, "bin", name));
  using at = new Workplace(machineWithPrograms(join(tools.workdir, "bin")));
  assert.equal(await toolbox(at).use("shell", { command: "echo $0" }), "sh");
});

test("paths outside of the workdir follow the permission, whichever way they are spelled", async () => {
  using at = new Workplace();
  using other = new Workplace();
  put(other, { secret: "s\n" });
  const outside = join(other.workdir, "secret");
  const around = `sub/../../${other.workdir.slice(other.workdir.lastIndexOf("/") + 1)}/secret`;
  const usual = toolbox(at);
  assert.equal(await usual.use("read", { path: around }), "     1\ts");
  for (const path of [outside, around]) {
    assert.match(await usual.fails("write", { path, content: "" }), /outside of the working directory.*system=read/);
    assert.match(await usual.fails("edit", { path, old: "s", new: "t" }), /outside of the working directory/);
  }
  assert.match(await usual.fails("write", { path: `${at.workdir}-sibling/x`, content: "" }), /outside/);
  const shut = toolbox(at, { user: "none", system: "none" });
  for (const [tool, input] of [
    ["read", { path: outside }],
    ["list", { path: other.workdir }],
    ["search", { path: other.workdir, pattern: "s" }],
  ] as const) {
    assert.match(await shut.fails(tool, input), /may not be read: this session's permission has system=none/);
  }
  const open = toolbox(at, { user: "all", system: "all" });
  await open.use("write", { path: outside, content: "t" });
  assert.equal(readFileSync(outside, "utf8"), "t");
});

test("the home directory is the machine's, and of the user scope", async () => {
  using at = new Workplace();
  const { fails } = toolbox(at, { user: "read", system: "none" });
  assert.match(await fails("write", { path: join(homedir(), "x"), content: "" }), /user=read/);
  assert.match(await fails("read", { path: "/etc/hostname" }), /system=none/);
});

test("list shows a directory, and finds files by glob", async () => {
  using at = new Workplace();
  const { use, fails } = toolbox(at);
  put(at, { "a.ts": "", "src/b.ts": "", "src/deep/c.tsx": "", "src/d.js": "", ".hidden": "" });
  assert.equal(await use("list", {}), ".hidden\na.ts\nsrc/");
  assert.equal(await use("list", { glob: "*.{ts,tsx}" }), "a.ts\nsrc/b.ts\nsrc/deep/c.tsx");
  assert.equal(await use("list", { path: "src", glob: "*.ts" }), "src/b.ts");
  assert.equal(await use("list", { path: "src", glob: "deep/*" }), "src/deep/c.tsx");
  assert.equal(await use("list", { glob: "*.py" }), "(nothing found)");
  put(at, { "-name/x.md": "needle\n" });
  assert.equal(await use("list", { path: "-name", glob: "x.*" }), "-name/x.md");
  assert.equal(await use("search", { path: "-name", pattern: "needle" }), "-name/x.md:1:needle");
  assert.equal(await use("list", { path: "-name" }), "x.md");
  assert.match(await fails("list", { path: "a.ts" }), /a.ts is not a directory/);
  mkdirSync(join(at.workdir, "void"));
  assert.equal(await use("list", { path: "void" }), "(the directory is empty)");
});

/** Each way that search and list can go, on a machine that has no other. */
for (const road of ["ripgrep", "git", "plain"] as const) {
  test(`search and list agree, by ${road}`, { skip: road === "ripgrep" && whereIs("rg") === "" }, async () => {
    using tools = new Workplace();
    mkdirSync(join(tools.workdir, "bin"));
    const had = ["sh", "head", "ls", ...{ ripgrep: ["rg"], git: ["git"], plain: ["find", "grep"] }[road]];
    for (const name of had) symlinkSync(whereIs(name), join(tools.workdir, "bin", name));
    using at = new Workplace(machineWithPrograms(join(tools.workdir, "bin")));
    const { use, fails } = toolbox(at);
    execFileSync("git", ["init", "-q"], { cwd: at.workdir });
    put(at, {
      "src/a.ts": "const one = 1;\nconst word_2 = 22;\n",
      "src/b c.tsx": "CONST three = 3;\n",
      "it's.md": "const in words\n",
      "ä.md": "const too\n",
      "bin.dat": new Uint8Array([99, 111, 110, 115, 116, 0, 1]),
    });
    assert.equal(await use("search", { pattern: "const \\w+_\\d = \\d{2}" }), "src/a.ts:2:const word_2 = 22;");
    assert.equal(
      (await use("search", { pattern: "^const", ignoreCase: true, filesOnly: true, glob: "*.{ts,tsx}" }))
        .split("\n")
        .sort()
        .join("|"),
      "src/a.ts|src/b c.tsx",
    );
    assert.equal(await use("search", { pattern: "const", path: "it's.md" }), "it's.md:1:const in words");
    assert.equal(await use("search", { pattern: "too" }), "ä.md:1:const too");
    assert.equal(await use("search", { pattern: "$(touch pwned)`id`'" }), "(nothing found)");
    assert.match(await use("search", { pattern: "const", limit: 1 }), /^.*:1:const .*\n\(\d more: /);
    assert.match(await fails("search", { pattern: "(" }), /./);
    assert.equal(await use("list", { glob: "src/*" }), "src/a.ts\nsrc/b c.tsx");
    assert.equal(await use("list", { glob: "*'s.md" }), "it's.md");
  });
}

test("search leaves ignored files out in a repository", async () => {
  using at = new Workplace();
  execFileSync("git", ["init", "-q"], { cwd: at.workdir });
  put(at, { ".gitignore": "out/\n", "out/x": "needle\n", y: "needle\n" });
  const { use } = toolbox(at);
  assert.equal(await use("search", { pattern: "needle" }), "y:1:needle");
  assert.equal(await use("list", { glob: "*" }), ".gitignore\ny");
});

test("a place outside of the workdir is searched from itself", async () => {
  using at = new Workplace();
  using other = new Workplace();
  put(other, { "d/x": "needle\n" });
  const { use, fails } = toolbox(at);
  assert.equal(await use("search", { pattern: "needle", path: other.workdir }), `in ${other.workdir}:\nd/x:1:needle`);
  assert.equal(
    await use("search", { pattern: "needle", path: join(other.workdir, "d/x") }),
    `in ${other.workdir}/d:\nx:1:needle`,
  );
  assert.match(await fails("search", { pattern: "x", path: "/no/such/place" }), /no\/such\/place is not there/);
});

function whereIs(name: string): string {
  return spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim();
}
