import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { HarnessUnrecoverable } from "../../flows/errors.ts";
import { play, says, USER } from "../../../test/fixtures/claude/played.ts";
import { RecordingHost } from "../../../test/conformance/recording-host.ts";
import { put } from "../../../test/support/git.ts";
import { temporaryDirectory } from "../../../test/support/temporary.ts";
import { lodged } from "./skills.ts";

const skill = (name: string, directory: string) => ({ name, directory, entries: [name] });

test("skills are copied under .claude/skills of a directory called flow, links as what they lead to", async () => {
  const home = temporaryDirectory("skills");
  put(home, {
    "a/SKILL.md": "A",
    "a/deep/x.txt": "x",
    "a/itself": { link: "." },
    "a/gone": { link: "nowhere" },
    "a/shared": { link: "../shared" },
    "shared/y.txt": "y",
    "b/SKILL.md": "B",
  });
  const { directory, remove } = await lodged([skill("a", join(home, "a")), skill("bee", join(home, "b"))]);
  try {
    assert.match(directory, /\/flow$/);
    const skills = join(directory, ".claude", "skills");
    assert.deepEqual(
      readdirSync(skills, { recursive: true })
        .map(String)
        .toSorted((one, other) => (one < other ? -1 : 1)),
      ["a", "a/SKILL.md", "a/deep", "a/deep/x.txt", "a/shared", "a/shared/y.txt", "bee", "bee/SKILL.md"],
    );
    assert.equal(readFileSync(join(skills, "a/shared/y.txt"), "utf8"), "y");
  } finally {
    await remove();
  }
  assert.equal(existsSync(dirname(directory)), false);
  assert.equal(readFileSync(join(home, "shared/y.txt"), "utf8"), "y");
});

test("the program is told of a session's skills, which are gone once the session is closed", async () => {
  const home = temporaryDirectory("skills");
  put(home, { "a/SKILL.md": "A" });
  await using played = await play([USER, says.init(), says.text("one"), says.result("one")]);
  const session = played.open({ skills: [skill("a", join(home, "a"))] });
  await session.ready(played.setup);
  await session.take("x", new RecordingHost(played.setup));
  const [argv = []] = await played.starts();
  const at = argv.indexOf("--add-dir");
  assert.notEqual(at, -1);
  const directory = argv[at + 1] ?? "";
  assert.equal(readFileSync(join(directory, ".claude", "skills", "a", "SKILL.md"), "utf8"), "A");
  await session.close();
  assert.equal(existsSync(dirname(directory)), false);
});

test("a session without skills is told of no directory", async () => {
  await using played = await play("turns");
  await played.turn();
  assert.equal((await played.starts())[0]?.includes("--add-dir"), false);
});

test("skills that cannot be lodged fail the turn", async () => {
  await using played = await play("turns");
  const session = played.open({ skills: [skill("a", "/nonexistent/a")] });
  await assert.rejects(
    session.ready(played.setup),
    (error) =>
      error instanceof HarnessUnrecoverable && error.message.startsWith("claude: its skills cannot be lodged: "),
  );
});
