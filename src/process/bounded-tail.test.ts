import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { BoundedTail } from "./bounded-tail.ts";

test("it holds the last bytes of whatever came, however it was cut", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.array(fc.uint8Array({ maxLength: 30 })), (limit, chunks) => {
      const tail = new BoundedTail(limit);
      for (const chunk of chunks) tail.push(chunk);
      const all = Buffer.concat(chunks);
      assert.deepEqual(tail.bytes(), Buffer.from(all.subarray(Math.max(0, all.length - limit))));
      assert.equal(tail.total, all.length);
      assert.equal(tail.truncated, all.length > limit);
    }),
  );
});

test("its text starts at a whole character", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1 }), fc.integer({ min: 1, max: 40 }), (text, limit) => {
      const tail = new BoundedTail(limit);
      tail.push(Buffer.from(text));
      assert.ok(text.isWellFormed());
      assert.ok(text.endsWith(tail.text()), JSON.stringify([text, tail.text()]));
    }),
  );
});
