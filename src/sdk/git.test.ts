import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { repository } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { gitRunner } from "./git.ts";

const PATH = process.env["PATH"];

test("git is run with the person's environment, but nothing that names another repository, and asks nobody", async () => {
  const cwd = temporaryDirectory("git");
  const alias = { "alias.shows": "!env | grep -E '^(GIT_|SSH_ASKPASS_|HMZ_)' >&2; exit 3" };
  const git = gitRunner({ PATH, HOME: cwd, GIT_DIR: "/elsewhere", GIT_ASKPASS: "/bin/asks", HMZ_X: "kept" });
  const { status, stderr } = await git(["shows"], { cwd, config: alias });
  assert.equal(status, 3);
  const lines = stderr.split("\n");
  for (const line of ["GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "HMZ_X=kept"]) {
    assert.ok(lines.includes(line), stderr);
  }
  assert.doesNotMatch(stderr, /elsewhere|asks/);
});

test("a URL with a password stands in a setting, and git puts it in place of the one in its argv", async () => {
  const { url } = repository({ x: "" });
  const cwd = temporaryDirectory("git");
  const config = { [`url.${url}.insteadOf`]: "https://host.test/o/r" };
  const git = gitRunner({ PATH, HOME: cwd });
  assert.deepEqual(await git(["clone", "--quiet", "--", "https://host.test/o/r", "copy"], { cwd, config }), {
    status: 0,
    stdout: "",
    stderr: "",
  });
  const kept = readFileSync(join(cwd, "copy", ".git", "config"), "utf8");
  assert.match(kept, /url = https:\/\/host\.test\/o\/r\n/);
  assert.equal(kept.includes(url), false);
});

test("a machine without git says so", async () => {
  const cwd = temporaryDirectory("git");
  await assert.rejects(gitRunner({ PATH: cwd })(["version"], { cwd, config: {} }), {
    message: "git is not installed on this machine",
  });
});
