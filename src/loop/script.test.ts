import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { HarnessUnrecoverable } from "../flows/errors.ts";
import { dueAnswer, parseScript, type Line, type Script } from "./script.ts";

const user = (text: string): Line => ({ by: "user", text });
const steer = (text: string): Line => ({ by: "user", text, steer: true });
const said = (text = ""): Line => ({ by: "assistant", text });
const result = (text: string): Line => ({ by: "tool", text });

function script(scenes: unknown): Script {
  return parseScript(JSON.stringify({ scenes }), "demo.json");
}

function due(scenes: unknown, conversation: readonly Line[]): string | undefined {
  return dueAnswer(script(scenes), conversation, "demo.json").say;
}

test("a prompt plays the scene that it matches, else the next without a matcher", () => {
  const scenes = [
    { steps: [{ say: "first" }] },
    { when: "plan", steps: [{ say: "planned" }] },
    { when: { matches: "^re-?view", flags: "i" }, steps: [{ say: "reviewed" }] },
    { steps: [{ say: "second" }] },
  ];
  assert.equal(due(scenes, [user("hello")]), "first");
  assert.equal(due(scenes, [user("make a plan")]), "planned");
  assert.equal(due(scenes, [user("Re-view it")]), "reviewed");
  assert.equal(due(scenes, [user("hello"), said(), user("plan"), said(), user("more")]), "second");
  assert.throws(
    () => due(scenes, [user("a"), said(), user("b"), said(), user("c")]),
    /has no scene for this prompt: c/,
  );
});

test("a prompt said again plays the next scene that it matches, and the last of them from then on", () => {
  const scenes = [
    { when: "fix", steps: [{ say: "1" }] },
    { when: "fix", steps: [{ say: "2" }] },
  ];
  assert.equal(due(scenes, [user("fix")]), "1");
  assert.equal(due(scenes, [user("fix"), said(), user("fix")]), "2");
  assert.equal(due(scenes, [user("fix"), said(), user("fix"), said(), user("fix")]), "2");
});

test("a step whose condition does not hold is left out; a branch plays its steps or the others", () => {
  const scenes = [
    {
      steps: [
        { say: "try" },
        { if: { contains: "FAIL" }, steps: [{ say: "mend" }, { say: "mended" }], else: [{ say: "cheer" }] },
        { if: { lacks: "done" }, say: "unsure" },
        { say: "end" },
      ],
    },
  ];
  assert.equal(due(scenes, [user("x"), said(), result("1 FAIL")]), "mend");
  assert.equal(due(scenes, [user("x"), said(), result("1 FAIL"), said(), result("ok")]), "mended");
  assert.equal(due(scenes, [user("x"), said(), result("pass")]), "cheer");
  assert.equal(due(scenes, [user("x"), said(), result("pass"), said(), result("done")]), "end");
  assert.equal(due(scenes, [user("x"), said(), result("pass"), said(), result("hm")]), "unsure");
});

test("a steer that fits no scene leaves the one under way; one after its end is answered all the same", () => {
  const scenes = [
    { when: "work", steps: [{ say: "1" }, { say: "2" }] },
    { when: "stop", steps: [{ say: "stopped" }] },
  ];
  assert.equal(due(scenes, [user("work"), said(), result(""), steer("faster")]), "2");
  assert.equal(due(scenes, [user("work"), said(), result(""), steer("stop")]), "stopped");
  assert.match(due(scenes, [user("work"), said(), said(), steer("faster")]) ?? "", /nothing more to say/);
});

test("a script that is no JSON names the line", () => {
  for (const [text, line] of [
    ["oops", 1],
    ['{\n"scenes": [\n{,\n', 3],
    ['{\n"scenes": [],\n}\n\n', 3],
    ['{\n"a": "x\ny"\n}', 2],
    ['{\n"a": 1\n', 3],
  ] as const) {
    assert.throws(
      () => parseScript(text, "demo.json"),
      (error) =>
        error instanceof HarnessUnrecoverable && error.message.includes(`demo.json is not JSON, line ${line}: `),
      text,
    );
  }
});

test("whatever a script file holds, it is a script or a clear refusal", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      try {
        parseScript(text, "demo.json");
      } catch (error) {
        assert.ok(error instanceof HarnessUnrecoverable);
      }
    }),
    { numRuns: 200 },
  );
});
