import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Skill } from "../engine/ports.ts";
import { definition } from "../flows/definition.ts";
import type { Files } from "../../test/support/git.ts";
import { put, repository } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { gitRunner } from "../sdk/git.ts";
import { createCatalog } from "./index.ts";
import type { Git } from "./repository.ts";

const SKILL = "---\nname: x\ndescription: y\n---\n";

/** The module of a flow whose one role names skills. */
function source(skills: readonly string[]): string {
  return `import { agent, flow } from "hmz/flows";
export const f = flow({ agents: { a: agent({ skills: ${JSON.stringify(skills)} }) } }, async () => {});`;
}

interface Asked {
  /** Beside the flow. */
  readonly files?: Files;
  readonly single?: boolean;
  readonly git?: Git;
  readonly kept?: string;
}

/** What a flow's role resolves to, in a run of its own. */
async function resolved(
  skills: readonly string[],
  { files = {}, single = false, git = gitRunner(process.env), kept = temporaryDirectory("skills") }: Asked = {},
): Promise<{ readonly skills: readonly Skill[]; readonly flow: string }> {
  const workspace = temporaryDirectory("workspace");
  const flow = join(workspace, "flow");
  put(workspace, single ? { "flow.ts": source(skills) } : { "flow/index.ts": source(skills) });
  put(flow, files);
  const catalog = createCatalog({ workspace, repositories: { git, directory: () => kept } });
  const found = await catalog.load("./flow");
  return { skills: await catalog.skills()(definition(found), "a"), flow };
}

async function refused(skills: readonly string[], asked: Asked = {}): Promise<string> {
  try {
    await resolved(skills, asked);
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

const names = ({ skills }: { readonly skills: readonly Skill[] }): readonly string[] => skills.map(({ name }) => name);

describe("a skill named", () => {
  it("is skills/<name> of the flow's own directory, where that has a SKILL.md", async () => {
    const files = { "skills/review/SKILL.md": SKILL, "skills/half/README.md": "" };
    const { skills, flow } = await resolved(["review"], { files });
    assert.deepEqual(skills, [{ name: "review", directory: join(flow, "skills", "review"), entries: ["review"] }]);
    for (const name of ["half", "other", "../flow", "a/b", ".."]) {
      assert.match(
        await refused([name], { files }),
        new RegExp(`^FlowDefinitionError: flow:f: 'a' names the skill '${name}', and \\S+/flow/skills has none of it$`),
      );
    }
  });

  it("is refused of a flow that is one file", async () => {
    assert.equal(
      await refused(["review"], { single: true, files: { "skills/review/SKILL.md": SKILL } }),
      "FlowDefinitionError: flow:f: 'a' names the skill 'review', and a flow that is one file has none of it",
    );
  });
});

describe("a skill in a repository", () => {
  it("is every one of its skills, or the one after the #", async () => {
    const { url } = repository({ "skills/b/SKILL.md": SKILL, "skills/a/SKILL.md": SKILL, "skills/c/x": "" });
    const kept = temporaryDirectory("skills");
    assert.deepEqual(names(await resolved([url], { kept })), ["a", "b"]);
    const { skills } = await resolved([`${url}#b`], { kept });
    assert.equal(readFileSync(join(skills[0]?.directory ?? "", "SKILL.md"), "utf8"), SKILL);
    assert.deepEqual(skills[0]?.entries, [`${url}#b`]);
  });

  it("is the flow's own where that has one of the name, which a URL that names it does not fetch", async () => {
    const { url } = repository({ "skills/a/SKILL.md": SKILL, "skills/b/SKILL.md": SKILL });
    const files = { "skills/a/SKILL.md": SKILL };
    const git: Git = () => Promise.reject(new Error("git was run"));
    const own = await resolved([`${url}#a`], { files, git });
    assert.deepEqual(own.skills[0]?.directory, join(own.flow, "skills", "a"));
    const all = await resolved([url, "a"], { files });
    assert.deepEqual(
      all.skills.map(({ name, directory, entries }) => [name, directory.startsWith(all.flow), entries]),
      [
        ["a", true, [url, "a"]],
        ["b", false, [url]],
      ],
    );
  });

  it("is fetched once a run, and again by the next, which makes it as it is there", async () => {
    const at = repository({ "skills/a/SKILL.md": SKILL });
    const kept = temporaryDirectory("skills");
    const ran: string[] = [];
    const git: Git = (args, options) => {
      ran.push(args[0] ?? "");
      return gitRunner(process.env)(args, options);
    };
    const first = await resolved([at.url, `${at.url}#a`], { kept, git });
    assert.deepEqual(ran.splice(0), ["clone"]);
    at.commit({ "skills/a/SKILL.md": "new", "skills/b/SKILL.md": SKILL });
    put(first.skills[0]?.directory ?? "", { "SKILL.md": "changed by an agent", "../planted/SKILL.md": SKILL });
    const next = await resolved([at.url], { kept, git });
    assert.deepEqual(ran, ["fetch", "reset", "clean"]);
    assert.deepEqual(names(next), ["a", "b"]);
    assert.equal(readFileSync(join(next.skills[0]?.directory ?? "", "SKILL.md"), "utf8"), "new");
    assert.equal(next.skills[0]?.directory, first.skills[0]?.directory);
  });

  it("is the copy that is there where it cannot be fetched again, and cloned anew where that is broken", async () => {
    const at = repository({ "skills/a/SKILL.md": SKILL });
    const kept = temporaryDirectory("skills");
    const { skills } = await resolved([at.url], { kept });
    const failing: Git = () => Promise.reject(new Error("git did not end within 120 s"));
    assert.deepEqual(names(await resolved([at.url], { kept, git: failing })), ["a"]);
    rmSync(join(skills[0]?.directory ?? "", "..", "..", ".git"), { recursive: true });
    assert.equal(
      await refused([at.url], { kept, git: failing }),
      "FlowDefinitionError: flow:f: 'a' names a skill that cannot be fetched: git did not end within 120 s",
    );
    assert.deepEqual(names(await resolved([at.url], { kept })), ["a"]);
  });

  it("lies in <owner>-<repo>-<hash>, with nothing beside it", async () => {
    const at = repository({ "skills/a/SKILL.md": SKILL });
    const kept = temporaryDirectory("skills");
    await resolved([at.url], { kept });
    const [name, ...more] = readdirSync(kept);
    assert.deepEqual(more, []);
    assert.match(name ?? "", /^[A-Za-z0-9_.-]+-hmz-repository-\w+-[0-9a-f]{12}$/);
  });

  const LINKS: readonly (readonly [what: string, files: Files, refusal: RegExp | undefined])[] = [
    ["to a file of the machine", { "skills/a/key": { link: "/etc/hostname" } }, /skills\/a\/key is a symbolic link/],
    ["that climbs out", { "skills/a/up": { link: "../../../.." } }, /skills\/a\/up is a symbolic link/],
    ["to nothing", { "skills/a/gone": { link: "nowhere" } }, /skills\/a\/gone is a symbolic link/],
    ["into .git", { "skills/a/conf": { link: "../../.git/config" } }, /skills\/a\/conf is a symbolic link/],
    [
      "out of what a link leads to",
      { "shared/x": { link: "/etc" }, "skills/a/s": { link: "../../shared" } },
      /shared\/x/,
    ],
    ["inside of the repository", { "shared/x": "", "skills/a/s": { link: "../../shared" } }, undefined],
    ["to what it lies in", { "skills/a/s": { link: "." } }, undefined],
  ];
  for (const [what, files, refusal] of LINKS) {
    it(`with a symbolic link ${what} is ${refusal ? "refused" : "taken"}`, async () => {
      const { url } = repository({ "skills/a/SKILL.md": SKILL, ...files });
      if (!refusal) return assert.deepEqual(names(await resolved([url])), ["a"]);
      const said = await refused([`${url}#a`]);
      assert.match(said, /^FlowDefinitionError: flow:f: 'a' names a skill that cannot be fetched: file:/);
      assert.match(said, refusal);
      assert.match(said, / out of the repository$/);
      return undefined;
    });
  }

  it("whose skills/ is a link elsewhere is refused", async () => {
    const outside = temporaryDirectory("outside");
    put(outside, { "a/SKILL.md": SKILL });
    const { url } = repository({ skills: { link: outside } });
    assert.match(await refused([url]), /skills\/a is a symbolic link out of the repository$/);
  });
});

describe("a skill that cannot be fetched", () => {
  const CANNOT = "FlowDefinitionError: flow:f: 'a' names a skill that cannot be fetched: ";
  const none: Git = () => Promise.reject(new Error("git was run"));
  const REFUSED: readonly (readonly [entry: string, reason: string])[] = [
    ["https://host/o/r#../x", "'../x' is not a skill's name: <url>#<skill> names one of the repository's skills"],
    ["https://host/o/r#", "'' is not a skill's name: <url>#<skill> names one of the repository's skills"],
    ["owner/repo#x", "'owner/repo' is not a URL git can fetch"],
    ["ext::sh -c touch% /tmp/x#x", "'ext::sh -c touch% /tmp/x' is not a URL git can fetch"],
    ["ssh://-oProxyCommand=x/r", "'ssh://-oProxyCommand=x/r' is not a URL git can fetch"],
    ["-oProxyCommand=x:r#x", "'-oProxyCommand=x:r' is not a URL git can fetch"],
    ["git@-oX:r#x", "'git@-oX:r' is not a URL git can fetch"],
    ["https://me:s3cret@host", "'https://***@host' names no repository"],
    ["https://host/o/r", "git was run"],
    ["git@host:o/r.git#x", "git was run"],
  ];
  for (const [entry, reason] of REFUSED) {
    it(`is said for ${entry}`, async () => assert.equal(await refused([entry], { git: none }), CANNOT + reason));
  }

  it("is said in git's own words, and of a repository that holds none or not that one", async () => {
    const gone = `file://${temporaryDirectory("gone")}/r`;
    assert.match(await refused([gone]), /cannot be fetched: (file:\S+): '\S+' does not appear to be a git repository$/);
    const empty = repository({ "README.md": "" });
    assert.equal(await refused([empty.url]), `${CANNOT}${empty.url} holds no skills: none of skills/* has a SKILL.md`);
    const one = repository({ "skills/a/SKILL.md": SKILL, "skills/b/SKILL.md": SKILL });
    assert.equal(await refused([`${one.url}#c`]), `${CANNOT}${one.url} holds no skill called 'c'; it holds a, b`);
    const odd = repository({ "skills/a b/SKILL.md": SKILL });
    assert.equal(await refused([odd.url]), `${CANNOT}${odd.url}: skills/"a b" is not a skill's name`);
  });

  it("shows no password, gives git none in its argv, and keeps none", async () => {
    const asked: (readonly string[])[] = [];
    const git: Git = (args, { env }) => {
      asked.push(args, Object.entries(env ?? {}).flat());
      return Promise.resolve({
        status: 128,
        stdout: "",
        stderr: "fatal: unable to access 'https://me:s3cret@host.test/o/r/': no such host\n",
      });
    };
    assert.equal(
      await refused(["https://me:s3cret@host.test/o/r#x"], { git }),
      `${CANNOT}https://***@host.test/o/r: unable to access 'https://***@host.test/o/r/': no such host`,
    );
    assert.equal(asked[0]?.at(-2), "https://host.test/o/r");
    assert.deepEqual(asked[1], ["HMZ_GIT_USERNAME", "me", "HMZ_GIT_PASSWORD", "s3cret"]);
  });

  it("is said where there is no directory to keep it in, and where nothing fetches", async () => {
    const workspace = temporaryDirectory("workspace");
    mkdirSync(join(workspace, "flow"));
    put(workspace, { "flow/index.ts": source(["https://host/o/r"]) });
    const catalog = createCatalog({ workspace });
    const flow = definition(await catalog.load("./flow"));
    await assert.rejects(catalog.skills()(flow, "a"), { message: /cannot be fetched: nothing here fetches https:/ });
    const unsafe = createCatalog({
      workspace,
      repositories: {
        git: none,
        directory: () => {
          throw new Error("/tmp/x belongs to another user");
        },
      },
    });
    await assert.rejects(unsafe.skills()(flow, "a"), {
      message: /cannot be fetched: \/tmp\/x belongs to another user$/,
    });
  });
});
