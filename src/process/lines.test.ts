import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { LineSplitter, readLines } from "./lines.ts";
import type { Line } from "./lines.ts";

function split(bytes: Uint8Array, cuts: readonly number[], limit?: number): readonly Line[] {
  const splitter = new LineSplitter(limit === undefined ? {} : { limit });
  const lines: Line[] = [];
  let from = 0;
  for (const cut of [...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b)) {
    lines.push(...splitter.push(bytes.slice(from, cut)));
    from = cut;
  }
  return [...lines, ...splitter.push(bytes.slice(from)), ...splitter.flush()];
}

test("wherever the chunks are cut, the lines are those of the whole text", () => {
  const piece = fc.oneof(
    fc.constantFrom("\n", "\r", "\r\n", "\u2028", "\u2029", "\u0085", "\u{1f600}"),
    fc.string({ unit: "grapheme" }),
  );
  fc.assert(
    fc.property(fc.array(piece), fc.array(fc.nat()), (pieces, cuts) => {
      const text = pieces.join("").replaceAll("\ufeff", "");
      const wanted = text.split("\n");
      if (wanted.at(-1) === "") wanted.pop();
      assert.deepEqual(
        split(Buffer.from(text), cuts),
        wanted.map((line) => ({ kind: "line", text: line.replace(/\r$/, "") })),
      );
    }),
  );
});

test("a line over the limit gives its true size and its head, and the stream goes on, wherever it is cut", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 60 }), fc.boolean(), fc.array(fc.nat()), (size, returns, cuts) => {
      const text = `a\n${"x".repeat(size)}${returns ? "\r" : ""}\nb`;
      const [first, second, third, ...more] = split(Buffer.from(text), cuts, 20);
      assert.deepEqual(first, { kind: "line", text: "a" });
      assert.deepEqual(third, { kind: "line", text: "b" });
      assert.deepEqual(more, []);
      if (size <= 20) return assert.deepEqual(second, { kind: "line", text: "x".repeat(size) });
      assert.equal(second?.kind, "too-long");
      // The `\r` of a line that was let go is a byte of it.
      if (second.kind === "too-long") assert.ok(second.bytes === size || (returns && second.bytes === size + 1));
      if (second.kind === "too-long") assert.ok(text.slice(2).startsWith(second.head) && second.head.length >= 20);
    }),
  );
});

test("the head of an overlong line is bounded and ends at a whole character", () => {
  const splitter = new LineSplitter({ limit: 10_000 });
  const [line] = [...splitter.push(Buffer.from("≤".repeat(20_000))), ...splitter.push(Buffer.from("\n"))];
  assert.deepEqual(line, { kind: "too-long", bytes: 60_000, head: "≤".repeat(1365) });
});

test("a byte order mark before a line is no part of it", () => {
  assert.deepEqual(split(Buffer.from("\ufeffa\n\ufeffb\nc\ufeff"), []), [
    { kind: "line", text: "a" },
    { kind: "line", text: "b" },
    { kind: "line", text: "c\ufeff" },
  ]);
});

test("a reader that stops early lets go of the stream", async () => {
  let released = false;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield Buffer.from("a\nb\n");
    } finally {
      released = true;
    }
  }
  for await (const line of readLines(chunks())) {
    assert.deepEqual(line, { kind: "line", text: "a" });
    break;
  }
  assert.ok(released);
});
