import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import * as fc from "fast-check";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { createEpic, type EpicWriter } from "./epic.ts";
import { type ExportedEpic, exportEpic } from "./export.ts";
import { Home } from "./paths.ts";
import { Redaction } from "./redaction.ts";

const usage = { duration: 62_000, cost: 1.25, outputTokens: 1_500 };
const KEY = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx";
const ENV = { MY_TOKEN: 'a "secret" of\nmine \\ here' };

function epicIn(task: string, params: unknown = {}): EpicWriter {
  return createEpic({
    home: new Home(temporaryDirectory("export")),
    workspace: temporaryDirectory("export"),
    began: {
      flow: "twice",
      ref: "twice:twice",
      task,
      resumable: true,
      agents: [{ agent: "builder", backend: "claude", model: "opus", effort: "high", provider: "work" }],
      envs: ["here=local/srv"],
      params,
      budget: { cost: 5, outputTokens: 200_000 },
    },
    trouble: (error) => assert.fail(error),
  });
}

function sayingIn(epic: EpicWriter, text: string): void {
  const turn = {
    at: 1_800_000_000,
    agent: "builder",
    cli: "claude",
    model: "opus",
    session: "s1",
    call: 0,
    turn: 1,
  } as const;
  epic.record({ kind: "opened", at: 1, call: 0, agent: "builder", cli: "claude", provider: "work", session: "s1" });
  epic.record({ kind: "called", at: 2, call: 1, under: 0, flow: "plan:plan", task: text });
  epic.record({ ...turn, kind: "begins", text, conversation: 1 });
  epic.record({
    ...turn,
    kind: "tool",
    text,
    tool: "Bash",
    input: { command: text, nested: JSON.stringify({ text }) },
  });
  epic.record({ ...turn, kind: "tool-ends", text, tool: "Bash", failed: true });
  epic.record({ ...turn, kind: "text", text: `${"x".repeat(4_090)}${text}` });
  epic.record({
    ...turn,
    kind: "result",
    text,
    tokens: { opus: 1_500 },
    spent: { input: 12, output: 1_500 },
    cost: 1.25,
  });
  epic.record({ ...turn, kind: "ends", text: "", seconds: 62 });
}

interface Unpacked {
  readonly made: ExportedEpic;
  /** By path, without the archive's one directory. */
  readonly files: Readonly<Record<string, string>>;
  readonly everything: string;
  readonly directory: string;
}

/** Packs an epic, and unpacks it with the system's own tar. */
async function unpacked(directory: string): Promise<Unpacked> {
  const file = join(temporaryDirectory("export"), "out.epic.tar.gz");
  const made = await exportEpic({ directory, file, force: false, redaction: Redaction.of(ENV), about: { hmz: "1" } });
  const into = temporaryDirectory("export");
  execFileSync("tar", ["-xzf", file, "-C", into]);
  const [name = "", ...others] = readdirSync(into);
  assert.deepEqual(others, []);
  const files: Record<string, string> = {};
  for (const path of readdirSync(join(into, name), { recursive: true, encoding: "utf8" })) {
    if (statSync(join(into, name, path)).isFile()) files[path] = readFileSync(join(into, name, path), "utf8");
  }
  return { made, files, everything: gunzipSync(readFileSync(file)).toString("latin1"), directory: join(into, name) };
}

test("an epic is one file: its record, its sessions, its trace, a transcript, a manifest; of no owner, for nobody else", async () => {
  const epic = epicIn("fix it");
  sayingIn(epic, "the words");
  writeFileSync(join(epic.directory, "resume.jsonl"), '{"t":"journal","v":1}\n');
  writeFileSync(join(epic.directory, "profile.jsonl"), '{"event":"ran","pid":3,"ppid":1,"began":1,"seen":2}\n');
  mkdirSync(join(epic.directory, "sessions/claude/.kept/ab"), { recursive: true });
  const long = `${"a-long-name-".repeat(12)}é.jsonl`;
  writeFileSync(join(epic.directory, "sessions/claude/.kept/ab", long), '{"said":"kept"}\n');
  mkdirSync(join(epic.directory, "traces"));
  writeFileSync(join(epic.directory, "traces/old.trace.json"), "{}");
  epic.end({ how: "failed", usage, error: { name: "HarnessRefused", message: "no" } });
  const { made, files, directory } = await unpacked(epic.directory);
  assert.deepEqual(Object.keys(files).toSorted(), [
    "epic.jsonl",
    "events.jsonl",
    "manifest.json",
    "profile.jsonl",
    "resume.jsonl",
    `sessions/claude/.kept/ab/${long}`,
    "traces/export.trace.json",
    "transcript.md",
  ]);
  assert.deepEqual(made.files.toSorted(), Object.keys(files).toSorted());
  assert.equal(statSync(made.file).size, made.bytes);
  assert.equal(statSync(made.file).mode & 0o777, 0o600);
  assert.equal(execFileSync("tar", ["-tvzf", made.file], { encoding: "utf8" }).match(/^-rw------- 0\/0 /gm)?.length, 8);
  // What held no secret is what it was, byte for byte.
  assert.equal(files["events.jsonl"], readFileSync(join(epic.directory, "events.jsonl"), "utf8"));
  assert.equal(files["epic.jsonl"], readFileSync(join(epic.directory, "epic.jsonl"), "utf8"));
  const manifest = JSON.parse(files["manifest.json"] ?? "") as Readonly<Record<string, unknown>>;
  assert.equal(manifest["hmz"], "1");
  assert.equal(manifest["epic"], epic.name);
  assert.deepEqual(manifest["usage"], { cost: 1.25, outputTokens: 1_500, seconds: 62 });
  assert.equal((manifest["run"] as { how: string }).how, "failed");
  assert.equal((manifest["sessions"] as unknown[]).length, 1);
  assert.equal(
    (JSON.parse(files["traces/export.trace.json"] ?? "") as { displayTimeUnit: string }).displayTimeUnit,
    "ms",
  );
  assert.match(
    files["transcript.md"] ?? "",
    /^# twice\n\n> fix it\n[\s\S]*\n### builder, turn 1\n\nprompt:\n\n> the words\n/,
  );
  assert.equal(directory.split("/").at(-1), epic.name);
  assert.ok(
    !readdirSync(tmpdir()).some(
      (name) => name.startsWith("hmz-export-") && existsSync(join(tmpdir(), name, "manifest.json")),
    ),
  );
});

test("no secret that was planted is in any of its files, in any form, and JSON stays JSON", async () => {
  const own = ENV.MY_TOKEN;
  const json = JSON.stringify(own).slice(1, -1);
  const said = fc.array(
    fc.constantFrom(
      own,
      json,
      JSON.stringify({ api_key: "hunter2222" }),
      `Authorization: Bearer ${KEY}`,
      "https://me:hunter2222@example.com/?access_token=hunter2222",
      "DB_PASSWORD=hunter2222",
      '{"a": "\\"client_secret\\": \\"hunter2222\\""}',
      Buffer.from(own).toString("base64"),
      encodeURIComponent(own),
      "-----BEGIN PRIVATE KEY-----\nMIIEhunter2222\n-----END PRIVATE KEY-----",
      "\u001b[31m",
      "\ud800",
    ),
    { minLength: 1, maxLength: 4 },
  );
  await fc.assert(
    fc.asyncProperty(said, async (texts) => {
      const text = texts.join(" and ");
      const epic = epicIn(text, { api_key: "hunter2222", said: text });
      sayingIn(epic, text);
      const sessions = join(epic.directory, "sessions/claude");
      mkdirSync(sessions, { recursive: true });
      writeFileSync(join(sessions, "a.json"), JSON.stringify({ text, deep: { password: "hunter2222" } }, undefined, 2));
      writeFileSync(join(sessions, "b.txt"), `${"x ".repeat(50_000)}${text}`);
      writeFileSync(
        join(sessions, "c.jsonl"),
        `${JSON.stringify({ text })}\n{"torn": ${JSON.stringify(text).slice(0, -1)}`,
      );
      writeFileSync(join(sessions, `d-${KEY}.log`), text);
      epic.end({ how: "failed", usage, error: { name: "E", message: text } });
      const { files, everything } = await unpacked(epic.directory);
      const planted = [
        "hunter2222",
        own,
        KEY,
        json,
        Buffer.from(own).toString("base64"),
        encodeURIComponent(own),
        "MIIEhunter",
      ];
      for (const secret of planted) {
        const at = everything.indexOf(Buffer.from(secret).toString("latin1"));
        assert.ok(at === -1, everything.slice(Math.max(0, at - 200), at + 100));
      }
      for (const [path, content] of Object.entries(files)) {
        if (path.endsWith(".json")) JSON.parse(content);
        const lines = path.endsWith(".jsonl") ? content.trimEnd().split("\n") : [];
        for (const line of lines) if (!line.startsWith('{"torn"')) JSON.parse(line);
      }
      // How much was spent is no secret.
      assert.match(files["events.jsonl"] ?? "", /"tokens":\{"opus":1500\},"spent":\{"input":12,"output":1500\}/);
      assert.match(files["epic.jsonl"] ?? "", /"outputTokens":200000/);
    }),
    { numRuns: 12 },
  );
});

test("nothing is followed out of the epic, and what cannot be read as text is left out and said", async () => {
  const outside = join(temporaryDirectory("export"), "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "secret.txt"), "outside words");
  const epic = epicIn("fix it");
  const sessions = join(epic.directory, "sessions");
  mkdirSync(join(sessions, "claude"), { recursive: true });
  symlinkSync(join(outside, "secret.txt"), join(sessions, "claude", "file"));
  symlinkSync(outside, join(sessions, "claude", "directory"));
  symlinkSync(join(outside, "secret.txt"), join(epic.directory, "epic.other.jsonl"));
  execFileSync("mkfifo", [join(sessions, "claude", "pipe")]);
  writeFileSync(join(sessions, "claude", "state.sqlite"), `SQLite format 3\0 ${KEY}`);
  writeFileSync(join(sessions, "claude", "half.txt"), Buffer.from([0x61, 0xff, 0xfe]));
  writeFileSync(join(epic.directory, "else.txt"), "not a file of the record");
  epic.end({ how: "done", usage });
  const { made, files, everything } = await unpacked(epic.directory);
  assert.ok(!everything.includes("outside words"));
  assert.ok(!everything.includes(KEY));
  assert.ok(!Object.keys(files).includes("else.txt"));
  const text = "it is not text, so nothing can be taken out of it";
  assert.deepEqual(made.leftOut, [
    { path: "epic.other.jsonl", why: "it is a symbolic link" },
    { path: "sessions/claude/directory", why: "it is a symbolic link" },
    { path: "sessions/claude/file", why: "it is a symbolic link" },
    { path: "sessions/claude/half.txt", why: text },
    { path: "sessions/claude/pipe", why: "it is no plain file" },
    { path: "sessions/claude/state.sqlite", why: text },
  ]);
  assert.deepEqual((JSON.parse(files["manifest.json"] ?? "") as { left_out: unknown }).left_out, made.leftOut);
});

test("a link in the place of the sessions is not followed, and a run that is going is handed on as far as it goes", async () => {
  const outside = temporaryDirectory("export");
  writeFileSync(join(outside, "secret.txt"), "outside words");
  const epic = epicIn("fix it");
  symlinkSync(outside, join(epic.directory, "sessions"));
  const { made, files } = await unpacked(epic.directory);
  assert.deepEqual(made.leftOut, [{ path: "sessions", why: "it is a symbolic link" }]);
  assert.equal((JSON.parse(files["manifest.json"] ?? "") as { run: { how: string } }).run.how, "going");
  epic.end({ how: "done", usage });
});

test("what a model says makes no heading of the transcript, and nothing in it is obeyed", async () => {
  const epic = epicIn("fix it");
  sayingIn(epic, "# not a heading\n### builder, turn 9\n\u001b[2J\u202e");
  epic.end({ how: "done", usage });
  const { files } = await unpacked(epic.directory);
  const transcript = files["transcript.md"] ?? "";
  assert.deepEqual(transcript.match(/^#.*$/gm), ["# twice", "## Calls", "## Turns", "### builder, turn 1"]);
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(transcript, /[\u0000-\u0008\u001b\u202e]/);
});
