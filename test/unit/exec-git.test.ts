/** `hmz exec -f git+…` as a process: what git is started with, two at once, and one that is killed as it fetches. */

import assert from "node:assert/strict";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import { execIn } from "../support/exec-process.ts";
import { git, put, type Repository, repository } from "../support/git.ts";
import { temporaryDirectory } from "../support/temporary.ts";

const FLOW = `import { flow } from "hmz/flows";
export const says = flow({}, async (task) => {
  console.log(\`said \${task}\`);
});
`;

const pinned = (root: string): string => join(root, `humanize-${process.getuid?.() ?? 0}`, "pinned");

/** What lies beside each other under the hash of the one URL that was fetched. */
function checkouts(root: string): readonly string[] {
  const [hash = "", ...more] = readdirSync(pinned(root));
  assert.deepEqual(more, []);
  return readdirSync(join(pinned(root), hash)).sort();
}

/** A PATH on which `git` runs a script first. `$REAL` is the real one, `$AT` the directory that it lies in. */
function wrapped(script: string): { readonly at: string; readonly env: Readonly<Record<string, string>> } {
  const at = temporaryDirectory("bin");
  const real = (process.env["PATH"] ?? "").split(delimiter).find((directory) => existsSync(join(directory, "git")));
  assert.ok(real !== undefined);
  put(at, { git: `#!/bin/sh\nREAL='${join(real, "git")}'\nAT='${at}'\n${script}\nexec "$REAL" "$@"\n` });
  chmodSync(join(at, "git"), 0o755);
  return { at, env: { PATH: `${at}${delimiter}${process.env["PATH"] ?? ""}` } };
}

const head = ({ directory }: Repository): string => git(directory, "rev-parse", "HEAD").trim();

/** A plain web server over the files of a repository, behind a name and a password; it knows nothing of git. */
async function served(context: TestContext, { directory }: Repository, password: string): Promise<string> {
  git(directory, "update-server-info");
  const wanted = `Basic ${Buffer.from(`me:${password}`).toString("base64")}`;
  const server = createServer((request, response) => {
    const file = join(directory, ".git", new URL(request.url ?? "", "http://host").pathname.replace("/o/r", "."));
    if (request.headers.authorization !== wanted) {
      response.writeHead(401, { "WWW-Authenticate": 'Basic realm="x"' }).end();
    } else if (existsSync(file) && statSync(file).isFile()) response.end(readFileSync(file));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}/o/r`;
}

/** Until a file is there; rejects where the process ends first. */
async function there(file: string, ended: Promise<{ readonly stderr: string }>): Promise<void> {
  let over: { readonly stderr: string } | undefined;
  void ended.then((ran) => (over = ran));
  while (!existsSync(file)) {
    assert.equal(over, undefined, over?.stderr);
    await setTimeout(20);
  }
}

test("a plain web server's flow runs, and its password is in no argv of git's, no file and no output", async (context) => {
  const at = repository({ "index.ts": FLOW, "flows/x/index.ts": FLOW });
  const first = head(at);
  at.commit({ more: "" });
  const where = await served(context, at, "s3cret");
  const root = temporaryDirectory("exec");
  const { at: bin, env } = wrapped(`printf '%s\\n' "$@" >> "$AT/argv"`);
  // The commit is no branch's and no tag's: a server that cannot be asked for it gives the whole.
  for (const rev of ["", `@${first}`]) {
    const ran = await execIn(root)(["-f", `git+http://me:s3cret@${where}${rev}#flows/x`, "hello"], env).ended;
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(ran.stdout, "said hello\n");
    assert.doesNotMatch(ran.stderr, /s3cret/);
  }
  assert.deepEqual(checkouts(root), [first, head(at)].sort());
  const missing = await execIn(root)(["-f", `git+http://me:s3cret@${where}#x`, "hello"], env).ended;
  assert.match(
    missing.stderr,
    /^hmz exec: error: git\+http:\/\/\*\*\*@127\.\S+#x: http:\/\/\*\*\*@127\.\S+ has no flow in x, which holds no index\.ts, .*; there is one at #flows\/x\n/,
  );
  assert.notEqual(missing.code, 0);
  const wrong = await execIn(root)(["-f", `git+http://me:wr0ng@${where}`, "hello"], env).ended;
  assert.match(wrong.stderr, /: the repository cannot be fetched: Authentication failed for 'http:\/\/127\.\S+'\n/);
  assert.doesNotMatch(missing.stderr + wrong.stderr, /s3cret|wr0ng/);

  const argv = readFileSync(join(bin, "argv"), "utf8");
  assert.match(argv, /^ls-remote\n/);
  assert.ok(argv.includes(`http://${where}\n`));
  assert.doesNotMatch(argv, /s3cret|wr0ng/);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  assert.ok(files.some(({ name, parentPath }) => name === "config" && parentPath.endsWith(".git")));
  for (const { name, parentPath } of files) {
    assert.doesNotMatch(readFileSync(join(parentPath, name), "latin1"), /s3cret|wr0ng/, join(parentPath, name));
  }
});

test("two at once both clone, and the second to end runs the checkout of the first", async () => {
  const at = repository({ "index.ts": FLOW });
  const root = temporaryDirectory("exec");
  // Each has all of its clone before either goes on, but for a machine that is much too slow.
  const { at: bin, env } = wrapped(`if [ "$1" = reset ]; then
  : > "$AT/here.$$"; n=0
  while [ "$(ls "$AT" | grep -c '^here')" -lt 2 ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done
fi`);
  const ran = await Promise.all(["one", "two"].map((task) => execIn(root)(["-f", `git+${at.url}`, task], env).ended));
  assert.deepEqual(
    ran.map(({ code, stdout, stderr }) => [code, stdout, code === 0 ? "" : stderr]),
    [
      [0, "said one\n", ""],
      [0, "said two\n", ""],
    ],
  );
  assert.equal(readdirSync(bin).filter((name) => name.startsWith("here")).length, 2);
  assert.deepEqual(checkouts(root), [head(at)]);
});

test("killed in the middle of a fetch, it leaves half a clone that the next run does not use", async () => {
  const at = repository({ "index.ts": FLOW });
  const root = temporaryDirectory("exec");
  const { at: bin, env } = wrapped(`if [ "$1" = reset ]; then
  "$REAL" "$@"; rm index.ts; echo 'throw 1' > index.js; : > "$AT/half"; sleep 60; exit 1
fi`);
  const { child, ended } = execIn(root)(["-f", `git+${at.url}`, "one"], env);
  await there(join(bin, "half"), ended);
  child.kill("SIGKILL");
  assert.equal((await ended).signal, "SIGKILL");
  const [half = ""] = checkouts(root);
  assert.match(half, new RegExp(`^\\.${head(at)}\\.`));
  const ran = await execIn(root)(["-f", `git+${at.url}`, "two"]).ended;
  assert.equal(ran.stdout, "said two\n", ran.stderr);
  assert.deepEqual(checkouts(root), [half, head(at)].sort());
});

test("^C as it fetches ends it at once, before anything is recorded", async () => {
  const at = repository({ "index.ts": FLOW });
  const root = temporaryDirectory("exec");
  const { at: bin, env } = wrapped(`: > "$AT/asked"; sleep 60; exit 1`);
  const { child, ended } = execIn(root)(["-f", `git+${at.url}`, "one"], env);
  await there(join(bin, "asked"), ended);
  child.kill("SIGINT");
  assert.equal((await ended).code, 130);
  assert.equal(existsSync(join(root, "home", "epics")), false);
});

test("what git says is in its own words, whichever language the person reads", async () => {
  const root = temporaryDirectory("exec");
  const { at: bin, env } = wrapped(`echo "\${LC_ALL-}" > "$AT/said"`);
  const ran = await execIn(root)(["-f", "git+file:///nonexistent/r", "x"], {
    ...env,
    LC_ALL: "C.UTF-8",
    LANGUAGE: "de",
  }).ended;
  assert.equal(readFileSync(join(bin, "said"), "utf8"), "C\n");
  assert.match(ran.stderr, /fetched: '\/nonexistent\/r' does not appear to be a git repository\n/);
});

test("a repository that the directory for temporary files lies in has no say in how another is fetched", async () => {
  const root = temporaryDirectory("exec");
  const ran = join(root, "ran");
  git(root, "init", "--quiet");
  git(root, "config", "core.sshCommand", `touch ${ran}; false`);
  const { code } = await execIn(root)(["-f", "git+ssh://host.invalid/o/r", "x"]).ended;
  assert.equal(code, 2);
  assert.equal(existsSync(ran), false);
});
