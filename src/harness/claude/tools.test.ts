import assert from "node:assert/strict";
import { test } from "node:test";
import { answerMcp } from "./tools.ts";

const tools = [
  {
    name: "add",
    about: "adds",
    schema: { type: "object" },
    call: async (input: unknown) => ({ text: JSON.stringify(input), failed: false }),
  },
];
const ask = (message: Readonly<Record<string, unknown>>) => answerMcp({ jsonrpc: "2.0", id: 7, ...message }, tools);

test("speaks MCP", async () => {
  const begun = await ask({ method: "initialize", params: { protocolVersion: "2099-01-01" } });
  assert.equal((begun["result"] as { protocolVersion: string }).protocolVersion, "2099-01-01");
  assert.deepEqual(await ask({ method: "ping" }), { jsonrpc: "2.0", id: 7, result: {} });
  const list = (await ask({ method: "tools/list" }))["result"] as { tools: { name: string }[] };
  assert.deepEqual(
    list.tools.map(({ name }) => name),
    ["add"],
  );
  const called = await ask({ method: "tools/call", params: { name: "add", arguments: { a: 1 } } });
  assert.deepEqual(called["result"], { content: [{ type: "text", text: '{"a":1}' }], isError: false });
  assert.equal(
    ((await ask({ method: "tools/call", params: { name: "no" } }))["error"] as { code: number }).code,
    -32602,
  );
  assert.equal(((await ask({ method: "resources/list" }))["error"] as { code: number }).code, -32601);
  assert.deepEqual(await answerMcp({ method: "notifications/initialized" }, tools), {
    jsonrpc: "2.0",
    id: 0,
    result: {},
  });
});
