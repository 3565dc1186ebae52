import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ModelMessage } from "ai";
import { SessionError } from "../flows/errors.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { Worker, Workplace } from "../../test/loop/session.ts";
import { keepConversation, keptMessages } from "./kept.ts";

const SPOKEN: readonly ModelMessage[] = [
  { role: "user", content: "add" },
  {
    role: "assistant",
    content: [
      { type: "reasoning", text: "hm", providerOptions: { anthropic: { signature: "c2ln" } } },
      { type: "text", text: "I run it." },
      { type: "tool-call", toolCallId: "1", toolName: "shell", input: { command: "true" } },
    ],
  },
  {
    role: "tool",
    content: [{ type: "tool-result", toolCallId: "1", toolName: "shell", output: { type: "text", value: "" } }],
  },
  { role: "user", content: "faster", providerOptions: { hmz: { steer: true } } },
  { role: "assistant", content: [{ type: "text", text: "done" }] },
];

test("what is read is what was kept, in a file of the person's alone", async () => {
  const at = temporaryDirectory("kept");
  keepConversation("an-id", SPOKEN, at);
  assert.deepEqual(await keptMessages({ id: "an-id", at }), SPOKEN);
  assert.deepEqual(readdirSync(at), ["conversation.json"]);
  assert.equal(statSync(join(at, "conversation.json")).mode & 0o777, 0o600);
  assert.throws(() => keepConversation("another", SPOKEN, at), { code: "EEXIST" });
});

test("a file that holds no conversation of the id is none", async () => {
  const whole = { v: 1, id: "an-id", messages: SPOKEN };
  const files: readonly string[] = [
    "",
    "\0\0\0\0",
    "null",
    JSON.stringify(whole).slice(0, -40),
    JSON.stringify({ ...whole, v: 2 }),
    JSON.stringify({ ...whole, id: "another" }),
    JSON.stringify({ ...whole, messages: undefined }),
    JSON.stringify({ ...whole, messages: [...SPOKEN, { role: "nobody", content: "x" }] }),
    JSON.stringify({ ...whole, messages: [{ role: "user", content: 7 }] }),
  ];
  for (const text of files) {
    const at = temporaryDirectory("kept");
    writeFileSync(join(at, "conversation.json"), text);
    await assert.rejects(keptMessages({ id: "an-id", at }), (error) => {
      assert.ok(error instanceof SessionError);
      assert.equal(error.message, `the session cannot be forked: native: no conversation an-id under ${at}`);
      return true;
    });
  }
});

test("a conversation goes on in another run from its file, which holds no key", async () => {
  using at = new Workplace();
  const script = {
    scenes: [
      { when: "first", steps: [{ tools: [{ tool: "shell", input: { command: "echo seen" } }] }, { say: "one" }] },
      { when: "second", steps: [{ say: "two" }] },
    ],
  };
  const env = { ANTHROPIC_API_KEY: "sk-ant-a-secret", OPENAI_BASE_URL: "http://127.0.0.1:9" };
  const worker = new Worker(at, { script, env });
  await worker.take("first");
  const directory = temporaryDirectory("kept");
  worker.session.keep?.(directory);
  const text = readFileSync(join(directory, "conversation.json"), "utf8");
  assert.doesNotMatch(text, /a-secret|127\.0\.0\.1/);
  const id = worker.session.id;
  await worker.take("second");

  const later = new Worker(at, { script, env, carries: { id, at: directory } });
  assert.equal((await later.take("second")).text, "two");
  assert.notEqual(later.session.id, id);
  const spoken = later.session.messages?.map(({ role }) => role);
  assert.deepEqual(spoken, ["user", "assistant", "tool", "assistant", "user", "assistant"]);
  // A fork of what carries it on has all of it too.
  const fork = later.fork();
  await fork.take("first");
  assert.equal(fork.session.messages?.length, 10);
  assert.equal(readFileSync(join(directory, "conversation.json"), "utf8"), text);
});
