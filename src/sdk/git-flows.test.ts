import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FakeAgent } from "../fakes/fake-agent.ts";
import { git, put, repository } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { Hmz } from "./hmz.ts";
import { Refused } from "./refused.ts";

const budget = { cost: 5 };

function workspace(): { readonly hmz: Hmz; readonly at: string; readonly pinned: () => readonly string[] } {
  const at = temporaryDirectory("workspace");
  const temp = temporaryDirectory("tmp");
  const env = { PATH: process.env["PATH"], HOME: at, TMPDIR: temp };
  const pinned = join(temp, `humanize-${process.getuid?.() ?? 0}`, "pinned");
  return {
    hmz: new Hmz({ workspace: at, home: join(at, "home"), env }),
    at,
    pinned: () => readdirSync(pinned).flatMap((url) => readdirSync(join(pinned, url))),
  };
}

const FLOW = `import { agent, flow } from "hmz/flows";
export const f = flow({ agents: { a: agent({ skills: ["s"] }) } }, async (task, { agents: { a } }) => a.run(task));`;

test("a run of a git ref fetches it into this machine's directory before it starts, with its skills", async () => {
  const { url, directory } = repository({
    "flows/x/index.ts": FLOW,
    "flows/x/skills/s/SKILL.md": "---\nname: s\n---\n",
  });
  const { hmz, pinned } = workspace();
  const a = new FakeAgent();
  await hmz.run(`git+${url}#flows/x`, "go", { agents: { a }, budget }).wait();
  assert.deepEqual(a.sessions[0]?.skills, ["s"]);
  assert.deepEqual(pinned(), [git(directory, "rev-parse", "HEAD").trim()]);
});

test("a git ref that cannot be fetched is refused before the run has an epic", async () => {
  const { hmz, at } = workspace();
  await assert.rejects(hmz.run("git+file:///nonexistent/r", "go", { budget }).wait(), (error) => {
    assert.ok(error instanceof Refused);
    assert.equal(
      error.message,
      "git+file:///nonexistent/r: the repository cannot be fetched: '/nonexistent/r' does not appear to be a git repository",
    );
    return true;
  });
  assert.equal(readdirSync(at).includes("home"), false);
});

test("a flow loads a git ref as it runs, once a run, although its branch moves", async () => {
  const at = repository({
    "index.ts": `import { flow } from "hmz/flows"; export const f = flow({}, async () => "one");`,
  });
  const { hmz, at: here } = workspace();
  put(here, {
    ".hmz/flows/calls.ts": `import { execFileSync } from "node:child_process"; import { flow, load } from "hmz/flows";
export const calls = flow({}, async () => {
  const one = await load("git+${at.url}");
  const said = [await one("")];
  execFileSync("sh", ["-c", "sed -i s/one/two/ index.ts && git -c user.name=a -c user.email=a commit -qam x"], { cwd: ${JSON.stringify(at.directory)} });
  const again = await load("git+${at.url}:f");
  return [...said, await again("")].join();
});`,
  });
  assert.equal(await hmz.run("calls", "go", { budget }).wait(), "one,one");
  assert.equal(await hmz.run(`git+${at.url}`, "go", { budget }).wait(), "two");
});

test("a password in a ref is in nothing that a run keeps, says or shows", async () => {
  const { url } = repository({ "index.ts": FLOW.replace('skills: ["s"]', "") });
  const { hmz, at } = workspace();
  const ref = `git+${url.replace("file://", "file://me:s3cret@localhost")}`;
  const run = hmz.run(ref, "go", { agents: { a: new FakeAgent() }, budget });
  assert.doesNotMatch(run.flow, /s3cret/);
  await run.wait();
  const kept = readdirSync(at, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  assert.ok(kept.length > 0);
  for (const file of kept) assert.doesNotMatch(readFileSync(join(file.parentPath, file.name), "latin1"), /s3cret/);
  await assert.rejects(hmz.run(`${ref}:none`, "go", { budget }).wait(), (error) => {
    assert.doesNotMatch((error as Error).message, /s3cret/);
    return error instanceof Refused;
  });
});
