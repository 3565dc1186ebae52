import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { OfferedTool } from "../engine/ports.ts";
import { HarnessThrottled, HarnessUnrecoverable, ModelUnavailable, SessionError } from "../flows/errors.ts";
import { HARNESSES } from "../flows/harness.ts";
import { Worker, Workplace } from "../../test/loop/session.ts";
import { nativeDriver } from "./driver.ts";

test("a turn writes a file, sees a test fail, mends it, sees it pass, and says so", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        {
          when: "add",
          steps: [
            {
              think: "a file first",
              say: "I write it.",
              tools: [
                { tool: "write", input: { path: "lib/add.sh", content: "echo $(($1 - $2))\n" } },
                { tool: "shell", input: { command: 'test "$(sh lib/add.sh 2 2)" = 4 || { echo WRONG; exit 3; }' } },
              ],
            },
            {
              if: { contains: "WRONG" },
              tools: [
                { tool: "edit", input: { path: "lib/add.sh", old: "$1 - $2", new: "$1 + $2" } },
                { tool: "shell", input: { command: 'test "$(sh lib/add.sh 2 2)" = 4 && echo RIGHT' } },
              ],
            },
            { if: { lacks: "RIGHT" }, say: "It does not add." },
            { say: "It adds." },
          ],
        },
      ],
    },
  });
  const answer = await worker.take("Write something that can add.");
  assert.deepEqual(answer, { text: "It adds." });
  assert.equal(readFileSync(join(at.workdir, "lib/add.sh"), "utf8"), "echo $(($1 + $2))\n");
  assert.deepEqual(
    worker.events.map(({ kind, text }) => `${kind}: ${text}`),
    [
      "reasoning: a file first",
      "text: I write it.",
      "tool: write lib/add.sh",
      "tool-ends: ",
      'tool: shell test "$(sh lib/add.sh 2 2)" = 4 || { echo WRONG; exit 3; }',
      "tool-ends: exit status 3",
      "tool: edit lib/add.sh",
      "tool-ends: ",
      'tool: shell test "$(sh lib/add.sh 2 2)" = 4 && echo RIGHT',
      "tool-ends: RIGHT",
      "text: It adds.",
    ],
  );
  assert.equal(worker.session.id, worker.ids[0]);
  assert.notEqual(worker.session.id, "");
});

test("what is spent is told by model call, as increments, with the script's own price", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      model: "toy-1",
      price: { input: 1, output: 10, cacheRead: 0.1 },
      scenes: [
        {
          steps: [
            { tools: [{ tool: "list" }], usage: { input: 1000, output: 100, cacheRead: 5000 } },
            { say: "done", usage: { input: 200, output: 7, cacheWrite: 50, reasoning: 3 } },
          ],
        },
      ],
    },
  });
  await worker.take("look");
  assert.deepEqual(
    worker.spends.map(({ model, tokens }) => ({ model, tokens })),
    [
      { model: "toy-1", tokens: { input: 1000, output: 100, cache_read: 5000, cache_write: 0, reasoning: 0 } },
      { model: "toy-1", tokens: { input: 200, output: 7, cache_read: 0, cache_write: 50, reasoning: 3 } },
    ],
  );
  const cost = worker.spends.reduce((sum, spend) => sum + (spend.cost ?? NaN), 0);
  assert.equal(cost.toFixed(9), (0.001 + 0.001 + 0.0005 + 0.0002 + 0.00007 + 0.00005).toFixed(9));
});

test("tools that only look run side by side; those that change things one by one, in order", async () => {
  using at = new Workplace();
  let running = 0;
  let most = 0;
  const meet = Promise.withResolvers<void>();
  const review: OfferedTool = {
    name: "review",
    about: "waits for its like",
    schema: { type: "object" },
    async call() {
      running += 1;
      most = Math.max(most, running);
      if (running === 2) meet.resolve();
      await meet.promise;
      running -= 1;
      return { text: "fine", failed: false };
    },
  };
  const worker = new Worker(at, {
    script: {
      scenes: [
        {
          steps: [
            {
              tools: [
                { tool: "review", input: {} },
                { tool: "review", input: {} },
                { tool: "shell", input: { command: "sleep 0.05; echo one >> log" } },
                { tool: "shell", input: { command: "echo two >> log" } },
                { tool: "read", input: { path: "log" } },
              ],
            },
            { if: { contains: "     1\tone\n     2\ttwo" }, say: "in order" },
            { say: "not in order" },
          ],
        },
      ],
    },
  });
  assert.equal((await worker.take("go", { tools: [review] })).text, "in order");
  assert.equal(most, 2);
});

test("an abort ends the shell, rejects with its reason, and leaves a conversation that goes on", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        {
          when: "sleep",
          steps: [{ tools: [{ tool: "shell", input: { command: "echo $$ > pid; exec sleep 77" } }] }, { say: "slept" }],
        },
        { when: "again", steps: [{ say: "awake" }] },
      ],
    },
  });
  const stop = new AbortController();
  const taking = worker.take("sleep", { signal: stop.signal });
  const pid = join(at.workdir, "pid");
  while (!existsSync(pid) || readFileSync(pid, "utf8") === "") await new Promise((done) => setTimeout(done, 5));
  const reason = new Error("enough");
  stop.abort(reason);
  await assert.rejects(taking, (error) => error === reason);
  assert.throws(() => process.kill(Number(readFileSync(pid, "utf8")), 0), { code: "ESRCH" });
  assert.equal((await worker.take("again")).text, "awake");
});

test("an abort in the middle of an answer keeps what was said", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        { when: "talk", steps: [{ say: `word ${"and word ".repeat(500)}`, delayMs: 2 }] },
        { when: "go on", steps: [{ say: "on" }] },
      ],
    },
  });
  const stop = new AbortController();
  const taking = worker.take("talk", { signal: stop.signal });
  setTimeout(() => stop.abort(new Error("hush")), 50);
  await assert.rejects(taking, { message: "hush" });
  assert.equal((await worker.take("go on")).text, "on");
});

test("a turn that is already stopped asks no model", async () => {
  using at = new Workplace();
  const worker = new Worker(at, { script: { scenes: [{ steps: [{ say: "hi" }] }] } });
  await assert.rejects(worker.take("hi", { signal: AbortSignal.abort(new Error("before")) }), { message: "before" });
  assert.deepEqual(worker.spends, []);
});

test("closing a session interrupts its turn", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: { scenes: [{ steps: [{ tools: [{ tool: "shell", input: { command: "sleep 77" } }] }] }] },
  });
  const taking = worker.take("sleep", {
    heard: (event) => {
      if (event.kind === "tool") setTimeout(() => void worker.session.close(), 20);
    },
  });
  await assert.rejects(taking, SessionError);
});

test("a queued steer is taken at the next step boundary", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        {
          when: "work",
          steps: [{ tools: [{ tool: "shell", input: { command: "echo ran > ran" } }] }, { say: "worked" }],
        },
        { when: "red", steps: [{ say: "red it is" }] },
      ],
    },
  });
  let took: Promise<boolean> | undefined;
  const answer = await worker.take("work", {
    heard: (event) => {
      if (event.kind === "tool") took = worker.session.steer?.("in red", true);
    },
  });
  assert.equal(await took, true);
  assert.equal(answer.text, "red it is");
  assert.ok(existsSync(join(at.workdir, "ran")), "the tool under way was not interrupted");
  assert.deepEqual(worker.said("took"), ["in red"]);
  assert.equal(await worker.session.steer?.("too late", true), false);
});

test("a steer said while the last answer is given is still taken in the same turn", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        { when: "work", steps: [{ say: "worked" }] },
        { when: "also", steps: [{ say: "that too" }] },
      ],
    },
  });
  const answer = await worker.take("work", {
    heard: (event) => {
      if (event.kind === "text" && event.text === "worked") void worker.session.steer?.("also this", true);
    },
  });
  assert.equal(answer.text, "that too");
});

test("a steer that does not wait interrupts the tool under way", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        { when: "work", steps: [{ tools: [{ tool: "shell", input: { command: "sleep 77" } }] }, { say: "worked" }] },
        { when: "stop", steps: [{ say: "stopped that" }] },
      ],
    },
  });
  const answer = await worker.take("work", {
    heard: (event) => {
      if (event.kind === "tool") setTimeout(() => void worker.session.steer?.("stop that", false), 20);
    },
  });
  assert.equal(answer.text, "stopped that");
});

test("a steer that does not wait interrupts the answer under way", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        { when: "talk", steps: [{ say: "endless ".repeat(10_000), delayMs: 5 }] },
        { when: "short", steps: [{ say: "ok" }] },
      ],
    },
  });
  const taking = worker.take("talk");
  setTimeout(() => void worker.session.steer?.("be short", false), 60);
  assert.equal((await taking).text, "ok");
  assert.match(worker.said("text")[0] ?? "", /^endless/);
});

test("a hook that refuses a tool is what the model reads; the tool does not run", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        {
          steps: [
            { tools: [{ tool: "shell", input: { command: "touch ran" } }] },
            { if: { contains: "not on a Friday" }, say: "refused" },
            { say: "it ran" },
          ],
        },
      ],
    },
  });
  const asked: unknown[] = [];
  const answer = await worker.take("go", {
    preToolUse: (tool, input) => {
      asked.push(tool, input);
      return Promise.resolve({ allow: false, reason: "not on a Friday" });
    },
  });
  assert.equal(answer.text, "refused");
  assert.deepEqual(asked, ["shell", { command: "touch ran" }]);
  assert.ok(!existsSync(join(at.workdir, "ran")));
});

test("a hook that throws fails the turn with what it threw", async () => {
  using at = new Workplace();
  const worker = new Worker(at, { script: { scenes: [{ steps: [{ tools: [{ tool: "list" }] }, { say: "x" }] }] } });
  const thrown = new Error("the hook is broken");
  await assert.rejects(worker.take("go", { preToolUse: () => Promise.reject(thrown) }), (error) => error === thrown);
});

test("a hook that never answers does not keep an aborted turn", async () => {
  using at = new Workplace();
  const worker = new Worker(at, { script: { scenes: [{ steps: [{ tools: [{ tool: "list" }] }, { say: "x" }] }] } });
  const stop = new AbortController();
  const taking = worker.take("go", {
    signal: stop.signal,
    preToolUse: () => {
      setImmediate(() => stop.abort(new Error("enough")));
      return new Promise(() => {});
    },
  });
  await assert.rejects(taking, { message: "enough" });
});

test("a permission to read takes the tools away that change things", async () => {
  using at = new Workplace();
  writeFileSync(join(at.workdir, "a"), "alpha\n");
  const script = {
    scenes: [
      {
        steps: [
          {
            tools: [
              { tool: "read", input: { path: "a" } },
              { tool: "write", input: { path: "b", content: "" } },
              { tool: "shell", input: { command: "touch b" } },
            ],
          },
          { if: { matches: "alpha[^]*unavailable tool 'write'[^]*unavailable tool 'shell'" }, say: "as it should" },
          { say: "not so" },
        ],
      },
    ],
  };
  const worker = new Worker(at, { script, permission: { local: "read" } });
  assert.equal((await worker.take("go")).text, "as it should");
  assert.ok(!existsSync(join(at.workdir, "b")));
});

test("a flow's tool is offered beside the others; one that failed is read as failed, and the turn goes on", async () => {
  using at = new Workplace();
  const inputs: unknown[] = [];
  const tools: readonly OfferedTool[] = [
    {
      name: "ask",
      about: "asks",
      schema: { type: "object", properties: { what: { type: "string" } } },
      call: (input) => {
        inputs.push(input);
        return Promise.resolve({ text: "nobody knows", failed: true });
      },
    },
  ];
  const worker = new Worker(at, {
    script: {
      scenes: [
        {
          steps: [
            { tools: [{ tool: "ask", input: { what: "why" } }] },
            { if: { contains: "nobody knows" }, say: "unknown" },
          ],
        },
      ],
    },
  });
  assert.equal((await worker.take("go", { tools })).text, "unknown");
  assert.deepEqual(inputs, [{ what: "why" }]);
});

test("input that a tool does not take is told to the model", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        {
          steps: [
            {
              tools: [
                { tool: "read", input: { file: "a" } },
                { tool: "nope", input: {} },
              ],
            },
            { if: { matches: "Invalid input for tool read[^]*unavailable tool 'nope'" }, say: "told" },
            { say: "not told" },
          ],
        },
      ],
    },
  });
  assert.equal((await worker.take("go")).text, "told");
});

test("a fork carries on from where its parent stands, and neither hears of the other's turns", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [{ steps: [{ say: "one" }] }, { steps: [{ say: "two" }] }, { steps: [{ say: "three" }] }],
    },
  });
  assert.equal((await worker.take("a")).text, "one");
  const fork = worker.fork();
  assert.equal((await fork.take("b")).text, "two");
  assert.equal((await fork.take("c")).text, "three");
  assert.equal((await worker.take("b")).text, "two");
  assert.notEqual(fork.session.id, worker.session.id);
});

test("a prompt that the provider refused is not said twice when it is tried again", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: {
      scenes: [
        { when: "busy", steps: [{ error: { status: 429, message: "slow down" } }] },
        { steps: [{ say: "one" }] },
      ],
    },
  });
  await assert.rejects(worker.take("busy"), HarnessThrottled);
  // The scene without a matcher is the first that is played: the refused prompt is not in the conversation.
  assert.equal((await worker.take("x")).text, "one");
  const missing = new Worker(at, {
    script: { scenes: [{ steps: [{ error: { status: 404, message: "model: none" } }] }] },
  });
  await assert.rejects(missing.take("x"), ModelUnavailable);
});

test("a schema is asked for in the prompt, and the answer is the text", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: { scenes: [{ when: '"required":["n"]', steps: [{ say: '{"n": 3}' }] }] },
  });
  const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  assert.equal((await worker.take("count", { schema })).text, '{"n": 3}');
});

test("a model that goes on for ever is stopped", async () => {
  using at = new Workplace();
  const step = { tools: [{ tool: "nothing", input: {} }] };
  const worker = new Worker(at, {
    mostSteps: 20,
    script: { scenes: [{ steps: Array.from({ length: 21 }, () => step) }] },
  });
  await assert.rejects(worker.take("loop"), (error) => {
    assert.ok(error instanceof HarnessUnrecoverable);
    assert.match(error.message, /took 20 steps in one turn/);
    return true;
  });
});

test("one session takes one turn at a time", async () => {
  using at = new Workplace();
  const worker = new Worker(at, { script: { scenes: [{ steps: [{ say: "a b c", delayMs: 5 }] }] } });
  const taking = worker.take("first");
  await worker.session.ready({ place: at, hung: new Set(), tools: [], clis: [], schema: undefined });
  await assert.rejects(worker.take("second"), SessionError);
  await taking;
});

test("callbacks stand before and after a tool, and before and after the model", async () => {
  using at = new Workplace();
  const heard: string[] = [];
  const worker = new Worker(at, {
    script: {
      scenes: [
        {
          steps: [
            {
              tools: [
                { tool: "shell", input: { command: "touch ran" } },
                { tool: "list", input: {} },
              ],
            },
            { if: { matches: "from the cache[^]*shortened" }, say: "draft" },
            { say: "neither" },
          ],
        },
      ],
    },
    callbacks: {
      beforeTool: [({ tool }) => (tool === "shell" ? "from the cache" : undefined)],
      afterTool: [({ tool }) => (tool === "list" ? "shortened" : undefined)],
      beforeModel: [({ request }) => void heard.push(`asks with ${request.messages.length}`)],
      afterModel: [({ response }) => (response.text === "draft" ? { text: "final", toolCalls: [] } : undefined)],
    },
  });
  assert.equal((await worker.take("go")).text, "final");
  assert.ok(!existsSync(join(at.workdir, "ran")));
  assert.deepEqual(heard, ["asks with 1", "asks with 3"]);
  assert.deepEqual(worker.said("text"), ["final"]);
});

test("a response before the model spares the call", async () => {
  using at = new Workplace();
  const worker = new Worker(at, {
    script: { scenes: [{ steps: [{ say: "paid for" }] }] },
    callbacks: { beforeModel: [() => ({ text: "cached", toolCalls: [] })] },
  });
  assert.equal((await worker.take("go")).text, "cached");
  assert.deepEqual(worker.spends, []);
});

test("a model or an effort that native does not have is refused at once", () => {
  for (const model of ["gpt-5", "acme/x", "openai/", "/x"]) {
    assert.throws(() => nativeDriver({ model }), HarnessUnrecoverable, model);
  }
  assert.throws(() => nativeDriver({ model: "openai/x", effort: "ludicrous" }), HarnessUnrecoverable);
  for (const effort of HARNESSES.native.efforts) nativeDriver({ model: "openai/x", effort });
});

test("a script that is not there, or is none, says which file and where", async () => {
  using at = new Workplace();
  const failing = async (script: unknown, pattern: RegExp): Promise<void> => {
    const worker = new Worker(at, { script });
    await assert.rejects(worker.take("x"), (error) => {
      assert.ok(error instanceof HarnessUnrecoverable);
      assert.match(error.message, pattern);
      return true;
    });
  };
  await failing('{\n  "scenes": [\n    oops\n]}', /\.script\.json is not JSON, line 3: /);
  await failing({ scenes: [{ steps: [{ shout: "x" }] }] }, /\.script\.json is not a script:[^]*scenes/);
  await failing({ scenes: [{ when: { matches: "(" }, steps: [{ say: "x" }] }] }, /has a bad pattern: /);
  await failing({ scenes: [{ when: "y", steps: [{ say: "x" }] }] }, /has no scene for this prompt: x/);
  await failing({ scenes: [{ steps: [{ tools: [{ tool: "list" }] }] }] }, /has no step after the last one of scene 1/);
  await assert.rejects(
    new Worker(at, { model: "scripted/no/such.json" }).take("x"),
    /no\/such\.json cannot be read: there is no such file/,
  );
});

test("a script can be named by whoever ships it", async () => {
  using at = new Workplace();
  const file = at.script({ scenes: [{ steps: [{ say: "shipped" }] }] });
  const worker = new Worker(at, { model: "scripted/demo", scripts: (name) => (name === "demo" ? file : undefined) });
  assert.equal((await worker.take("x")).text, "shipped");
});

test("a session that was opened before its script was there starts once it is", async () => {
  using at = new Workplace();
  mkdirSync(join(at.workdir, "late"));
  const file = join(at.workdir, "late/script.json");
  const worker = new Worker(at, { model: `scripted/${file}` });
  await assert.rejects(worker.take("x"), HarnessUnrecoverable);
  writeFileSync(file, JSON.stringify({ scenes: [{ steps: [{ say: "late" }] }] }));
  assert.equal((await worker.take("x")).text, "late");
});

test("importing the driver loads no SDK", () => {
  const driver = fileURLToPath(new URL("driver.ts", import.meta.url));
  const code = `
    import { registerHooks } from "node:module";
    const seen = [];
    registerHooks({ load(url, context, next) { seen.push(url); return next(url, context); } });
    const { nativeDriver } = await import(${JSON.stringify(driver)});
    nativeDriver({ model: "openai/x" }).open({});
    console.log(seen.filter((url) => url.includes("node_modules")).join("\\n"));`;
  const ran = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
  assert.equal(ran.status, 0, ran.stderr);
  assert.equal(ran.stdout.trim(), "");
});
