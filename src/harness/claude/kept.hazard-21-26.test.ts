import assert from "node:assert/strict";
import { test } from "node:test";
import { StoodIn } from "../../../test/fixtures/claude/stood-in.ts";

for (const does of [["keyed"], ["keyed", "nameless"]] as const) {
  test(`hazard 21: a conversation that is found from its own workdir alone goes on in another (${does.join()})`, async () => {
    await using claude = new StoodIn(...does);
    const session = claude.open();
    await claude.take(session, "one", "work/tree");
    const id = session.id;
    assert.equal(await claude.take(session, "two", "work"), "said: one|two");
    assert.equal(session.id, id);
    const fork = claude.open({ forkOf: session });
    assert.equal(await claude.take(fork, "three", "elsewhere"), "said: one|two|three");

    // Kept where it goes on, and not where it was left.
    session.keep?.(claude.directory("kept"));
    const carried = claude.open({ carries: { id, at: claude.directory("kept") } });
    assert.equal(await claude.take(carried, "four", "yet/another"), "said: one|two|four");
  });
}

test("hazard 26: a conversation that goes on under another id is resumed, kept and forked under that", async () => {
  await using claude = new StoodIn("renames");
  const session = claude.open();
  await claude.take(session, "one");
  const first = session.id;
  assert.equal(await claude.take(session, "two", "elsewhere"), "said: one|two");
  const second = session.id;
  assert.notEqual(second, first);

  session.keep?.(claude.directory("kept"));
  assert.equal(await claude.take(session, "three"), "said: one|two|three");
  const resumed = claude.starts.slice(1).map((argv) => argv[argv.indexOf("--resume") + 1]);
  assert.deepEqual(resumed, [first, second]);
  const carried = claude.open({ carries: { id: second, at: claude.directory("kept") } });
  assert.equal(await claude.take(carried, "four"), "said: one|two|four");
  assert.equal(await claude.take(claude.open({ forkOf: session }), "five"), "said: one|two|three|five");
});
