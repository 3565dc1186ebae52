import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { EventQueue } from "./event-queue.ts";

async function drained<T>(queue: EventQueue<T>): Promise<T[]> {
  const read: T[] = [];
  for await (const event of queue) read.push(event);
  return read;
}

test("a reader gets every event in order, however reads and writes mix", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom("push", "read"), { maxLength: 60 }), async (steps) => {
      const queue = new EventQueue<number>(() => {});
      let pushed = 0;
      const reads: Promise<IteratorResult<number>>[] = [];
      for (const step of steps) {
        if (step === "push") queue.push(pushed++);
        else reads.push(queue.next());
      }
      queue.end();
      const early = (await Promise.all(reads)).filter(({ done }) => !done).map(({ value }) => value as number);
      assert.deepEqual([...early, ...(await drained(queue))], [...Array(pushed).keys()]);
    }),
  );
});

test("a slow reader loses nothing of a hundred thousand", async () => {
  const queue = new EventQueue<number>(() => {});
  for (let event = 0; event < 100_000; event++) queue.push(event);
  queue.end();
  const read = await drained(queue);
  assert.equal(read.length, 100_000);
  assert.equal(read[99_999], 99_999);
});

test("a reader that leaves is told of, and gets nothing more", async () => {
  let left = 0;
  const queue = new EventQueue<number>(() => left++);
  queue.push(1);
  queue.push(2);
  // oxlint-disable-next-line no-unreachable-loop
  for await (const event of queue) {
    assert.equal(event, 1);
    break;
  }
  queue.push(3);
  assert.equal(left, 1);
  assert.deepEqual(await queue.next(), { value: undefined, done: true });
});
