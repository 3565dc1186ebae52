// One message larger than any buffer: it is read whole and each byte is looked at once; over the limit, it is told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJsonLine } from "./json-lines.ts";
import { LineSplitter } from "./lines.ts";
import type { Line } from "./lines.ts";

function feed(splitter: LineSplitter, text: string): readonly Line[] {
  const bytes = Buffer.from(text);
  const lines: Line[] = [];
  for (let at = 0; at < bytes.length; at += 65_536) lines.push(...splitter.push(bytes.subarray(at, at + 65_536)));
  return lines;
}

test("a line of 4 MiB in chunks of 64 KiB is one message", () => {
  const message = { type: "user", text: "x".repeat(4 * 1024 * 1024) };
  const [line, ...more] = feed(new LineSplitter(), `${JSON.stringify(message)}\n`);
  assert.deepEqual(more, []);
  assert.ok(line !== undefined);
  assert.deepEqual(parseJsonLine(line), { kind: "json", value: message });
});

test("each byte is looked at once, however many chunks the line has", () => {
  let looked = 0;
  class Counted extends Uint8Array {
    override indexOf(byte: number, from = 0): number {
      const found = super.indexOf(byte, from);
      looked += (found === -1 ? this.length : found + 1) - from;
      return found;
    }
  }
  const splitter = new LineSplitter();
  for (let chunk = 0; chunk < 1000; chunk += 1) splitter.push(new Counted(100).fill(0x61));
  splitter.push(new Counted([0x0a]));
  assert.equal(looked, 100_001);
});

test("over the limit a line is a note with its true size, and the next one is read", () => {
  const splitter = new LineSplitter({ limit: 1_000_000 });
  const [long, next] = feed(splitter, `"${"x".repeat(1_500_000)}"\n{"a":1}\n`);
  assert.ok(long?.kind === "too-long");
  assert.equal(long.bytes, 1_500_002);
  const note = parseJsonLine(long);
  assert.ok(note?.kind === "note");
  assert.match(note.text, /1500002 bytes/);
  assert.ok(note.text.length < 6000);
  assert.deepEqual(next === undefined ? undefined : parseJsonLine(next), { kind: "json", value: { a: 1 } });
});
