import assert from "node:assert/strict";
import { test } from "node:test";
import { play, says, USER } from "../../../test/fixtures/claude/played.ts";
import { processesWith } from "../../../test/conformance/processes.ts";

test("hazard 1: a program that gives its result and never goes: the turn is a success, and the close ends it", async () => {
  const played = await play([{ stay: true }, USER, says.init(), says.text("ok"), says.result("ok")], {
    limits: { leave: 100 },
  });
  assert.equal((await played.turn()).text, "ok");
  assert.equal((await processesWith(played.mark)).length > 0, true);
  await played[Symbol.asyncDispose]();
  assert.deepEqual(await processesWith(played.mark), []);
});
