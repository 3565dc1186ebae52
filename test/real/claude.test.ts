import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import {
  HarnessDropped,
  HarnessKilled,
  HarnessNotInstalled,
  HarnessRefused,
  HarnessThrottled,
  HarnessUnrecoverable,
  ModelUnavailable,
} from "../../src/flows/errors.ts";
import { permission } from "../../src/flows/permission.ts";
import { localPlace } from "../conformance/local-place.ts";
import { RecordingHost, totalOf } from "../conformance/recording-host.ts";
import { scripted, type Step } from "../model-server/script.ts";
import { MODEL, processesWith, served, startBench, turn, type Bench } from "./claude.ts";

const SUB = "the sub-agent's task";

let bench: Bench;
before(async () => {
  bench = await startBench();
});
after(() => bench.close());

const subagent = (steps: readonly Step[], more = {}): Step => ({
  tool: "Agent",
  input: { description: "look", prompt: `${SUB} ${scripted(steps)}`, subagent_type: "general-purpose", ...more },
});

describe("the real Claude Code: a turn", () => {
  test("edits a file, and tells its text, its thinking and its tools", async () => {
    const session = bench.session();
    const path = join(bench.home, "work", "made.txt");
    const { text, host } = await turn(bench, session, [
      { think: "first the file", text: "Writing.", write: [path, "made\n"] },
      { sh: "echo more >> made.txt" },
      { text: "all done" },
    ]);
    assert.equal(text, "all done");
    assert.equal(await readFile(path, "utf8"), "made\nmore\n");
    assert.deepEqual(
      host.events.map((event) => [event.kind, "tool" in event ? event.tool : event.text]),
      [
        ["reasoning", "first the file"],
        ["text", "Writing."],
        ["tool", "Write"],
        ["tool-ends", "Write"],
        ["tool", "Bash"],
        ["tool-ends", "Bash"],
        ["text", "all done"],
      ],
    );
    await session.close();
  });

  test("a sub-agent is told from its start to its end, and what it spends counts", async () => {
    await using own = await startBench();
    const session = own.session();
    const seen: string[] = [];
    const { text, host } = await turn(
      own,
      session,
      [subagent([{ sh: "echo in" }, { text: "found it" }]), { text: "so" }],
      {
        answers: {
          subagentStart: async (name, task) => void seen.push(`start ${name} ${task.startsWith(SUB)}`),
          subagentStop: async (name, said) => void seen.push(`stop ${name} ${said}`),
        },
      },
    );
    assert.equal(text, "so");
    assert.deepEqual(seen, ["start general-purpose true", "stop general-purpose found it"]);
    const about = host.events.flatMap((event) =>
      event.kind === "subagent" || event.kind === "subagent-ends" ? [event] : [],
    );
    assert.deepEqual(
      about.map((event) => event.kind),
      ["subagent", "subagent-ends"],
    );
    const inside = host.events.find((event) => event.kind === "tool" && event.tool === "Bash");
    assert.equal(inside?.kind === "tool" ? inside.whose : "none", about[0]?.whose);
    assert.deepEqual(totalOf(host.spends), served(own.server));
  });

  test("a question reaches the person, and goes unanswered where nobody is there", async () => {
    const session = bench.session();
    const ask: Step = {
      tool: "AskUserQuestion",
      input: {
        questions: [
          {
            question: "Which colour?",
            header: "Colour",
            multiSelect: false,
            options: [
              { label: "Red", description: "r" },
              { label: "Blue", description: "b" },
            ],
          },
        ],
      },
    };
    const offered: (readonly string[])[] = [];
    await turn(bench, session, [ask, { text: "asked" }], {
      answers: {
        askUser: async (_question, options) => {
          offered.push(options);
          return "Blue";
        },
      },
    });
    assert.deepEqual(offered, [["Red", "Blue"]]);
    assert.match(lastToolResult(), /Which colour\?.*Blue/);
    const { text } = await turn(bench, session, [ask, { text: "went on" }]);
    assert.equal(text, "went on");
    assert.match(lastToolResult(), /nobody is there to answer/);
    await session.close();
  });

  test("a permission hook is asked, and its refusal reaches the agent", async () => {
    const session = bench.session();
    const setup = { ...bench.setup, hung: new Set(["permission_request" as const]) };
    const { text, host } = await turn(
      bench,
      session,
      [{ sh: "touch asked.txt" }, { sh: "touch refused.txt" }, { text: "end" }],
      {
        setup,
        answers: {
          permissionRequest: async (_tool, input) =>
            String(input["command"]).includes("refused") ? { allow: false, reason: "not here" } : { allow: true },
        },
      },
    );
    assert.equal(text, "end");
    assert.deepEqual(host.moments, ["permission_request Bash", "permission_request Bash"]);
    await readFile(join(bench.home, "work", "asked.txt"));
    await assert.rejects(readFile(join(bench.home, "work", "refused.txt")));
    assert.match(lastToolResult(), /not here/);
    await session.close();
  });

  test("a session that may only read cannot write, neither by a tool nor by the shell", async () => {
    const session = bench.session({
      opening: { permission: permission({ local: "read", user: "read", system: "read" }) },
    });
    const path = join(bench.home, "work", "forbidden.txt");
    const { text } = await turn(bench, session, [
      { write: [path, "x"] },
      { sh: `echo x > ${path}` },
      { tool: "ExitPlanMode", input: { plan: "do it all the same" } },
      { write: [path, "x"] },
      { text: "could not" },
    ]);
    assert.equal(text, "could not");
    await assert.rejects(readFile(path));
    await session.close();
  });

  test("schemas as zod writes them are taken; what is no object is said as text", async () => {
    const session = bench.session();
    const inner = z.object({ name: z.string().regex(/^[a-z]+$/), when: z.iso.datetime().optional() });
    const shapes = z.object({ items: z.array(inner), kind: z.enum(["a", "b"]), either: z.union([z.string(), inner]) });
    const setup = { ...bench.setup, schema: z.toJSONSchema(shapes, { reused: "ref" }) };
    const value = { items: [{ name: "x" }], kind: "a", either: { name: "y" } };
    const given = await turn(bench, session, [{ tool: "StructuredOutput", input: value }], { setup });
    assert.deepEqual(given.structured, value);
    const list = { ...bench.setup, schema: z.toJSONSchema(z.array(z.string())) };
    assert.equal((await turn(bench, session, [{ text: '["said"]' }], { setup: list })).text, '["said"]');
    await session.close();
  });

  test("without the network, the web tools are not offered", async () => {
    const session = bench.session({ opening: { permission: permission({ online: "none" }) } });
    await turn(bench, session, [{ text: "off" }]);
    const { tools } = bench.server.requests.at(-1) ?? assert.fail("no request");
    assert.ok(tools.includes("Bash"));
    assert.ok(!tools.some((tool) => tool.startsWith("Web")));
    await session.close();
  });

  test("/goal is taken by the CLI itself", async () => {
    const session = bench.session();
    const { host } = await turn(bench, session, [{ text: "working on it" }], {
      answers: { command: "goal" },
      words: "say that it is done",
    });
    assert.ok(host.events.some((event) => event.kind === "notice" && /goal/i.test(event.text)));
    assert.equal((await turn(bench, session, [{ text: "next" }])).text, "next");
    await session.close();
  });

  test("the person's hooks do not run, and what they wrote for the agent to read is read", async () => {
    await using own = await startBench();
    await mkdir(join(own.home, "config"), { recursive: true });
    await writeFile(
      join(own.home, "config", "settings.json"),
      JSON.stringify({
        permissions: { defaultMode: "plan" },
        hooks: {
          PreToolUse: [{ matcher: "*", hooks: [{ type: "command", command: `touch ${own.home}/hooked` }] }],
        },
      }),
    );
    await writeFile(join(own.home, "work", "CLAUDE.md"), "MEMORY-OF-THE-PROJECT");
    const session = own.session();
    await turn(own, session, [{ sh: "touch ran.txt" }, { text: "end" }]);
    await readFile(join(own.home, "work", "ran.txt"));
    await assert.rejects(readFile(join(own.home, "hooked")));
    assert.ok(own.server.requests.some(({ body }) => JSON.stringify(body).includes("MEMORY-OF-THE-PROJECT")));
  });

  test("where a policy forbids running without approvals, requests are answered yes", async () => {
    await using own = await startBench();
    await mkdir(join(own.home, "config"), { recursive: true });
    const settings = { permissions: { disableBypassPermissionsMode: "disable" } };
    await writeFile(join(own.home, "config", "settings.json"), JSON.stringify(settings));
    const session = own.session();
    const { host } = await turn(own, session, [{ sh: "touch allowed.txt" }, { text: "end" }]);
    await readFile(join(own.home, "work", "allowed.txt"));
    assert.equal(host.events.filter((event) => event.kind === "notice" && /policy/.test(event.text)).length, 1);
  });
});

describe("the real Claude Code: what is spent is what the model served", () => {
  test("over turns, a restart, a fork and a turn interrupted before it was answered", async () => {
    await using own = await startBench();
    const session = own.session();
    const spends = [];
    const take = async (taker: typeof session, steps: readonly Step[], setup = own.setup): Promise<void> => {
      spends.push(...(await turn(own, taker, steps, { setup })).host.spends);
    };
    await take(session, [
      { sh: "true", usage: { output: 3 } },
      { text: "one", usage: { input: 5, cacheRead: 900 } },
    ]);
    await take(session, [subagent([{ text: "in" }], { model: "haiku" }), { text: "two" }]);
    await take(session, [{ text: "three" }]);
    // Another workdir: the process is started anew, on the same conversation.
    await take(session, [{ text: "four" }], { ...own.setup, place: localPlace(join(own.home, "elsewhere")) });
    const fork = own.session({ opening: { forkOf: session } });
    await take(fork, [{ text: "five" }]);
    await take(session, [{ text: "six" }]);
    const host = new RecordingHost(own.setup);
    await session.ready(own.setup);
    const cut = session.take(`x ${scripted([{ sh: "true" }, { hang: true }])}`, host);
    await host.heard("tool");
    setTimeout(() => host.abort(new Error("enough")), 500);
    await assert.rejects(cut, /enough/);
    spends.push(...host.spends);
    await take(session, [{ text: "seven" }]);
    assert.deepEqual(totalOf(spends), served(own.server));
  });

  test("a turn that is cut while it speaks pays what the model had told", async () => {
    await using own = await startBench();
    const session = own.session();
    await session.ready(own.setup);
    const host = new RecordingHost(own.setup);
    const slow = session.take(`x ${scripted([{ text: "slow ".repeat(40), chunks: 40, chunkMs: 100 }])}`, host);
    // Told while it goes, so that a budget can end the turn in its middle.
    await host.paid();
    host.abort(new Error("enough"));
    await assert.rejects(slow, /enough/);
    const { text, host: next } = await turn(own, session, [{ text: "after" }]);
    assert.equal(text, "after");
    const told = totalOf([...host.spends, ...next.spends])[MODEL] ?? {};
    const gave = served(own.server)[MODEL] ?? {};
    assert.deepEqual([told.input, told.cache_read, told.cache_write], [gave.input, gave.cache_read, gave.cache_write]);
    // The CLI estimates the words of an answer that was cut; the server had told of one token.
    assert.ok((told.output ?? 0) >= (gave.output ?? 0) && (told.output ?? 0) < 60, JSON.stringify(told));
  });

  test("a failed turn is paid too", async () => {
    await using own = await startBench();
    const session = own.session();
    const host = new RecordingHost(own.setup);
    await session.ready(own.setup);
    await assert.rejects(session.take(`x ${scripted([{ sh: "true" }, { status: 400 }])}`, host));
    assert.deepEqual(totalOf(host.spends), served(own.server));
  });
});

describe("the real Claude Code: interruption", () => {
  test("in the middle of a tool: the tool is ended, the session goes on", async () => {
    const session = bench.session();
    await session.ready(bench.setup);
    const host = new RecordingHost(bench.setup);
    const taken = session.take(
      `x ${scripted([{ sh: "echo a; sleep 31.7; touch slept.txt" }, { text: "never" }])}`,
      host,
    );
    await host.heard("tool");
    await wait(300);
    const reason = new Error("stop it");
    host.abort(reason);
    await assert.rejects(taken, (error) => error === reason);
    assert.equal((await turn(bench, session, [{ text: "after" }])).text, "after");
    await session.close();
  });
});

describe("the real Claude Code: failures", () => {
  const failing = async (steps: readonly Step[], env: Record<string, string> = {}): Promise<unknown> => {
    const session = bench.session({ options: { env: { ...bench.env, ...env } } });
    try {
      return await turn(bench, session, steps).catch((error: unknown) => error);
    } finally {
      await session.close();
    }
  };
  const cases: readonly (readonly [
    string,
    readonly Step[],
    new (message: string) => Error,
    Record<string, string>?,
  ])[] = [
    ["a credential that is refused", [{ status: 401 }], HarnessRefused],
    ["a model that is not served", [{ status: 404, message: "model: nothing" }], ModelUnavailable],
    ["a rate limit that lasts", [{ status: 429 }], HarnessThrottled],
    ["a server that fails", [{ status: 500 }], HarnessDropped],
    ["an overloaded server", [{ status: 529 }], HarnessThrottled],
    ["a request that is refused", [{ status: 400, message: "prompt is too long" }], HarnessUnrecoverable],
    ["a connection that is dropped every time", [{ drop: "before" }], HarnessDropped],
    ["a server that is not there", [], HarnessDropped, { ANTHROPIC_BASE_URL: "http://127.0.0.1:9" }],
  ];
  for (const [title, steps, leaf, env] of cases) {
    test(`${title} is a ${leaf.name}`, async () => {
      const error = await failing(steps, env);
      assert.ok(error instanceof leaf, String(error));
      assert.match(error.message, /^claude: \S/);
    });
  }

  test("a session goes on after a failed turn, the first included", async () => {
    const session = bench.session();
    await assert.rejects(turn(bench, session, [{ status: 401 }]), HarnessRefused);
    assert.equal((await turn(bench, session, [{ text: "now" }])).text, "now");
    await assert.rejects(turn(bench, session, [{ status: 404 }]), ModelUnavailable);
    assert.equal((await turn(bench, session, [{ text: "again" }])).text, "again");
    await session.close();
  });

  test("a rate limit that passes, and a connection that drops once, are told and got over", async () => {
    const session = bench.session();
    const limited = await turn(bench, session, [{ status: 429, retryAfter: 0, times: 1 }, { text: "through" }]);
    assert.equal(limited.text, "through");
    assert.ok(limited.host.events.some((event) => event.kind === "notice" && /429/.test(event.text)));
    const dropped = await turn(bench, session, [{ text: "one two", drop: "mid", times: 1 }, { text: "whole" }]);
    assert.equal(dropped.text, "whole");
    await session.close();
  });

  test("killed in the middle of a turn: the next one carries the conversation on", async () => {
    await using own = await startBench();
    const session = own.session();
    await turn(own, session, [{ text: "before" }]);
    const id = session.id;
    const host = new RecordingHost(own.setup);
    await session.ready(own.setup);
    const taken = session.take(`x ${scripted([{ sh: "echo a; sleep 31.8" }])}`, host);
    await host.heard("tool");
    await wait(300);
    const claude = await processNamed("claude", own.home);
    process.kill(claude, "SIGKILL");
    await assert.rejects(taken, HarnessKilled);
    assert.equal((await turn(own, session, [{ text: "after" }])).text, "after");
    assert.equal(session.id, id);
    const { conversation } = own.server.requests.at(-1) ?? assert.fail("no request");
    assert.ok(conversation.some(({ text }) => text.includes("before")));
    await session.close();
    assert.deepEqual(await processesWith(own.home), []);
  });

  test("a spent subscription says when it may be used again, and is not tried again", async () => {
    await using own = await startBench();
    const { ANTHROPIC_API_KEY: _, ...env } = own.env;
    const session = own.session({ options: { env: { ...env, CLAUDE_CODE_OAUTH_TOKEN: "scripted" } } });
    const resets = Math.floor(Date.now() / 1000) + 3600;
    const headers = {
      "anthropic-ratelimit-unified-status": "rejected",
      "anthropic-ratelimit-unified-representative-claim": "five_hour",
      "anthropic-ratelimit-unified-reset": `${resets}`,
      "anthropic-ratelimit-unified-5h-utilization": "1.0",
      "anthropic-ratelimit-unified-5h-reset": `${resets}`,
      "anthropic-ratelimit-unified-5h-status": "rejected",
    };
    await assert.rejects(turn(own, session, [{ status: 429, headers }]), (error) => {
      const time = new Date(resets * 1000).toISOString();
      return error instanceof HarnessThrottled && /limit/.test(error.message) && error.message.includes(time);
    });
    assert.equal(own.server.requests.filter(({ step }) => step?.status === 429).length, 1);
  });

  test("a program that is not there", async () => {
    const session = bench.session({ options: { program: "/nowhere/claude" } });
    await assert.rejects(session.ready(bench.setup), HarnessNotInstalled);
  });

  test("nothing is left after a close, whatever was under way", async () => {
    await using own = await startBench();
    const session = own.session();
    await session.ready(own.setup);
    const host = new RecordingHost(own.setup);
    const taken = session.take(`x ${scripted([{ sh: "setsid sleep 31.9 & echo a; sleep 31.9" }])}`, host);
    const rejected = assert.rejects(taken);
    await host.heard("tool");
    await wait(300);
    await session.close();
    await rejected;
    assert.deepEqual(await processesWith(own.home), []);
  });
});

function lastToolResult(): string {
  return bench.server.requests.at(-1)?.conversation.findLast(({ by }) => by === "tool")?.text ?? "";
}

async function processNamed(name: string, mark: string): Promise<number> {
  for (const pid of await processesWith(mark)) {
    if ((await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")).startsWith(name)) return pid;
  }
  throw new Error(`no process named ${name}`);
}

describe("the real Claude Code: skills of a role", () => {
  const skill = async (directory: string, about: string): Promise<void> => {
    await mkdir(directory, { recursive: true });
    await writeFile(
      join(directory, "SKILL.md"),
      `---\nname: review\ndescription: ${about}\n---\n\nThe word is heron.\n`,
    );
    await writeFile(join(directory, "more.md"), "and the number is 42\n");
  };
  const use: Step = { tool: "Skill", input: { skill: "review" } };

  for (const local of ["all", "read"] as const) {
    test(`are offered, used and read with local=${local}, from outside of the workdir and of the person's own`, async () => {
      await using own = await startBench();
      const directory = join(own.home, "flow", "skills", "review");
      await skill(directory, "How things are reviewed here.");
      const lodgings = async () => (await readdir(tmpdir())).filter((name) => name.startsWith("hmz-skills-"));
      const before = await lodgings();
      const session = own.session({
        opening: {
          permission: permission({ local, user: "none", system: "none" }),
          skills: [{ name: "review", directory, entries: ["review"] }],
        },
      });
      await turn(own, session, [use, { text: "done" }]);
      const asked = JSON.stringify(own.server.requests.at(-1));
      assert.match(asked, /- review: How things are reviewed here\./);
      assert.match(asked, /The word is heron/);
      const [at] = /[^" ]*hmz-skills-[^"\\ ]*review/.exec(asked) ?? [];
      assert.ok(at);
      const read: Step = { tool: "Read", input: { file_path: join(at, "more.md") } };
      await turn(own, session, [read, { text: "read" }]);
      assert.match(JSON.stringify(own.server.requests.at(-1)), /and the number is 42/);
      await session.close();
      assert.deepEqual(await lodgings(), before);
      assert.deepEqual(await readdir(join(own.home, "work")), []);
      assert.equal((await readdir(join(own.home, "config"))).includes("skills"), false);
    });
  }

  test("the person's own skill keeps its name, and the flow's is called flow:<name> beside it", async () => {
    await using own = await startBench();
    const directory = join(own.home, "flow", "skills", "review");
    await skill(directory, "The flow's.");
    await skill(join(own.home, "config", "skills", "review"), "The person's.");
    const session = own.session({ opening: { skills: [{ name: "review", directory, entries: ["review"] }] } });
    await turn(own, session, [{ text: "done" }]);
    const asked = JSON.stringify(own.server.requests.at(-1));
    assert.match(asked, /- review: The person's\./);
    assert.match(asked, /- flow:review: The flow's\./);
    await session.close();
  });
});
