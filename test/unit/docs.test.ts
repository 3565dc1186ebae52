/** The documentation says what is so: its code is the examples', its commands exist, its links lead somewhere. */

import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { markedBlocks, regionOf } from "../../scripts/examples.js";
import { HELP } from "../../src/cli/help.ts";
import { typed } from "./cli/in-process.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const pages = ["README.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md", { cwd: root })].sort();
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const blocks = (page: string, ...languages: readonly string[]): string[] =>
  [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, language, text]) =>
    languages.includes(language as string) ? [text as string] : [],
  );
const squeezed = (text: string): string => text.replace(/\s+/g, " ").trim();

describe("the blocks of code in the documentation", () => {
  const examples = squeezed(
    globSync("examples/**/*.ts", { cwd: root })
      .map((path) => read(path))
      .join("\n"),
  );

  for (const path of pages.filter((page) => !page.includes("/reference/"))) {
    const page = read(path);
    const marked = markedBlocks(page);
    const unmarked = blocks(page, "ts").filter((text) => !marked.some((block) => block.text === text));
    if (marked.length + unmarked.length === 0) continue;

    it(`of ${path} are the examples'`, () => {
      for (const { file, region, text } of marked) {
        assert.equal(text, regionOf(read(file), region), `${file}#${region}: npm run docs`);
      }
      for (const text of unmarked) {
        // Part by part: a page may leave out what stands between.
        for (const part of text.replace(/^\/\/ \S+\n/, "").split("\n\n")) {
          assert.ok(examples.includes(squeezed(part)), `no example has this, which ${path} shows:\n${part}`);
        }
      }
    });
  }
});

describe("the commands in the documentation", () => {
  for (const path of pages) {
    const commands = blocks(read(path), "sh").flatMap((text) => text.split("\n").flatMap(commandsIn));
    if (commands.length === 0) continue;

    it(`of ${path} exist, with their options`, async () => {
      for (const words of commands) {
        const [command = "", ...rest] = words;
        assert.ok(new RegExp(`^  ${command} `, "m").test(HELP), `${path}: there is no hmz ${command}`);
        const help = await typed([command, "--help"]);
        assert.equal(help.status, 0, help.stderr);
        for (const option of rest.filter((word) => /^--?[a-z]/.test(word))) {
          const name = option.split("=")[0] as string;
          assert.ok(new RegExp(`(^|[\\s\\[|])${name}\\b`, "m").test(help.stdout), `${path}: hmz ${command} ${name}`);
        }
      }
    });
  }

  it("are found in a line with another before them", () => {
    assert.deepEqual(commandsIn('cd hmz && npx hmz exec -f "a b" x # hmz no'), [["exec", "-f", "a b", "x"]]);
  });
});

/** The words of each hmz command in a line of shell, without the program's own. */
function commandsIn(line: string): string[][] {
  const words = [...line.replace(/\s#.*$/, "").matchAll(/"([^"]*)"|(\S+)/g)];
  const found: string[][] = [];
  let going: string[] | undefined;
  let first = true;
  for (const word of words.map(([, quoted, bare]) => quoted ?? bare ?? "")) {
    if (["&&", "||", ";", "|"].includes(word)) {
      going = undefined;
      first = true;
      continue;
    }
    if (going) going.push(word);
    else if (first && word === "hmz") found.push((going = []));
    first = first && word === "npx";
  }
  return found;
}

describe("the links in the documentation", () => {
  for (const path of pages) {
    it(`of ${path} lead somewhere`, () => {
      const prose = read(path).replace(/^```[\s\S]*?^```$/gm, "");
      for (const [, to] of prose.matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)) {
        assert.ok(existsSync(join(root, dirname(path), to as string)), `${path}: ${to}`);
      }
    });
  }
});

it("every example has a test, and every page of the guide stands on the map", () => {
  for (const path of globSync("examples/*/index.ts", { cwd: root })) {
    if (dirname(path) === join("examples", "demo")) continue;
    assert.ok(existsSync(join(root, dirname(path), "index.test.ts")), `${path} has no test`);
  }
  const map = read("docs/index.md");
  for (const path of globSync("guide/*.md", { cwd: join(root, "docs") })) assert.ok(map.includes(path), path);
});
