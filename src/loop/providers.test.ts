/** The loop against the wire formats that it will meet: what is streamed, what is spent, and how each failure is named. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { list, object, type Json } from "../../test/model-server/json.ts";
import { scripted, type Step } from "../../test/model-server/script.ts";
import { startModelServer, type ModelServer } from "../../test/model-server/server.ts";
import { Worker, Workplace, type OpenOptions } from "../../test/loop/session.ts";
import {
  HarnessDropped,
  HarnessError,
  HarnessRefused,
  HarnessThrottled,
  HarnessUnrecoverable,
  ModelUnavailable,
} from "../flows/errors.ts";

let server: ModelServer;
before(async () => {
  server = await startModelServer();
});
after(() => server.close());

const KEY = "sk-very-secret-key-0123456789";
const PROVIDERS = ["anthropic", "openai", "openai-compatible"] as const;

function env(): Readonly<Record<string, string>> {
  return {
    ANTHROPIC_API_KEY: KEY,
    ANTHROPIC_BASE_URL: server.url,
    OPENAI_API_KEY: KEY,
    OPENAI_BASE_URL: `${server.url}/v1`,
  };
}

function worker(at: Workplace, provider: string, options: OpenOptions = {}): Worker {
  return new Worker(at, { model: `${provider}/toy-1`, env: env(), ...options });
}

const usage = { input: 100, output: 20, cacheRead: 30, cacheWrite: 10, reasoning: 5 };

for (const provider of PROVIDERS) {
  test(`${provider}: text, thoughts and a tool are streamed, and the tokens of each call are told`, async () => {
    using at = new Workplace();
    const one = worker(at, provider);
    const steps: Step[] = [
      { think: "let me see", text: "I write it.", write: ["made.txt", "made\n"], usage },
      { text: "It is there.", chunks: 5, usage: { ...usage, output: 7 } },
    ];
    const { text } = await one.take(scripted(steps));
    assert.equal(text, "It is there.");
    assert.equal(readFileSync(join(at.workdir, "made.txt"), "utf8"), "made\n");
    const kinds = one.events.filter(({ kind }) => kind !== "notice" && kind !== "reasoning");
    assert.deepEqual(
      kinds.map(({ kind, text }) => `${kind}: ${text}`),
      ["text: I write it.", "tool: write made.txt", "tool-ends: ", "text: It is there."],
    );
    const told = one.spends.reduce(
      (sum, { tokens }) => ({
        input: sum.input + (tokens.input ?? 0) + (tokens.cache_read ?? 0) + (tokens.cache_write ?? 0),
        output: sum.output + (tokens.output ?? 0),
        cacheRead: sum.cacheRead + (tokens.cache_read ?? 0),
      }),
      { input: 0, output: 0, cacheRead: 0 },
    );
    const served = server.requests
      .filter((request) => request.model === "toy-1")
      .slice(-2)
      .map((request) => request.served);
    assert.equal(one.spends.length, 2);
    assert.ok(one.spends.every((spend) => spend.model === `${provider}/toy-1` && spend.cost === undefined));
    assert.equal(told.output, 27);
    assert.equal(told.cacheRead, 60);
    // Every dialect counts the cache on its own terms; the sum of all input is the same.
    assert.equal(
      told.input,
      served.reduce((sum, tokens) => {
        const { input = 0, cacheRead = 0, cacheWrite = 0 } = tokens ?? {};
        return sum + input + cacheRead + (provider === "anthropic" ? cacheWrite : 0);
      }, 0),
    );
  });

  const refusals: readonly (readonly [string, Step, new (message: string) => HarnessError])[] = [
    [
      "a key that is not taken",
      { status: 401, type: "authentication_error", message: `bad key ${KEY}` },
      HarnessRefused,
    ],
    ["a key that may not", { status: 403, type: "permission_error", message: "forbidden" }, HarnessRefused],
    ["a model that is not there", { status: 404, type: "not_found_error", message: "model: toy-1" }, ModelUnavailable],
    ["too many requests", { status: 429, type: "rate_limit_error", message: "slow down" }, HarnessThrottled],
    [
      "a spent quota",
      { status: 429, code: "insufficient_quota", message: "You exceeded your current quota" },
      HarnessThrottled,
    ],
    ["too little credit", { status: 400, message: "Your credit balance is too low" }, HarnessThrottled],
    ["an overloaded provider", { status: 529, type: "overloaded_error", message: "Overloaded" }, HarnessThrottled],
    ["a provider that fails", { status: 500, type: "api_error", message: "internal error" }, HarnessDropped],
    ["a gateway that fails", { status: 502, message: "bad gateway" }, HarnessDropped],
    [
      "a conversation that is too long",
      { status: 400, code: "context_length_exceeded", message: "prompt is too long: 300000 tokens > 200000 maximum" },
      HarnessUnrecoverable,
    ],
    ["a request that is refused", { status: 400, type: "invalid_request_error", message: "no" }, HarnessUnrecoverable],
    ["a connection closed before an answer", { drop: "before" }, HarnessDropped],
    ["a connection closed after the headers", { drop: "headers" }, HarnessDropped],
    [
      "a connection closed in the middle of an answer",
      { drop: "mid", text: "some words to cut in two" },
      HarnessDropped,
    ],
  ];
  for (const [title, step, leaf] of refusals) {
    test(`${provider}: ${title} is ${leaf.name}`, async () => {
      using at = new Workplace();
      const one = worker(at, provider);
      await assert.rejects(one.take(scripted([step])), (error) => {
        assert.ok(error instanceof HarnessError);
        assert.equal(error.name, leaf.name, error.message);
        assert.match(error.message, new RegExp(`${provider}/toy-1`));
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
      assert.equal((await one.take(scripted([{ text: "here again" }]))).text, "here again");
    });
  }

  test(`${provider}: an error in the middle of a stream is the leaf of its kind`, async () => {
    using at = new Workplace();
    const one = worker(at, provider);
    const step: Step = { text: "some words", sseError: { type: "overloaded_error", message: "Overloaded" } };
    await assert.rejects(one.take(scripted([step])), HarnessThrottled);
  });

  test(`${provider}: what passes is tried again, as often as it is allowed to`, async () => {
    using at = new Workplace();
    const one = worker(at, provider, { retries: 1 });
    const busy: Step = { status: 429, message: "slow down", headers: { "retry-after-ms": "1" }, times: 1 };
    assert.equal((await one.take(scripted([busy, { text: "through" }]))).text, "through");
  });

  test(`${provider}: what does not pass in so many tries is the leaf of the last`, async () => {
    using at = new Workplace();
    const one = worker(at, provider, { retries: 1 });
    const busy: Step = { status: 429, message: "slow down", headers: { "retry-after-ms": "1" } };
    await assert.rejects(one.take(scripted([busy])), HarnessThrottled);
  });

  test(`${provider}: an abort while the model is silent is at once`, async () => {
    using at = new Workplace();
    const one = worker(at, provider);
    const stop = new AbortController();
    const taking = one.take(scripted([{ hang: true }]), { signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")), 50);
    await assert.rejects(taking, { message: "enough" });
  });

  test(`${provider}: a conversation that was interrupted in a tool goes on`, async () => {
    using at = new Workplace();
    const one = worker(at, provider);
    const answer = await one.take(scripted([{ calls: [{ sh: "sleep 77" }, { sh: "echo never" }] }]), {
      heard: (event) => {
        if (event.kind === "tool") {
          setTimeout(() => void one.session.steer?.(scripted([{ text: "well then" }]), false), 30);
        }
      },
    });
    assert.equal(answer.text, "well then");
    const results = list(object(lastRequest().body)[provider === "openai" ? "input" : "messages"]);
    assert.match(JSON.stringify(results), /interrupted before it had ended/);
  });

  test(`${provider}: no key, no request`, async () => {
    using at = new Workplace();
    const one = worker(at, provider, { env: {} });
    const variable = provider === "openai-compatible" ? /set OPENAI_BASE_URL/ : /set (ANTHROPIC|OPENAI)_API_KEY/;
    await assert.rejects(one.take("x"), (error) => error instanceof HarnessError && variable.test(error.message));
  });

  test(`${provider}: an address that is none, or that nobody serves`, async () => {
    using at = new Workplace();
    const at_ = (url: string): Worker =>
      worker(at, provider, { env: { ...env(), ANTHROPIC_BASE_URL: url, OPENAI_BASE_URL: url } });
    await assert.rejects(at_("localhost:1").take("x"), HarnessUnrecoverable);
    await assert.rejects(at_("http://127.0.0.1:1/v1").take("x"), HarnessDropped);
  });
}

test("anthropic: what came before is marked for its cache, and the address may be with or without its version", async () => {
  using at = new Workplace();
  for (const url of [server.url, `${server.url}/`, `${server.url}/v1`]) {
    const one = worker(at, "anthropic", { env: { ANTHROPIC_AUTH_TOKEN: KEY, ANTHROPIC_BASE_URL: url } });
    await one.take(scripted([{ text: "hi" }]));
    const { body, path } = lastRequest();
    assert.equal(path, "/v1/messages");
    const marked = (part: unknown): boolean => "cache_control" in object(part);
    assert.ok(list(body["system"]).some(marked));
    assert.ok(list(object(list(body["messages"]).at(-1))["content"]).some(marked));
  }
});

test("openai: nothing is stored, and the effort is sent", async () => {
  using at = new Workplace();
  await new Worker(at, { model: "openai/gpt-5.1", env: env(), effort: "low" }).take(scripted([{ text: "hi" }]));
  const { body } = lastRequest();
  assert.equal(body["store"], false);
  assert.equal(object(body["reasoning"])["effort"], "low");
});

test("openai-compatible: a server on one's own machine needs no key", async () => {
  using at = new Workplace();
  const one = worker(at, "openai-compatible", { env: { OPENAI_BASE_URL: `${server.url}/v1/` } });
  assert.equal((await one.take(scripted([{ text: "hi" }]))).text, "hi");
});

function lastRequest(): { readonly path: string; readonly body: Json } {
  const last = server.requests.at(-1);
  assert.ok(last !== undefined);
  return last;
}
