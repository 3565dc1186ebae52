import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { SessionError } from "../../flows/errors.ts";
import { RecordingHost, totalOf } from "../../../test/conformance/recording-host.ts";
import { play, says, USER } from "../../../test/fixtures/claude/played.ts";
import { StoodIn } from "../../../test/fixtures/claude/stood-in.ts";
import { temporaryDirectory } from "../../../test/support/temporary.ts";

/** Every file under a directory, by its path there. */
function filesIn(directory: string): Readonly<Record<string, string>> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name));
  return Object.fromEntries(files.map((file) => [file.slice(directory.length + 1), readFileSync(file, "utf8")]));
}

test("the copy is the conversation's own files and nothing else of the home", async () => {
  await using claude = new StoodIn();
  const session = claude.open();
  await claude.take(session, "one");
  const [folder = ""] = readdirSync(claude.projects);
  const own = join(claude.projects, folder, session.id);
  mkdirSync(join(own, "subagents"), { recursive: true });
  writeFileSync(join(own, "subagents", "agent-1.jsonl"), "a sub-agent's\n");
  writeFileSync(join(claude.home, ".claude", ".credentials.json"), "a secret");
  symlinkSync(join(claude.home, ".claude", ".credentials.json"), join(own, "link.json"));
  symlinkSync(join(claude.home, ".claude"), join(own, "linked"));
  writeFileSync(join(claude.projects, folder, "another.jsonl"), "another's\n");
  // What tools said after the conversation went on in another workdir.
  mkdirSync(join(claude.projects, "-elsewhere", session.id, "tool-results"), { recursive: true });
  writeFileSync(join(claude.projects, "-elsewhere", session.id, "tool-results", "1.txt"), "long");

  const into = claude.directory("kept");
  session.keep?.(into);
  assert.deepEqual(filesIn(into), {
    [`${session.id}.jsonl`]: readFileSync(claude.file(session.id), "utf8"),
    [`${session.id}/subagents/agent-1.jsonl`]: "a sub-agent's\n",
    [`${session.id}/tool-results/1.txt`]: "long",
  });
});

test("carried on from where it stood, several times, in any workdir, whatever became of the original", async () => {
  await using claude = new StoodIn();
  const session = claude.open();
  await claude.take(session, "one");
  const into = claude.directory("kept");
  session.keep?.(into);
  const kept = { id: session.id, at: into };
  const before = filesIn(into);
  assert.equal(await claude.take(session, "two"), "said: one|two");
  const original = readFileSync(claude.file(session.id), "utf8");

  const carried = claude.open({ carries: kept });
  assert.equal(carried.id, "");
  assert.equal(await claude.take(carried, "three"), "said: one|three");
  assert.notEqual(carried.id, session.id);
  // From then on it is a conversation of its own: its next process carries it on, and not the copy.
  assert.equal(await claude.take(carried, "four", "elsewhere"), "said: one|three|four");
  assert.equal(await claude.take(claude.open({ carries: kept }), "five", "elsewhere"), "said: one|five");
  assert.deepEqual(filesIn(into), before);
  assert.equal(readFileSync(claude.file(session.id), "utf8"), original);
  rmSync(claude.projects, { recursive: true });
  assert.equal(await claude.take(claude.open({ carries: kept }), "six"), "said: one|six");
});

test("what carries a kept conversation on can be kept in its turn", async () => {
  await using claude = new StoodIn();
  const session = claude.open();
  await claude.take(session, "one");
  session.keep?.(claude.directory("first"));
  const carried = claude.open({ carries: { id: session.id, at: claude.directory("first") } });
  await claude.take(carried, "two");
  carried.keep?.(claude.directory("second"));
  const again = claude.open({ carries: { id: carried.id, at: claude.directory("second") } });
  assert.equal(await claude.take(again, "three"), "said: one|two|three");
});

test("an answer that is not in the file yet is waited for", async () => {
  await using claude = new StoodIn("late");
  const session = claude.open();
  await claude.take(session, "one");
  const into = claude.directory("kept");
  session.keep?.(into);
  assert.match(readFileSync(join(into, `${session.id}.jsonl`), "utf8"), /"said":"said: one"\}\n$/);
});

test("a line that is being written is left out", async () => {
  await using claude = new StoodIn();
  const session = claude.open();
  await claude.take(session, "one");
  const file = claude.file(session.id);
  const whole = readFileSync(file, "utf8");
  writeFileSync(file, `${whole}{"type":"last-pro`);
  const into = claude.directory("kept");
  session.keep?.(into);
  assert.equal(readFileSync(join(into, `${session.id}.jsonl`), "utf8"), whole);
});

test("a conversation that the home does not hold is not kept", async () => {
  await using claude = new StoodIn();
  const session = claude.open();
  assert.throws(() => session.keep?.(claude.directory("kept")), { name: "SessionError", message: /never answered/ });
  await claude.take(session, "one");
  rmSync(claude.projects, { recursive: true });
  assert.throws(() => session.keep?.(claude.directory("kept")), {
    name: "SessionError",
    message: `claude: no conversation ${session.id} under ${claude.projects}`,
  });
  assert.deepEqual(readdirSync(claude.directory("kept")), []);
});

test("refused before the program starts: a copy that is gone", async () => {
  await using claude = new StoodIn();
  const session = claude.open();
  await claude.take(session, "one");
  const into = claude.directory("kept");
  session.keep?.(into);
  const { id } = session;
  const file = join(into, `${id}.jsonl`);
  const starts = claude.starts.length;
  const refused = (kept: { readonly id: string; readonly at: string }): Promise<void> =>
    assert.rejects(claude.take(claude.open({ carries: kept }), "two"), (error) => {
      assert.ok(error instanceof SessionError);
      const said = `the session cannot be forked: claude: no conversation ${kept.id} under ${kept.at}`;
      assert.equal(error.message, said);
      return true;
    });
  await refused({ id, at: join(into, "deleted") });
  await refused({ id: `../kept/${id}`, at: into });
  rmSync(file);
  await refused({ id, at: into });
  mkdirSync(file);
  await refused({ id, at: into });
  assert.equal(claude.starts.length, starts);
});

test("a copy that the program finds no conversation in is refused as one that is gone", async () => {
  await using claude = new StoodIn();
  const session = claude.open();
  await claude.take(session, "one");
  const into = claude.directory("kept");
  session.keep?.(into);
  writeFileSync(join(into, `${session.id}.jsonl`), "\0\0\0\0\n");
  await assert.rejects(claude.take(claude.open({ carries: { id: session.id, at: into } }), "two"), {
    name: "SessionError",
    message: `the session cannot be forked: claude: no conversation ${session.id} under ${into}`,
  });
});

test("totals that hold what the kept conversation had cost are not paid again", async () => {
  const usage = { input_tokens: 100, output_tokens: 20 };
  const totals = { inputTokens: 1100, outputTokens: 520, cacheReadInputTokens: 0, cacheCreationInputTokens: 0 };
  await using played = await play([
    USER,
    says.init(),
    says.text("on", "msg-1", usage),
    says.result("on", { modelUsage: { "scripted-model": totals } }),
  ]);
  const at = temporaryDirectory("kept");
  writeFileSync(join(at, "an-id.jsonl"), "{}\n");
  const session = played.open({ carries: { id: "an-id", at } });
  const host = new RecordingHost(played.setup);
  await session.ready(played.setup);
  await session.take("go on", host);
  assert.deepEqual(totalOf(host.spends), { "scripted-model": { input: 100, output: 20 } });
  const [argv = []] = await played.starts();
  assert.deepEqual(argv.slice(argv.indexOf("--resume")).slice(0, 4), [
    "--resume",
    join(at, "an-id.jsonl"),
    "--fork-session",
    "--session-id",
  ]);
});

test("a session that was interrupted before its first answer is kept as what it carries", async () => {
  await using claude = new StoodIn();
  const session = claude.open();
  await claude.take(session, "one");
  session.keep?.(claude.directory("first"));
  const carried = claude.open({ carries: { id: session.id, at: claude.directory("first") } });
  const host = claude.host();
  await carried.ready(host.setup);
  const named = Promise.withResolvers<void>();
  host.named = () => named.resolve();
  const cut = carried.take("hang", host);
  await named.promise;
  host.abort(new Error("enough"));
  await assert.rejects(cut, /enough/);
  carried.keep?.(claude.directory("second"));
  const again = claude.open({ carries: { id: carried.id, at: claude.directory("second") } });
  assert.equal(await claude.take(again, "two"), "said: one|two");
});
