import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { carry, projectFolder } from "./carry.ts";

test("a directory's name is its path, cut where it is long", () => {
  assert.equal(projectFolder("/home/é person/my.work"), "-home---person-my-work");
  const long = projectFolder(`/${"a".repeat(300)}`);
  assert.match(long, /^-a{199}-[0-9a-z]+$/);
  assert.notEqual(long, projectFolder(`/${"a".repeat(301)}`));
});

test("a conversation is copied from where it ran to where it goes on", async (context) => {
  const home = await mkdtemp(join(tmpdir(), "hmz-carry-"));
  context.after(() => rm(home, { recursive: true }));
  const [from, to] = [join(home, "from"), join(home, "to")];
  await mkdir(from);
  await mkdir(to);
  const kept = join(home, ".claude", "projects", projectFolder(from));
  await mkdir(kept, { recursive: true });
  await writeFile(join(kept, "id.jsonl"), "all of it\n");
  assert.equal(await carry({ HOME: home }, "id", from, to), true);
  const carried = join(home, ".claude", "projects", projectFolder(to), "id.jsonl");
  assert.equal(await readFile(carried, "utf8"), "all of it\n");
  assert.equal(await carry({ HOME: home }, "other", from, to), false);
  assert.equal(await carry({ HOME: home }, "id", from, from), false);
});
