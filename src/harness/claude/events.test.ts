import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Narrator, toolLine } from "./events.ts";
import { parseMessage } from "./protocol.ts";

test("a tool is one line of at most 120 characters, whatever it was given", () => {
  const input = fc.dictionary(
    fc.constantFrom("command", "path", "x", "prompt"),
    fc.oneof(fc.string({ unit: "binary" }), fc.jsonValue()),
  );
  fc.assert(
    fc.property(fc.string(), input, (tool, input) => {
      const line = toolLine(tool, input);
      assert.ok(line.length <= 120);
      assert.ok(line.isWellFormed());
      assert.doesNotMatch(line, /[\n\r\t]/);
    }),
  );
});

test("a tool's line says the most telling thing", () => {
  assert.equal(toolLine("Bash", { command: "echo\n  hi", description: "greets" }), "Bash echo hi");
  assert.equal(toolLine("mcp__humanize__review", { path: "a.ts" }), "review a.ts");
  assert.equal(toolLine("List", {}), "List");
  assert.equal(toolLine("Bash", { command: "x".repeat(500) }).length, 120);
});

test("what the CLI says in the model's place is a notice, and of a failed call nothing", () => {
  const say = (members: Readonly<Record<string, unknown>>) =>
    new Narrator().tell(
      parseMessage({
        type: "assistant",
        message: { id: "1", model: "<synthetic>", content: [{ type: "text", text: "Goal set" }], usage: {} },
        ...members,
      }),
    );
  assert.deepEqual(say({}), [{ kind: "event", event: { kind: "notice", text: "Goal set" } }]);
  assert.deepEqual(say({ error: "rate_limit" }), []);
});

test("any JSON is a message, and none is an error", () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.constantFrom("system", "assistant", "user", "result", "control_request", "stream_event"),
      (value, type) => {
        const narrator = new Narrator();
        narrator.tell(parseMessage(value));
        narrator.tell(parseMessage({ type, subtype: "init", message: value, event: value, request: value }));
      },
    ),
  );
});
