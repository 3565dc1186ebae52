import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { list, object, string, type Json } from "../model-server/json.ts";
import { scripted, scriptsIn, UNSCRIPTED, type Step } from "../model-server/script.ts";
import { startModelServer, type ModelServer } from "../model-server/server.ts";

let server: ModelServer;
before(async () => {
  server = await startModelServer({
    unscripted: ({ model }) => (model === "fallback" ? { text: "by default" } : undefined),
  });
});
after(() => server.close());

const BASH = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };

/** One dialect: where it is asked, what a prompt looks like in it, and what was said. */
const dialects = {
  messages: {
    path: "/v1/messages",
    body: (prompt: string) => ({
      messages: [{ role: "user", content: [{ type: "text", text: prompt }] }],
      tools: [{ name: "Bash", input_schema: BASH }],
    }),
    text: (body: Json) =>
      list(body["content"])
        .map((block) => string(object(block)["text"]))
        .join(""),
    call: (body: Json) =>
      object(
        list(body["content"])
          .map(object)
          .find((block) => block["type"] === "tool_use"),
      ),
    argumentsOf: (call: Json) => object(call["input"]),
    input: (body: Json) => object(body["usage"])["input_tokens"],
    delta: (event: Json) => string(object(event["delta"])["text"]),
    last: "message_stop",
  },
  responses: {
    path: "/v1/responses",
    body: (prompt: string) => ({
      input: [{ role: "user", content: [{ type: "input_text", text: prompt }] }],
      tools: [{ type: "function", name: "exec_command", parameters: BASH }],
    }),
    text: (body: Json) =>
      list(body["output"])
        .flatMap((item) => list(object(item)["content"]))
        .map((part) => string(object(part)["text"]))
        .join(""),
    call: (body: Json) =>
      object(
        list(body["output"])
          .map(object)
          .find((item) => item["type"] === "function_call"),
      ),
    argumentsOf: (call: Json) => object(JSON.parse(string(call["arguments"]))),
    input: (body: Json) => object(body["usage"])["input_tokens"],
    delta: (event: Json) => (event["type"] === "response.output_text.delta" ? string(event["delta"]) : ""),
    last: "response.completed",
  },
  chat: {
    path: "/v1/chat/completions",
    body: (prompt: string) => ({
      messages: [{ role: "user", content: prompt }],
      tools: [{ type: "function", function: { name: "run_shell_command", parameters: BASH } }],
    }),
    text: (body: Json) => string(object(object(list(body["choices"])[0])["message"])["content"]),
    call: (body: Json) =>
      object(object(list(object(object(list(body["choices"])[0])["message"])["tool_calls"])[0])["function"]),
    argumentsOf: (call: Json) => object(JSON.parse(string(call["arguments"]))),
    input: (body: Json) => object(body["usage"])["prompt_tokens"],
    delta: (event: Json) => string(object(object(list(event["choices"])[0])["delta"])["content"]),
    last: "[DONE]",
  },
} as const;

async function post(path: string, body: Json): Promise<Response> {
  return fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "hush", "x-seen": "yes" },
    body: JSON.stringify(body),
  });
}

for (const [name, dialect] of Object.entries(dialects)) {
  const ask = (steps: readonly Step[] | string, more: Json = {}): Promise<Response> =>
    post(dialect.path, {
      model: name,
      ...dialect.body(typeof steps === "string" ? steps : `do ${scripted(steps)}`),
      ...more,
    });

  test(`${name}: a text, whole`, async () => {
    const body = object(await (await ask([{ text: "hello" }])).json());
    assert.equal(dialect.text(body), "hello");
    assert.equal(dialect.input(body), name === "messages" ? 100 : 130);
  });

  test(`${name}: a text, streamed`, async () => {
    const events = readEvents(
      await (await ask([{ text: "a text in pieces", think: "hm", chunks: 4 }], { stream: true })).text(),
    );
    assert.equal(events.map(({ data }) => dialect.delta(data)).join(""), "a text in pieces");
    const last = events.at(-1);
    assert.equal(last?.name || last?.raw, dialect.last);
  });

  test(`${name}: calls the shell tool under its own name`, async () => {
    const body = object(await (await ask([{ text: "so", sh: "echo hi" }])).json());
    const call = dialect.call(body);
    assert.match(string(call["name"]), /^(Bash|exec_command|run_shell_command)$/);
    assert.deepEqual(dialect.argumentsOf(call), { command: "echo hi" });
  });

  test(`${name}: an error status, so many times, then the next step`, async () => {
    const steps = [{ status: 429, retryAfter: 7, times: 2 }, { text: `${name} after` }];
    const first = await ask(steps);
    assert.equal(first.status, 429);
    assert.equal(first.headers.get("retry-after"), "7");
    assert.equal(string(object(object(await first.json())["error"])["type"]), "rate_limit_error");
    assert.equal((await ask(steps)).status, 429);
    assert.equal(dialect.text(object(await (await ask(steps)).json())), `${name} after`);
  });

  test(`${name}: the connection drops`, async () => {
    await assert.rejects(ask([{ drop: "before" }]));
    const cut = await ask([{ text: "one two", drop: "mid" }], { stream: true });
    await assert.rejects(cut.text());
    const headers = await ask([{ text: "one two", drop: "headers" }], { stream: true });
    await assert.rejects(headers.text());
  });

  test(`${name}: an error inside the stream`, async () => {
    const answer = await ask([{ sseError: { type: "overloaded_error", message: "busy" } }], { stream: true });
    assert.match(await answer.text(), /busy/);
  });

  test(`${name}: what is past the script, or without one`, async () => {
    assert.equal(dialect.text(object(await (await ask([])).json())), UNSCRIPTED);
    assert.equal(dialect.text(object(await (await ask("hi")).json())), UNSCRIPTED);
    assert.equal(dialect.text(object(await (await ask("hi", { model: "fallback" })).json())), "by default");
  });
}

test("the step that is due is counted from the last prompt with a script", async () => {
  const prompt = scripted([{ sh: "true" }, { text: "second" }]);
  const answer = await post("/v1/messages", {
    model: "m",
    messages: [
      { role: "user", content: scripted([{ text: "old" }]) },
      { role: "assistant", content: "old" },
      { role: "user", content: prompt },
      { role: "assistant", content: [{ type: "tool_use", id: "1", name: "Bash", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "done" }] },
      { role: "user", content: "a steered word" },
    ],
  });
  assert.equal(dialects.messages.text(object(await answer.json())), "second");
});

test("scripts nest", () => {
  const inner = scripted([{ text: "a ] and a } in it" }]);
  const outer = scripted([{ tool: "Agent", input: { prompt: `sub ${inner}` } }]);
  assert.deepEqual(scriptsIn(`x ${outer} y ${inner}`), [outer.slice(6, -6), inner.slice(6, -6)]);
});

test("an offered tool is found behind the harness's prefix", async () => {
  const answer = await post("/v1/messages", {
    model: "m",
    messages: [{ role: "user", content: scripted([{ offered: "review", input: { path: "a" } }]) }],
    tools: [{ name: "mcp__humanize__review", input_schema: {} }],
  });
  assert.equal(dialects.messages.call(object(await answer.json()))["name"], "mcp__humanize__review");
});

test("what was served is counted by model, a cut answer as far as it told", async () => {
  const own = await startModelServer();
  const ask = (steps: readonly Step[], model: string): Promise<string> =>
    fetch(`${own.url}/v1/messages`, {
      method: "POST",
      body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: scripted(steps) }] }),
    }).then((answer) => answer.text());
  await ask([{ text: "a", usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, reasoning: 0 } }], "m");
  await ask([{ text: "b" }], "m");
  await assert.rejects(ask([{ text: "one two", drop: "mid" }], "n"));
  await ask([{ status: 500 }], "m");
  assert.deepEqual(own.served(), {
    m: { input: 101, output: 22, cacheRead: 33, cacheWrite: 14, reasoning: 5 },
    n: { input: 100, output: 1, cacheRead: 30, cacheWrite: 10, reasoning: 0 },
  });
  assert.deepEqual(
    own.requests.map(({ model, whole }) => [model, whole]),
    [
      ["m", true],
      ["m", true],
      ["n", false],
      ["m", true],
    ],
  );
  await own.close();
});

test("records requests without their secrets; lists models; counts tokens", async () => {
  await post("/v1/messages", { model: "m", messages: [] });
  const { headers } = server.requests.at(-1) ?? assert.fail("no request");
  assert.equal(headers["x-seen"], "yes");
  assert.ok(!JSON.stringify(headers).includes("hush"));
  assert.equal(list(object(await (await fetch(`${server.url}/v1/models`)).json())["data"]).length, 1);
  const counted = await post("/v1/messages/count_tokens", { messages: [] });
  assert.equal(typeof object(await counted.json())["input_tokens"], "number");
  assert.equal((await post("/v1/nothing", {})).status, 404);
});

function readEvents(stream: string): { name: string; raw: string; data: Json }[] {
  return stream
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => {
      const raw = /^data: (.*)$/m.exec(event)?.[1] ?? "";
      const name = /^event: (.*)$/m.exec(event)?.[1] ?? "";
      return { name, raw, data: raw === "[DONE]" ? {} : object(JSON.parse(raw)) };
    });
}
