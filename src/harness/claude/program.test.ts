import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { HarnessNotInstalled } from "../../flows/errors.ts";
import { findClaude } from "./program.ts";

test("claude is looked for on the PATH, then where it is usually installed", async (context) => {
  const home = await mkdtemp(join(tmpdir(), "hmz-program-"));
  context.after(() => rm(home, { recursive: true }));
  const place = async (...parts: string[]): Promise<string> => {
    const folder = join(home, ...parts);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "claude"), "#!/bin/sh\n");
    await chmod(join(folder, "claude"), 0o755);
    return join(folder, "claude");
  };
  const local = await place(".local", "bin");
  assert.equal(await findClaude({ HOME: home, PATH: "/nowhere" }), local);
  const onPath = await place("bin");
  assert.equal(await findClaude({ HOME: home, PATH: join(home, "bin") }), onPath);
  await chmod(onPath, 0o644);
  if (process.getuid?.() !== 0) assert.equal(await findClaude({ HOME: home, PATH: join(home, "bin") }), local);
});

test("where there is none, the message says how to install it", async () => {
  await assert.rejects(findClaude({ PATH: "/nowhere" }), (error) => {
    return error instanceof HarnessNotInstalled && error.message.includes("npm i -g @anthropic-ai/claude-code");
  });
});
