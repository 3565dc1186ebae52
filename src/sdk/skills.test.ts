import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FakeAgent } from "../fakes/fake-agent.ts";
import { put, repository } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { Hmz } from "./hmz.ts";
import { Refused } from "./refused.ts";

const SKILL = "---\nname: x\ndescription: How reviews are done.\n---\nThe word is heron.\n";
const budget = { cost: 5 };

/** A workspace whose flow `reviews` has one role with skills, and which tells what its model was told. */
function workspace(skills: readonly string[]): { readonly hmz: Hmz; readonly at: string; readonly temp: string } {
  const at = temporaryDirectory("workspace");
  const temp = temporaryDirectory("tmp");
  put(at, {
    ".hmz/flows/reviews/index.ts": `import { agent, flow } from "hmz/flows";
      export const reviews = flow(
        { agents: { a: agent({ skills: ${JSON.stringify(skills)} }) } },
        async (task, { agents: { a } }) => a.run(task),
      );`,
    ".hmz/flows/reviews/skills/review/SKILL.md": SKILL,
  });
  const env = { PATH: process.env["PATH"], HOME: at, TMPDIR: temp };
  return { hmz: new Hmz({ workspace: at, home: join(at, "home"), env }), at, temp };
}

test("an agent of this process is told of its role's skills, and reads them whatever its permission", async () => {
  const { hmz, at } = workspace(["review"]);
  const file = join(at, ".hmz", "flows", "reviews", "skills", "review", "SKILL.md");
  const told = { if: { contains: "The word is heron." }, steps: [{ say: "heron" }], else: [{ say: "unread" }] };
  put(at, {
    "script.json": JSON.stringify({
      scenes: [{ steps: [{ tools: [{ tool: "read", input: { path: file } }] }, told] }],
    }),
  });
  const run = hmz.run("reviews", "go", { agents: { a: "native/scripted/script.json" }, budget });
  assert.equal(await run.wait(), "heron");
});

test("a repository of skills is cloned into this machine's directory of what may be lost", async () => {
  const { url } = repository({ "skills/lint/SKILL.md": SKILL });
  const { hmz, temp } = workspace([`${url}#lint`, "review"]);
  const a = new FakeAgent();
  await hmz.run("reviews", "go", { agents: { a }, budget }).wait();
  assert.deepEqual(a.sessions[0]?.skills, ["lint", "review"]);
  const uid = process.getuid?.() ?? 0;
  const [clone, ...more] = readdirSync(join(temp, `humanize-${uid}`, "skills"));
  assert.match(clone ?? "", /-[0-9a-f]{12}$/);
  assert.deepEqual(more, []);
});

test("a skill that is not there is refused before the run has an epic, or an agent", async () => {
  for (const [entry, why] of [
    ["lint", /^reviews:reviews: 'a' names the skill 'lint', and \S+\/reviews\/skills has none of it$/],
    ["file:///nonexistent/r#x", /^reviews:reviews: 'a' names a skill that cannot be fetched: file:/],
  ] as const) {
    const { hmz, at } = workspace([entry]);
    const a = new FakeAgent();
    await assert.rejects(hmz.run("reviews", "go", { agents: { a }, budget }).wait(), (error) => {
      assert.ok(error instanceof Refused);
      assert.match(error.message, why);
      return true;
    });
    assert.equal(existsSync(join(at, "home", "epics")), false);
    assert.equal(a.sessions.length, 0);
  }
});
