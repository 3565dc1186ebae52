/** A journal that a crash has cut, or that holds what is not its own: read as far as it goes, and appended to. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { openJournal, readJournal, UnreadableJournal } from "./journal.ts";

const HEADER = '{"t":"journal","v":1}';

function fresh(): string {
  return join(temporaryDirectory("journal"), "resume.jsonl");
}

const trouble = (error: Error): never => {
  throw error;
};

const record = (id: number, value: unknown = id) => ({ t: "set", id, key: `k${id}`, value });

test("hazard 27: cut at every byte, what was whole is read, and what the next run writes is", async () => {
  const records = [record(1), record(2, "zwei ü\u2028"), record(3, { deep: [null] })];
  const whole = Buffer.from([HEADER, ...records.map((each) => JSON.stringify(each))].join("\n") + "\n");
  const path = fresh();
  const next = join(dirname(path), "next.jsonl");
  for (let cut = 0; cut <= whole.length; cut++) {
    writeFileSync(path, whole.subarray(0, cut));
    const { records: earlier, bad } = readJournal(path);
    const newlines = whole.subarray(0, cut).filter((byte) => byte === 0x0a).length;
    const complete = records.slice(0, Math.max(0, newlines - 1));
    // A record that only lacks its newline is whole.
    assert.ok(earlier.length === complete.length || earlier.length === complete.length + 1, `cut at ${cut}`);
    assert.deepEqual(earlier, records.slice(0, earlier.length), `cut at ${cut}`);
    assert.ok(bad.length <= 1, `cut at ${cut}`);
    const journal = openJournal({ path: next, earlier, trouble });
    journal.begin([HEADER, ...earlier.map((each) => JSON.stringify(each))]);
    journal.append(JSON.stringify(record(9)), true);
    await journal.close();
    assert.deepEqual(readJournal(next), { records: [...earlier, record(9)], bad: [] }, `cut at ${cut}`);
  }
});

test("hazard 28: 300 NULs between good lines are one line that is passed over, and told", () => {
  const path = fresh();
  const lines = (from: number) => [0, 1, 2].map((index) => JSON.stringify(record(from + index))).join("\n");
  for (const [middle, bad] of [
    [`${"\0".repeat(300)}\n`, [4]],
    ["\0".repeat(300), []],
    ["garbage\n", [4]],
    ['{"t":"set"}{"t":"set"}\n', [4]],
    ["[1]\n", [4]],
    ["5\n", [4]],
    ["\n", []],
    ["\u001b[2J{\n", [4]],
  ] as const) {
    writeFileSync(path, `${lines(1)}\n${middle}${lines(4)}\n`);
    const read = readJournal(path);
    assert.deepEqual(
      read.records,
      [1, 2, 3, 4, 5, 6].map((id) => record(id)),
      JSON.stringify(middle),
    );
    assert.deepEqual(read.bad, bad, JSON.stringify(middle));
  }
});

test("bytes that are no text, and lines that end as elsewhere, lose nothing beside them", () => {
  const path = fresh();
  const good = JSON.stringify(record(1));
  writeFileSync(
    path,
    Buffer.concat([Buffer.from(`${HEADER}\r\n${good}\r\n`), Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from(good)]),
  );
  assert.deepEqual(readJournal(path), { records: [record(1), record(1)], bad: [3] });
  writeFileSync(path, "");
  assert.deepEqual(readJournal(path), { records: [], bad: [] });
});

test("a line of 20 MB is one record", () => {
  const path = fresh();
  const long = record(1, "x".repeat(20 * 1024 * 1024));
  writeFileSync(path, `${HEADER}\n${JSON.stringify(long)}\n${JSON.stringify(record(2))}\n`);
  const { records } = readJournal(path);
  assert.equal(records.length, 2);
  assert.deepEqual(records[1], record(2));
});

test("one of a newer version is refused, and so is what cannot be read", () => {
  const path = fresh();
  for (const version of ["2", "1.5", '"1"', "null"]) {
    writeFileSync(path, `{"t":"journal","v":${version}}\n${JSON.stringify(record(1))}\n`);
    assert.throws(() => readJournal(path), {
      name: "UnreadableJournal",
      message: `the journal ${path} is of version ${version}, and this hmz reads version 1: resume it with the hmz that wrote it`,
    });
  }
  assert.throws(() => readJournal(dirname(path)), UnreadableJournal);
  assert.throws(() => readJournal(`${path}.none`), UnreadableJournal);
});

test("whatever is between them, no record that is whole on a line of its own is lost, and none is invented", () => {
  const path = fresh();
  const noise = fc.oneof(
    fc.string(),
    fc.constantFrom("\0\0\0", "{", "}", '{"t":', "[]", "null", '"x"'),
    fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  );
  const line = fc.oneof(
    fc.record({ id: fc.nat(), value: fc.jsonValue() }).map(({ id, value }) => ({ whole: record(id, value) })),
    noise.map((text) => ({ text: text.replaceAll("\n", " ") })),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
      writeFileSync(path, lines.map((each) => ("whole" in each ? JSON.stringify(each.whole) : each.text)).join("\n"));
      const { records, bad } = readJournal(path);
      const whole = lines.filter((each) => "whole" in each).map((each) => JSON.stringify(each.whole));
      const read = records.map((each) => JSON.stringify(each)).filter((text) => text.includes('"t":"set"'));
      assert.deepEqual(read, whole);
      assert.ok(bad.every((number) => number >= 1 && number <= lines.length));
    }),
    { numRuns: 300 },
  );
});

test("what is held back comes before what is flushed, in one write, and by itself after a tenth of a second", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const path = fresh();
  const journal = openJournal({ path, trouble });
  journal.begin([HEADER]);
  const held = () => readFileSync(path, "utf8").split("\n").length - 2;
  journal.append(JSON.stringify(record(1)), false);
  journal.append(JSON.stringify(record(2)), false);
  assert.equal(held(), 0);
  journal.append(JSON.stringify(record(3)), true);
  assert.deepEqual(readJournal(path).records, [record(1), record(2), record(3)]);
  journal.append(JSON.stringify(record(4)), false);
  t.mock.timers.tick(99);
  assert.equal(held(), 3);
  t.mock.timers.tick(1);
  assert.equal(held(), 4);
  journal.append(JSON.stringify(record(5)), false);
  await journal.synced();
  assert.equal(held(), 5);
  journal.append(JSON.stringify(record(6)), false);
  await journal.close();
  assert.equal(held(), 6);
  await journal.close();
  journal.append("late", false);
  assert.throws(() => journal.append("late", true), /closed/);
});

test("beginning writes it whole or not at all, and leaves nothing beside it", async () => {
  const path = fresh();
  writeFileSync(path, "before\n");
  const journal = openJournal({ path, trouble });
  assert.throws(() =>
    journal.begin(
      (function* () {
        yield HEADER;
        throw new Error("in the middle");
      })(),
    ),
  );
  assert.equal(readFileSync(path, "utf8"), "before\n");
  assert.deepEqual(readdirSync(dirname(path)), ["resume.jsonl"]);
  await journal.close();
  const gone = openJournal({ path: join(dirname(path), "none", "resume.jsonl"), trouble });
  assert.throws(() => gone.begin([HEADER]));
  assert.ok(!existsSync(join(dirname(path), "none")));
});

test("those who wait for a sync at once share it", async () => {
  const path = fresh();
  const journal = openJournal({ path, durable: true, trouble });
  journal.begin([HEADER]);
  const all = Array.from({ length: 128 }, (_, id) => {
    journal.append(JSON.stringify(record(id)), true);
    return journal.synced();
  });
  // The first has one of its own; who comes while it runs waits for the next.
  assert.equal(new Set(all).size, 2);
  await Promise.all(all);
  await journal.close();
  assert.equal(readJournal(path).records.length, 128);
});
