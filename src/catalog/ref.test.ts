import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { FlowRefError } from "../flows/errors.ts";
import { parseRef } from "./ref.ts";

const name = (flow: string, more: object = {}): object => ({
  kind: "name",
  flowverse: undefined,
  user: undefined,
  flow,
  sub: undefined,
  ...more,
});
const path = (path: string, sub?: string): object => ({ kind: "path", path, sub });
const git = (url: string, more: object = {}): object => ({
  kind: "git",
  url,
  rev: undefined,
  subdir: undefined,
  sub: undefined,
  ...more,
});

const REFS: readonly (readonly [string, object])[] = [
  [":review", { kind: "relative", sub: "review" }],
  ["chat", name("chat")],
  ["humanize1:gen-plan", name("humanize1", { sub: "gen-plan" })],
  ["alice/kernel", name("kernel", { user: "alice" })],
  ["alice/kernel:a.b", name("kernel", { user: "alice", sub: "a.b" })],
  ["@local/twice", name("twice", { flowverse: "local" })],
  ["@theirs/alice/kernel:x", name("kernel", { flowverse: "theirs", user: "alice", sub: "x" })],
  ["./twice", path("./twice")],
  ["./twice:review", path("./twice", "review")],
  ["../a:b/c", path("../a:b/c")],
  ["/a/b.ts:_x", path("/a/b.ts", "_x")],
  ["~/flows/x", path("~/flows/x")],
  [".", path(".")],
  ["~", path("~")],
  ["git+https://host/o/r", git("https://host/o/r")],
  ["git+https://host/o/r@v1:review", git("https://host/o/r", { rev: "v1", sub: "review" })],
  ["git+https://host:8080/o/r", git("https://host:8080/o/r")],
  ["git+https://host:8080/o/r:x", git("https://host:8080/o/r", { sub: "x" })],
  [
    "git+ssh://git@host/o/r.git@feature/x#a/b:c",
    git("ssh://git@host/o/r.git", { rev: "feature/x", subdir: "a/b", sub: "c" }),
  ],
  ["git+https://host/o/r#sub", git("https://host/o/r", { subdir: "sub" })],
  ["git+https://host/o/r@v1?depth=1", git("https://host/o/r", { rev: "v1" })],
  ["git+file:///srv/r@main", git("file:///srv/r", { rev: "main" })],
];

for (const [ref, parsed] of REFS) {
  test(`'${ref}' is taken apart`, () => {
    assert.deepEqual(parseRef(ref), { ref, ...parsed });
  });
}

const notAName = (ref: string): string =>
  `'${ref}' is not a flow's name, [@<flowverse>/][<user>/]<flow>; a path starts with ./, / or ~`;
const notAFlowName = (ref: string, sub: string): string =>
  `${ref}: '${sub}' is not a flow name: letters, digits, \`_\`, \`.\` and \`-\``;
const shape = (ref: string): string => `'${ref}': a ref naming a repository is git+<url>[@<rev>][#<subdir>][:<sub>]`;
const notFetched = (ref: string, url: string): string => `'${ref}': '${url}' is not a URL git can fetch`;

const REFUSED: readonly (readonly [string, string])[] = [
  ["", notAName("")],
  ["a/b/c", notAName("a/b/c")],
  ["@v/a/b/c", notAName("@v/a/b/c")],
  ["@v", notAName("@v")],
  ["@/x", notAName("@/x")],
  ["a/", notAName("a/")],
  ["a//b", notAName("a//b")],
  ["alice/.hidden", notAName("alice/.hidden")],
  ["@v/../x", notAName("@v/../x")],
  ["a\\b", notAName("a\\b")],
  ["./a\0b", notAName("./a\0b")],
  ["chat:", notAFlowName("chat:", "")],
  ["chat:a b", notAFlowName("chat:a b", "a b")],
  [":-x", notAFlowName(":-x", "-x")],
  ["git+", shape("git+")],
  ["git+host/o/r", shape("git+host/o/r")],
  ["git+https://host/o/r@", shape("git+https://host/o/r@")],
  ["git+https://host/o/r@--upload-pack=x", shape("git+https://host/o/r@--upload-pack=x")],
  ["git+https://host/o/r:a b", shape("git+https://host/o/r:a b")],
  ["git+ext://host/o/r", notFetched("git+ext://host/o/r", "ext://host/o/r")],
  ["git+https:///o/r", notFetched("git+https:///o/r", "https:///o/r")],
  ["git+ssh://-oProxyCommand=x/r", notFetched("git+ssh://-oProxyCommand=x/r", "ssh://-oProxyCommand=x/r")],
  ["git+ssh://u@-oX/r", notFetched("git+ssh://u@-oX/r", "ssh://u@-oX/r")],
  ["git+https://host:8080", "'git+https://host:8080': 'https://host:8080' names no repository"],
  ["git+https://host/", "'git+https://host/': 'https://host/' names no repository"],
  ["git+https://h/r#", "'git+https://h/r#': # is not <subdir>[:<subflow>]"],
  ["git+https://h/r#../x", "'git+https://h/r#../x': #../x is not <subdir>[:<subflow>]"],
  ["git+https://h/r#a:b c", "'git+https://h/r#a:b c': #a:b c is not <subdir>[:<subflow>]"],
];

for (const [ref, message] of REFUSED) {
  test(`'${ref.replace("\0", "\\0")}' is refused`, () => {
    assert.throws(
      () => parseRef(ref),
      (error) => error instanceof FlowRefError && error.message === message,
    );
  });
}

test("a password in a git ref is fetched with and never shown", () => {
  const parsed = parseRef("git+https://me:s3cret@host/o/r@v1");
  assert.equal(parsed.kind === "git" && parsed.url, "https://me:s3cret@host/o/r");
  assert.equal(parsed.ref, "git+https://***@host/o/r@v1");
  for (const ref of ["git+https://me:s3cret@host", "git+ftp://me:s3cret@host/x", "git+https://me:s3c@ret@host/o/r@"]) {
    assert.throws(
      () => parseRef(ref),
      (error) => error instanceof FlowRefError && !error.message.includes("s3c"),
      ref,
    );
  }
});

test("any text is a ref or a FlowRefError", () => {
  const text = fc.oneof(
    fc.string(),
    fc.string().map((rest) => `git+${rest}`),
    fc
      .array(fc.constantFrom("a", "..", "/", ":", "@", "#", "git+", "https://", "h", ".", "~", "?", "-", " "))
      .map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, (ref) => {
      try {
        const parsed = parseRef(ref);
        // Nothing that is looked up below a directory can climb out of it.
        if (parsed.kind === "name")
          assert.ok(![parsed.flow, parsed.user ?? "a"].some((part) => /^\.|[/\\]/.test(part)));
      } catch (error) {
        assert.ok(error instanceof FlowRefError);
      }
    }),
    { numRuns: 2000 },
  );
});

test("what is put together is taken apart again", () => {
  const part = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}$/);
  const maybe = fc.option(part, { nil: undefined });
  fc.assert(
    fc.property(maybe, maybe, part, maybe, (flowverse, user, flow, sub) => {
      const ref = `${flowverse ? `@${flowverse}/` : ""}${user ? `${user}/` : ""}${flow}${sub ? `:${sub}` : ""}`;
      assert.deepEqual(parseRef(ref), { kind: "name", ref, flowverse, user, flow, sub });
    }),
  );
  fc.assert(
    fc.property(part, maybe, fc.array(part, { minLength: 1, maxLength: 3 }), maybe, (repo, rev, dirs, sub) => {
      const subdir = dirs.join("/");
      const ref = `git+https://host/o/${repo}${rev ? `@${rev}` : ""}#${subdir}${sub ? `:${sub}` : ""}`;
      assert.deepEqual(parseRef(ref), { kind: "git", ref, url: `https://host/o/${repo}`, rev, subdir, sub });
    }),
  );
});
