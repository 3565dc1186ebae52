import assert from "node:assert/strict";
import { it } from "node:test";
import { Journal } from "./journal.ts";

it("who comes while a sync runs that has what they set waits for it, and who comes after waits for none", async () => {
  let finish = (): void => {};
  let syncs = 0;
  const journal = new Journal({
    earlier: undefined,
    durable: true,
    begin: () => {},
    append: () => {},
    synced: () => {
      syncs++;
      return new Promise<void>((resolve) => (finish = resolve));
    },
    close: async () => {},
  });
  const { store } = journal.begin("0", "top");
  assert.equal(journal.settled("top"), undefined);
  store.set("one", "1");
  const first = journal.settled("top");
  const second = journal.settled("top");
  assert.ok(first && second);
  let waited = true;
  void second.then(() => (waited = false));
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(waited);
  // What is set meanwhile is not part of it.
  const finishFirst = finish;
  store.set("two", "2");
  const third = journal.settled("top");
  assert.equal(syncs, 2);
  finishFirst();
  await first;
  await second;
  finish();
  await third;
  assert.equal(journal.settled("top"), undefined);
});
