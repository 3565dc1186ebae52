import assert from "node:assert/strict";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, test } from "node:test";
import { permission, type PermissionLike } from "../flows/permission.ts";
import { put } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { Workplace } from "../../test/loop/session.ts";
import { descriptionOf, toldSkills } from "./skills.ts";
import { systemPrompt } from "./system-prompt.ts";
import { Toolbox } from "./tools/toolbox.ts";

const DESCRIBED: readonly (readonly [what: string, text: string, about: string])[] = [
  ["plain", "---\nname: a\ndescription: How it is done: here\n---\nbody", "How it is done: here"],
  ["in double quotes", '---\ndescription: "Says \\"no\\""\n---\n', 'Says "no"'],
  ["in single quotes", "---\ndescription: 'it''s'\n---\n", "it's"],
  ["folded", "---\ndescription: >-\n  one\n  two\nname: a\n---\n", "one two"],
  ["literal", "---\ndescription: |\n  one\n\n  two\n---\n", "one two"],
  ["going on", "---\ndescription: one\n  two\nname: a\n---\n", "one two"],
  ["with Windows line ends", "---\r\ndescription: one\r\nname: a\r\n---\r\n", "one"],
  ["with control characters", "---\ndescription: a\u001b[31mb\tc\n---\n", "a [31mb c"],
  ["missing", "---\nname: a\n---\n", ""],
  ["in no front matter", "description: x\n", ""],
  ["in front matter that does not end", "---\ndescription: x\n", ""],
  ["of an empty file", "", ""],
];
for (const [what, text, about] of DESCRIBED) {
  test(`a description ${what} is told as ${JSON.stringify(about)}`, () => assert.equal(descriptionOf(text), about));
}

test("a long description is cut", () => {
  assert.equal(descriptionOf(`---\ndescription: ${"x".repeat(5_000)}\n---\n`).length, 1_000);
});

test("a model is told the name, the description and the file of each skill; without skills, nothing of them", async () => {
  const home = temporaryDirectory("skills");
  put(home, { "a/SKILL.md": "---\ndescription: How it is done.\n---\n", "b/x": "" });
  const told = await toldSkills(["a", "b"].map((name) => ({ name, directory: join(home, name), entries: [name] })));
  const prompt = systemPrompt({ workdir: "/w", tools: ["read"], skills: told });
  assert.ok(prompt.includes(`\n- a: How it is done. (${home}/a/SKILL.md)\n- b (${home}/b/SKILL.md)\n`));
  assert.doesNotMatch(systemPrompt({ workdir: "/w", tools: ["read"] }), /[Ss]kill/);
});

describe("the files of a skill", () => {
  const used = async (
    scopes: PermissionLike,
    name: string,
    path: (skill: string) => string,
  ): Promise<{ readonly text: string; readonly failed: boolean }> => {
    using at = new Workplace();
    const home = temporaryDirectory("skills");
    put(home, { "a/SKILL.md": "heron", "a/deep/x": "", "beside/secret": "secret" });
    symlinkSync(join(home, "beside", "secret"), join(home, "a", "link"));
    writeFileSync(join(home, "ab"), "a name that begins as the skill's does");
    const skill = join(home, "a");
    const box = new Toolbox(at, permission(scopes), [], [{ name: "a", directory: skill, entries: ["a"] }]);
    return box.run(name, { path: path(skill) }, new AbortController().signal);
  };

  const nothing: PermissionLike = { local: "none", user: "none", system: "none" };
  const local: PermissionLike = { user: "none", system: "none" };
  for (const scopes of [local, nothing]) {
    it(`are read and listed with ${permission(scopes)}`, async () => {
      assert.match((await used(scopes, "read", (skill) => `${skill}/SKILL.md`)).text, /heron/);
      assert.equal((await used(scopes, "list", (skill) => skill)).text, "SKILL.md\ndeep/\nlink");
      assert.match((await used(scopes, "read", (skill) => skill)).text, /is a directory: look into it with list/);
    });

    for (const path of ["/../beside/secret", "/link", "/../ab", "b"]) {
      it(`are no way to <skill>${path} with ${permission(scopes)}`, async () => {
        const { text, failed } = await used(scopes, "read", (skill) => skill + path);
        assert.match(text, /may not be read: this session's permission has system=none/);
        assert.equal(failed, true);
      });
    }
  }

  it("are not written to", async () => {
    using at = new Workplace();
    const home = temporaryDirectory("skills");
    put(home, { "a/SKILL.md": "heron" });
    const box = new Toolbox(at, permission(), [], [{ name: "a", directory: join(home, "a"), entries: ["a"] }]);
    const wrote = await box.run("write", { path: join(home, "a", "x"), content: "" }, new AbortController().signal);
    assert.match(wrote.text, /outside of the working directory and may not be written/);
  });

  it("are the only thing that is offered to read where local is none", () => {
    using at = new Workplace();
    const skills = [{ name: "a", directory: "/a", entries: ["a"] }];
    assert.deepEqual(new Toolbox(at, permission(nothing), [], skills).names, ["read", "list"]);
    assert.deepEqual(new Toolbox(at, permission(nothing), []).names, []);
  });
});
