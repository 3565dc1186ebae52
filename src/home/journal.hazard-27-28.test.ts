/** A journal that a crash has cut, or that holds what is not its own: read as far as it goes, and appended to. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs, { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
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

const good = (id: number): string => JSON.stringify(record(id));

test("hazard 27: cut at every byte, what was whole is read, and what the next run writes is", async (t) => {
  // Hundreds of syncs would wait for whatever else the disk is asked.
  t.mock.method(fs, "fsyncSync", () => {});
  const restore = syncsBy(t, (_file, done) => setImmediate(done, null));
  t.after(restore);
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
    ["\0".repeat(300), [4]],
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

test("a line of 50 MB is one record", () => {
  const path = fresh();
  const long = record(1, "x".repeat(50 * 1024 * 1024));
  writeFileSync(path, `${HEADER}\n${JSON.stringify(long)}\n${JSON.stringify(record(2))}\n`);
  const { records, bad } = readJournal(path);
  assert.equal(records.length, 2);
  assert.equal((records[0] as { value: string }).value.length, 50 * 1024 * 1024);
  assert.deepEqual(records[1], record(2));
  assert.deepEqual(bad, []);
});

test("a record whose middle was lost is not read as a shorter one", () => {
  const path = fresh();
  const lines = [
    `{"t":"set","id":1,"key":"k","value":"ab\0\0cd"}`,
    `{"t":"set","id":1,"key":"k","value":12\0\0\0}`,
    // What stands between two runs of NULs may be a piece of another record's value.
    `{"t":"set","value":\0\0{"t":"end","id":1,"ok":true}\0\0}`,
    // Half of a character.
    Buffer.from(`{"t":"set","id":1,"key":"k","value":"ü"}`).subarray(0, -3),
    Buffer.concat([Buffer.from(`{"t":"set","id":1,"key":"k","value":"`), Buffer.from([0xc3]), Buffer.from(`"}`)]),
  ];
  const newline = Buffer.from("\n");
  writeFileSync(path, Buffer.concat([...lines.flatMap((line) => [Buffer.from(line), newline]), Buffer.from(good(2))]));
  assert.deepEqual(readJournal(path), { records: [record(2)], bad: [1, 2, 3, 4, 5] });
  // Two records whose newline is gone with what stood between them.
  writeFileSync(path, `${good(1)}\0\0\0${good(2)}\n${good(3)}`);
  assert.deepEqual(readJournal(path), { records: [record(1), record(2), record(3)], bad: [1] });
});

test("lines are whole wherever the parts that are read at once end", () => {
  const path = fresh();
  const ids = Array.from({ length: 30_000 }, (_, id) => id);
  // Longer than two parts, no two lines at the same place in theirs; with a line that is no text, and without.
  for (const noise of ["", "\xff\n"]) {
    const text = ids.map((id) => JSON.stringify(record(id, "ü".repeat(id % 331)))).join("\n");
    writeFileSync(path, Buffer.concat([Buffer.from(noise, "latin1"), Buffer.from(text)]));
    const { records, bad } = readJournal(path);
    assert.deepEqual(bad, noise === "" ? [] : [1]);
    assert.deepEqual(
      records.map((each) => (each as { id: number }).id),
      ids,
    );
  }
});

test("bytes lost at random lose the records that they are of, and make up none", () => {
  const path = fresh();
  const records = Array.from({ length: 8 }, (_, id) => record(id, { t: "set", n: id, text: "é\u2028".repeat(id) }));
  const whole = Buffer.from(records.map((each) => `${JSON.stringify(each)}\n`).join(""));
  const harm = fc.record({
    from: fc.nat(whole.length),
    length: fc.integer({ min: 1, max: 200 }),
    kind: fc.constantFrom("nuls", "noise", "cut"),
  });
  fc.assert(
    fc.property(harm, ({ from, length, kind }) => {
      const to = Math.min(whole.length, from + length);
      const bytes = Buffer.from(whole);
      bytes.fill(kind === "nuls" ? 0 : 0xfe, from, to);
      writeFileSync(path, kind === "cut" ? bytes.subarray(0, from) : bytes);
      const read = readJournal(path).records.map((each) => JSON.stringify(each));
      let at = 0;
      const untouched = records
        .map((each) => JSON.stringify(each))
        .filter((text) => {
          const end = at + Buffer.byteLength(text);
          const isWhole = kind === "cut" ? end <= from : end < from || at > to;
          at = end + 1;
          return isWhole;
        });
      for (const text of untouched) assert.ok(read.includes(text), text);
      const all = new Set(records.map((each) => JSON.stringify(each)));
      for (const text of read) assert.ok(all.has(text), text);
    }),
    { numRuns: 400 },
  );
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
  // A pipe that nobody writes to would be waited for.
  execFileSync("mkfifo", [`${path}.pipe`]);
  assert.throws(() => readJournal(`${path}.pipe`), UnreadableJournal);
  // One whose first line is torn is read all the same.
  writeFileSync(path, `{"t":"jour\n${JSON.stringify(record(1))}\n`);
  assert.deepEqual(readJournal(path), { records: [record(1)], bad: [1] });
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
  assert.equal(new Set(all).size, 1);
  await Promise.all(all);
  await journal.close();
  assert.equal(readJournal(path).records.length, 128);
});

/** Stands in for the sync of a disk that does as it is told. */
function syncsBy(
  t: { mock: { method: (of: typeof fs, name: "fdatasync", as: typeof fs.fdatasync) => unknown; restoreAll(): void } },
  fdatasync: (file: number, done: (error: NodeJS.ErrnoException | null) => void) => void,
): () => void {
  t.mock.method(fs, "fdatasync", fdatasync as typeof fs.fdatasync);
  syncBuiltinESMExports();
  return () => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  };
}

test("a sync that failed fails for good: the kernel forgets what it could not write", async (t) => {
  let failing = true;
  const restore = syncsBy(t, (_file, done) => setImmediate(() => done(failing ? new Error("EIO") : null)));
  try {
    const told: string[] = [];
    const journal = openJournal({ path: fresh(), durable: true, trouble: ({ message }) => told.push(message) });
    journal.begin([HEADER]);
    journal.append(good(1), true);
    await assert.rejects(journal.synced(), { message: "EIO" });
    failing = false;
    await assert.rejects(journal.synced(), { message: "EIO" });
    await journal.close();
    assert.deepEqual(told, ["EIO"]);
  } finally {
    restore();
  }
});

test("a close waits for every sync that was asked for, and none is told before its own is done", async (t) => {
  const waiting: (() => void)[] = [];
  const restore = syncsBy(t, (_file, done) => waiting.push(() => done(null)));
  try {
    const journal = openJournal({ path: fresh(), durable: true, trouble });
    journal.begin([HEADER]);
    const order: string[] = [];
    journal.append(good(1), true);
    const first = journal.synced().then(() => order.push("first"));
    await new Promise(setImmediate);
    journal.append(good(2), true);
    const second = journal.synced().then(() => order.push("second"));
    const closed = journal.close().then(() => order.push("closed"));
    assert.equal(waiting.length, 1);
    waiting[0]?.();
    await first;
    await new Promise(setImmediate);
    assert.deepEqual(order, ["first"]);
    assert.equal(waiting.length, 2);
    waiting[1]?.();
    await Promise.all([second, closed]);
    assert.deepEqual(order, ["first", "second", "closed"]);
  } finally {
    restore();
  }
});

test("what is held back is written as the process leaves", () => {
  const path = fresh();
  const source = new URL("journal.ts", import.meta.url).href;
  const program = `
    const { openJournal } = await import(${JSON.stringify(source)});
    const journal = openJournal({ path: ${JSON.stringify(path)}, trouble: (error) => { throw error; } });
    journal.begin([${JSON.stringify(HEADER)}]);
    journal.append(${JSON.stringify(good(1))}, false);
    process.exit(3);`;
  assert.throws(() => execFileSync(process.execPath, ["--input-type=module", "-e", program], { stdio: "ignore" }), {
    status: 3,
  });
  assert.deepEqual(readJournal(path).records, [record(1)]);
});
