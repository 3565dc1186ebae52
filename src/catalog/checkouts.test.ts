import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { definition } from "../flows/definition.ts";
import { FlowDefinitionError, FlowNotFound, FlowRefError } from "../flows/errors.ts";
import { type Files, git as inRepository, put, repository } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { gitRunner } from "../sdk/git.ts";
import { type Catalog, createCatalog } from "./index.ts";
import type { Git } from "./repository.ts";

const HOME = temporaryDirectory("home");
const real = gitRunner({ PATH: process.env["PATH"], HOME });

/** A module whose flow returns a word. */
function says(word: string, name = "f"): string {
  return `import { flow } from "hmz/flows";\nexport const ${name} = flow({}, async () => "${word}");\n`;
}

function catalogIn(kept: string, git: Git = real, workspace = temporaryDirectory("workspace")): Catalog {
  return createCatalog({ workspace, checkouts: { git, directory: () => kept }, userFlows: join(workspace, "user") });
}

async function said(catalog: Catalog, ref: string): Promise<unknown> {
  return definition(await catalog.load(ref)).run("", {} as never);
}

const pinned = (): string => temporaryDirectory("pinned");

/** The commands that were run, and the git that runs them. */
function counted(git: Git = real): { readonly ran: string[]; readonly git: Git } {
  const ran: string[] = [];
  return { ran, git: (args, options) => (ran.push(args[0] ?? ""), git(args, options)) };
}

const FETCH = ["ls-remote", "init", "fetch", "reset"];
const head = (directory: string): string => inRepository(directory, "rev-parse", "HEAD").trim();

describe("a flow in a repository", () => {
  it("is at its root, or in the directory after the #, of the default branch, a branch, a tag, a commit", async () => {
    const at = repository({
      "index.ts": says("one"),
      "flows/a/index.js": `${says("a", "b")}export const c = flow({}, async () => "c");`,
    });
    const first = head(at.directory);
    inRepository(at.directory, "tag", "-a", "-m", "x", "v1");
    inRepository(at.directory, "checkout", "--quiet", "-b", "feature/x");
    at.commit({ "index.ts": says("feature") });
    inRepository(at.directory, "checkout", "--quiet", "main");
    at.commit({ "index.ts": says("two") });
    const catalog = catalogIn(pinned());
    const url = `git+${at.url}`;
    for (const [rev, word] of [
      ["", "two"],
      ["@main", "two"],
      ["@feature/x", "feature"],
      ["@v1", "one"],
      [`@${first}`, "one"],
      [`@${first.toUpperCase()}`, "one"],
      ["@refs/tags/v1", "one"],
    ] as const) {
      assert.equal(await said(catalog, url + rev), word, rev);
    }
    assert.equal(await said(catalog, `${url}@v1#flows/a:b`), "a");
    assert.equal((await catalog.load(url)).ref, `${basename(at.directory)}:f`);
  });

  it("is kept under the hash of its URL and its commit, and reused; a revision is fetched once", async () => {
    const at = repository({ "index.ts": says("one"), "a/index.ts": says("a") });
    const kept = pinned();
    const { ran, git } = counted();
    const catalog = catalogIn(kept, git);
    const load = catalog.loader();
    await Promise.all([load(`git+${at.url}`), load(`git+${at.url}#a`), catalog.load(`git+${at.url}`)]);
    assert.deepEqual(ran.splice(0), FETCH);
    const [hash, ...more] = readdirSync(kept);
    assert.deepEqual(more, []);
    assert.match(hash ?? "", /^[0-9a-f]{16}$/);
    assert.deepEqual(readdirSync(join(kept, hash ?? "")), [head(at.directory)]);
    await catalogIn(kept, git).load(`git+${at.url}#a`);
    assert.deepEqual(ran.splice(0), ["ls-remote"]);
    const offline: Git = () => Promise.reject(new Error("git was run"));
    assert.equal(await said(catalogIn(kept, offline), `git+${at.url}@${head(at.directory)}`), "one");
  });

  it("is, in the next run, where its branch has moved to", async () => {
    const at = repository({ "index.ts": says("one") });
    const kept = pinned();
    const catalog = catalogIn(kept);
    assert.equal(await said(catalog, `git+${at.url}@main`), "one");
    at.commit({ "index.ts": says("two") });
    assert.equal(await said(catalog, `git+${at.url}@main`), "one");
    assert.equal(await said(catalogIn(kept), `git+${at.url}@main`), "two");
  });

  it("is the branch's where a tag has its name", async () => {
    const at = repository({ "index.ts": says("tag") });
    inRepository(at.directory, "tag", "v1");
    inRepository(at.directory, "checkout", "--quiet", "-b", "v1");
    at.commit({ "index.ts": says("branch") });
    assert.equal(await said(catalogIn(pinned()), `git+${at.url}@v1`), "branch");
    assert.equal(await said(catalogIn(pinned()), `git+${at.url}@refs/tags/v1`), "tag");
  });

  it("asks for flows by name in its repository, whichever commits lie beside it", async () => {
    const at = repository({ "flows/a/index.ts": says("a"), "flows/b/index.ts": says("b"), "index.ts": says("root") });
    const workspace = temporaryDirectory("workspace");
    put(workspace, { ".hmz/flows/b/index.ts": says("nearest"), ".hmz/flows/other/index.ts": says("other") });
    const catalog = catalogIn(pinned(), real, workspace);
    const a = definition(await catalog.load(`git+${at.url}#flows/a`)).identity;
    const word = async (ref: string, asking = a): Promise<unknown> =>
      definition(await catalog.load(ref, asking)).run("", {} as never);
    assert.deepEqual([await word("b"), await word(":f"), await word("other")], ["b", "a", "other"]);
    const b = definition(await catalog.load("b", a)).identity;
    assert.equal(await word("a", b), "a");
    const root = definition(await catalog.load(`git+${at.url}`)).identity;
    assert.equal(await word("other", root), "other");
    await assert.rejects(catalog.load(head(at.directory), root), FlowNotFound);
  });

  it("has its skills in its checkout", async () => {
    const source = `import { agent, flow } from "hmz/flows";
export const f = flow({ agents: { a: agent({ skills: ["s"] }) } }, async () => {});`;
    const at = repository({ "x/index.ts": source, "x/skills/s/SKILL.md": "skill" });
    const catalog = catalogIn(pinned());
    const flow = definition(await catalog.load(`git+${at.url}#x`));
    const [skill] = await catalog.skills()(flow, "a");
    assert.equal(readFileSync(join(skill?.directory ?? "", "SKILL.md"), "utf8"), "skill");
    assert.ok(skill?.directory.includes(head(at.directory)));
  });
});

describe("a flow that cannot be loaded from a repository", () => {
  const at = repository({
    "flows/a/index.ts": says("a"),
    "none/x.ts": "",
    "broken/index.ts": "throw new Error('bad day');",
  });
  const holds = "which holds no index.ts, index.js, index.mts or index.mjs";
  type Row = readonly [ref: string, kind: new (message: string) => Error, message: string];
  const gone = `file://${temporaryDirectory("gone")}/r`;
  const ROWS: readonly Row[] = [
    [`git+${at.url}`, FlowNotFound, `git+${at.url}: ${at.url} has no flow in its root, ${holds}`],
    [`git+${at.url}#none`, FlowNotFound, `git+${at.url}#none: ${at.url} has no flow in none, ${holds}`],
    [
      `git+${at.url}@main#a:f`,
      FlowNotFound,
      `git+${at.url}@main#a:f: ${at.url} has no flow in a, ${holds}; there is one at #flows/a`,
    ],
    [
      `git+${at.url}@v9`,
      FlowNotFound,
      `git+${at.url}@v9: the repository cannot be fetched: ${at.url} has no branch and no tag called 'v9'; a commit is named by all of its 40 digits`,
    ],
    [
      `git+${at.url}@${"0".repeat(39)}1`,
      FlowNotFound,
      `git+${at.url}@${"0".repeat(39)}1: the repository cannot be fetched: remote error: upload-pack: not our ref ${"0".repeat(39)}1`,
    ],
    [
      `git+${gone}`,
      FlowNotFound,
      `git+${gone}: the repository cannot be fetched: '${gone.slice(7)}' does not appear to be a git repository`,
    ],
    [
      `git+${at.url}@-v1`,
      FlowRefError,
      `'git+${at.url}@-v1': a ref naming a repository is git+<url>[@<rev>][#<subdir>][:<sub>]`,
    ],
    [
      `git+${at.url}@--upload-pack=touch`,
      FlowRefError,
      `'git+${at.url}@--upload-pack=touch': a ref naming a repository is git+<url>[@<rev>][#<subdir>][:<sub>]`,
    ],
    ["git+ext://sh/x", FlowRefError, "'git+ext://sh/x': 'ext://sh/x' is not a URL git can fetch"],
    ["git+https://host/", FlowRefError, "'git+https://host/': 'https://host/' names no repository"],
    [`git+${at.url}#../x`, FlowRefError, `'git+${at.url}#../x': #../x is not <subdir>[:<subflow>]`],
    [":f", FlowRefError, "':f' is relative to the flow asking, and no flow is asking"],
  ];
  for (const [ref, kind, message] of ROWS) {
    it(`is refused: ${ref.replace(/file:\S*?(?=[@#]|$)/, "<url>")}`, async () => {
      await assert.rejects(catalogIn(pinned()).load(ref), (error) => {
        assert.ok(error instanceof kind, String(error));
        assert.equal(error.message, message);
        return true;
      });
    });
  }

  it("is refused by the path of its checkout where its module is wrong", async () => {
    const kept = pinned();
    const dir = (name: string): string => join(kept, readdirSync(kept)[0] ?? "", head(at.directory), name);
    await assert.rejects(catalogIn(kept).load(`git+${at.url}#broken`), (error) => {
      assert.ok(error instanceof FlowDefinitionError);
      assert.equal(error.message, `importing the flow at ${dir("broken")} failed: index.ts:1: bad day`);
      return true;
    });
    await assert.rejects(catalogIn(kept).load(`git+${at.url}#flows/a:g`), {
      message: `git+${at.url}#flows/a:g: ${dir("flows/a")} holds no flow called 'g'; it holds f`,
    });
  });

  it("is tried again by the same catalog, and says that git is late or missing", async () => {
    let fails = true;
    const git: Git = (args, options) =>
      fails ? Promise.reject(new Error("git did not end within 120 s")) : real(args, options);
    const catalog = catalogIn(pinned(), git);
    const ref = `git+${at.url}#flows/a`;
    await assert.rejects(catalog.load(ref), {
      message: `${ref}: the repository cannot be fetched: git did not end within 120 s`,
    });
    fails = false;
    assert.equal(await said(catalog, ref), "a");
  });
});

describe("a repository that is a stranger's", () => {
  it("runs no hook, filter, submodule or setting, of its own or of the person's for their own", async () => {
    const home = temporaryDirectory("home");
    const ran = join(home, "ran");
    const hook = `#!/bin/sh\ntouch ${ran}\n`;
    put(home, {
      "template/hooks/post-checkout": hook,
      "hooks/post-checkout": hook,
      "hooks/reference-transaction": hook,
      ".gitconfig": `[init]\n\ttemplateDir = ${home}/template\n[core]\n\thooksPath = ${home}/hooks\n\tautocrlf = true
[submodule]\n\trecurse = true\n[filter "lfs"]\n\tsmudge = touch ${ran}; cat\n\tprocess = touch ${ran}\n\trequired = true
[protocol "file"]\n\tallow = always\n`,
    });
    for (const file of ["template/hooks/post-checkout", "hooks/post-checkout", "hooks/reference-transaction"]) {
      chmodSync(join(home, file), 0o755);
    }
    const inner = repository({ x: "" });
    const at = repository({
      "index.ts": says("one"),
      big: "pointer\n",
      ".gitattributes": "* filter=lfs\n",
      ".gitconfig": "",
      hooks: "",
      "post-checkout": hook,
    });
    inRepository(at.directory, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.url, "sub");
    at.commit({ more: "" });
    const kept = pinned();
    assert.equal(
      await said(catalogIn(kept, gitRunner({ PATH: process.env["PATH"], HOME: home })), `git+${at.url}`),
      "one",
    );
    assert.equal(existsSync(ran), false);
    const checkout = join(kept, readdirSync(kept)[0] ?? "", head(at.directory));
    assert.equal(readFileSync(join(checkout, "big"), "utf8"), "pointer\n");
    assert.deepEqual(readdirSync(join(checkout, "sub")), []);
    assert.equal(existsSync(join(checkout, ".git", "hooks")), false);
  });

  const outside = temporaryDirectory("outside");
  put(outside, { "index.ts": says("outside") });
  const LINKS: readonly (readonly [what: string, files: Files, subdir: string, said: string])[] = [
    ["that is its flow", { a: { link: outside } }, "a", "a"],
    ["that is its entry", { "a/index.ts": { link: join(outside, "index.ts") } }, "a", "a/index.ts"],
    [
      "that is its package.json",
      { "a/index.ts": says("a"), "a/package.json": { link: "/etc/passwd" } },
      "a",
      "a/package.json",
    ],
    ["into its .git", { "a/index.ts": says("a"), "a/c": { link: "../.git/config" } }, "a", "a/c"],
  ];
  for (const [what, files, subdir, link] of LINKS) {
    it(`is refused with a link out of it ${what}`, async () => {
      const at = repository(files);
      const ref = `git+${at.url}#${subdir}`;
      await assert.rejects(catalogIn(pinned()).load(ref), (error) => {
        assert.ok(error instanceof FlowNotFound, String(error));
        assert.equal(error.message, `${ref}: ${link} is a symbolic link out of the repository`);
        return true;
      });
    });
  }

  it("is refused with a link out of it that is a flow which its flow asks for", async () => {
    const at = repository({ "flows/a/index.ts": says("a"), "flows/b": { link: outside } });
    const catalog = catalogIn(pinned());
    const a = definition(await catalog.load(`git+${at.url}#flows/a`)).identity;
    await assert.rejects(catalog.load("b", a), { message: "b: flows/b is a symbolic link out of the repository" });
  });
});

describe("two processes, and one that is killed", () => {
  it("may both clone, and the second uses what is there", async () => {
    const at = repository({ "index.ts": says("one") });
    const kept = pinned();
    let waiting = 0;
    let both: () => void = () => {};
    const met = new Promise<void>((resolve) => (both = resolve));
    // Each has looked, and found nothing there, before either goes on.
    const git: Git = async (args, options) => {
      if (args[0] === "init") {
        waiting += 1;
        if (waiting === 2) both();
        await met;
      }
      return real(args, options);
    };
    const one = catalogIn(kept, git);
    const other = catalogIn(kept, git);
    assert.deepEqual(await Promise.all([said(one, `git+${at.url}`), said(other, `git+${at.url}`)]), ["one", "one"]);
    assert.deepEqual(readdirSync(join(kept, readdirSync(kept)[0] ?? "")), [head(at.directory)]);
  });

  it("in the middle of a clone leaves nothing that is used, and what it left goes in time", async () => {
    const at = repository({ "index.ts": says("one") });
    const kept = pinned();
    const program = `import { checkouts } from ${JSON.stringify(new URL("checkouts.ts", import.meta.url).href)};
import { gitRunner } from ${JSON.stringify(new URL("../sdk/git.ts", import.meta.url).href)};
const git = gitRunner(process.env);
await checkouts({ directory: () => ${JSON.stringify(kept)}, git: async (args, options) => {
  if (args[0] === "reset") process.kill(process.pid, "SIGKILL");
  return git(args, options);
} })(${JSON.stringify(at.url)}, undefined);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "inherit" });
    const signal = await new Promise((resolve) => child.once("exit", (_code, killed) => resolve(killed)));
    assert.equal(signal, "SIGKILL");
    const hash = join(kept, readdirSync(kept)[0] ?? "");
    const [left = "", ...more] = readdirSync(hash);
    assert.ok(left.startsWith(`.${head(at.directory)}.`) && more.length === 0, left);
    assert.equal(await said(catalogIn(kept), `git+${at.url}`), "one");
    assert.deepEqual(readdirSync(hash).sort(), [left, head(at.directory)].sort());
    utimesSync(join(hash, left), 0, 0);
    at.commit({ x: "" });
    await catalogIn(kept).load(`git+${at.url}`);
    assert.equal(readdirSync(hash).includes(left), false);
  });

  it("is cloned anew where half of a checkout is gone", async () => {
    const at = repository({ "index.ts": says("one") });
    const kept = pinned();
    await catalogIn(kept).load(`git+${at.url}`);
    const checkout = join(kept, readdirSync(kept)[0] ?? "", head(at.directory));
    rmSync(join(checkout, ".git"), { recursive: true });
    rmSync(join(checkout, "index.ts"));
    assert.equal(await said(catalogIn(kept), `git+${at.url}`), "one");
  });
});

const BACKEND = join(inRepository("/", "--exec-path").trim(), "git-http-backend");

describe("a repository that asks for a password", { skip: !existsSync(BACKEND) }, () => {
  it("is given the URL's, which stands in no argv, message or file", async (context) => {
    const at = repository({ "index.ts": says("one") });
    const { port, asked } = await served(context, dirname(at.directory), "me", "s3cret word");
    const path = `${basename(at.directory)}/.git`;
    const ref = (password: string): string => `git+http://me:${password}@127.0.0.1:${port}/${path}`;
    const home = temporaryDirectory("home");
    put(home, { ".gitconfig": "[credential]\n\thelper = store\n" });
    // git says on its own which programs it starts, and with what.
    const trace = join(home, "trace");
    const git: Git = (args, options) =>
      gitRunner({ PATH: process.env["PATH"], HOME: home })(args, {
        ...options,
        env: { ...options.env, GIT_TRACE: trace },
      });
    const kept = pinned();
    assert.equal(await said(catalogIn(kept, git), ref("s3cret%20word")), "one");
    assert.ok(asked.length > 0);
    const started = readFileSync(trace, "utf8");
    assert.match(started, /remote-http/);
    for (const directory of [kept, home]) {
      const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      for (const file of files) {
        assert.doesNotMatch(readFileSync(join(file.parentPath, file.name), "latin1"), /s3cret/, file.name);
      }
    }
    await assert.rejects(catalogIn(pinned(), git).load(ref("wr0ng")), (error) => {
      assert.ok(error instanceof FlowNotFound);
      const shown = `127.0.0.1:${port}/${path}`;
      assert.equal(
        error.message,
        `git+http://***@${shown}: the repository cannot be fetched: Authentication failed for 'http://${shown}/'`,
      );
      return true;
    });
  });
});

/** git's own web server over a directory of repositories, behind a password. */
async function served(
  context: TestContext,
  root: string,
  user: string,
  password: string,
): Promise<{ readonly port: number; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const wanted = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  const server = createServer((request, response) => {
    if (request.headers.authorization !== wanted) {
      response.writeHead(401, { "WWW-Authenticate": 'Basic realm="x"' }).end();
      return;
    }
    const { pathname, search } = new URL(request.url ?? "", "http://host");
    asked.push(pathname);
    const backend = spawn(BACKEND, [], {
      env: {
        PATH: process.env["PATH"],
        HOME,
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method ?? "",
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
        REMOTE_USER: user,
      },
    });
    request.pipe(backend.stdin);
    const parts: Buffer[] = [];
    backend.stdout.on("data", (part: Buffer) => parts.push(part));
    backend.once("close", () => {
      const whole = Buffer.concat(parts);
      const end = whole.indexOf("\r\n\r\n");
      for (const line of whole.subarray(0, end).toString().split("\r\n")) {
        const [name = "", value = ""] = line.split(": ");
        if (name === "Status") response.statusCode = Number.parseInt(value, 10);
        else response.setHeader(name, value);
      }
      response.end(whole.subarray(end + 4));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, asked };
}
