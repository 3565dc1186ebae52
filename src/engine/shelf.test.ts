import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, cli, command, Exit, flow, z } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";

const board = cli({
  name: "board",
  about: "what is to be done",
  commands: [
    command({ name: "post", about: "a", takes: z.object({ text: z.string() }), call: ({ text }) => `posted ${text}` }),
    command({
      name: "close",
      about: "a",
      call: () => {
        throw new Exit(4, "it is closed");
      },
    }),
  ],
});
const lamp = cli({ name: "lamp", about: "a", commands: [command({ name: "on", about: "a", call: () => undefined })] });

/** An agent that runs a line, and says what it came to. */
const running = (...argv: readonly string[]): FakeAgent =>
  new FakeAgent({
    reply: async (_prompt, { session }) => {
      const { status, stdout, stderr } = await session.runCli(argv);
      return `${session.shelved.map(({ name }) => name).join(" ")}: ${status} ${stdout}${stderr}`;
    },
  });
const shelving = flow({ name: "f", agents: { a: agent({ clis: [board, lamp] }) } }, async (_task, { agents: { a } }) =>
  a.run("go"),
);

describe("a command line of the flow's own", () => {
  for (const [argv, expected] of [
    [["board", "post", "--text", "hi"], "board lamp: 0 posted hi\n"],
    [["lamp", "on"], "board lamp: 0 "],
    [["board", "close"], "board lamp: 4 it is closed\n"],
    [["lamp"], "board lamp: 2 usage: lamp COMMAND [--FLAG VALUE ...]\nlamp: needs a command: the commands are on\n"],
  ] as const) {
    it(argv.join(" "), async () => {
      assert.equal(await runFake(shelving, "", { agents: { a: running(...argv) } }), expected);
    });
  }

  it("is run as its flow, while the turn waits", async () => {
    const inner = flow({ name: "inner", agents: { b: agent() } }, async (_task, { agents: { b } }) => b.run("ask"));
    const outer = flow({ agents: { a: agent(), other: agent() } }, async (_task, { agents }) => {
      const asks = cli({
        name: "asks",
        about: "a",
        commands: [command({ name: "now", about: "a", call: () => inner("", { agents: { b: agents.other } }) })],
      });
      const shelved = flow({ name: "shelved", agents: { a: agent({ clis: [asks] }) } }, async (_t, { agents: { a } }) =>
        a.run("go"),
      );
      return shelved("", { agents: { a: agents.a } });
    });
    const agents = { a: running("asks", "now"), other: new FakeAgent({ reply: "answered" }) };
    assert.equal(await runFake(outer, "", { agents }), "asks: 0 answered\n");
  });

  it("is the called flow's role's, and none of its caller's; derive keeps it", async () => {
    const fake = new FakeAgent({ reply: (_prompt, { session }) => session.shelved.map(({ name }) => name).join(" ") });
    const inner = flow({ name: "inner", agents: { b: agent({ clis: [lamp] }) } }, async (_task, { agents: { b } }) =>
      b.run("1"),
    );
    const outer = flow({ agents: { a: agent({ clis: [board] }) } }, async (_task, { agents: { a } }) => [
      await inner("", { agents: { b: a } }),
      await a.run("2"),
      await a.derive({}).run("3"),
    ]);
    assert.deepEqual(await runFake(outer, "", { agents: { a: fake } }), ["lamp", "board", "board"]);
  });

  it("of its own making that rejects fails as a program would", async () => {
    const broken = { ...lamp, run: () => Promise.reject(new Error("no light")) };
    const outer = flow({ agents: { a: agent({ clis: [broken] }) } }, async (_task, { agents: { a } }) => a.run("go"));
    assert.equal(await runFake(outer, "", { agents: { a: running("lamp", "on") } }), "lamp: 1 lamp: no light\n");
  });

  it("that is not on the PATH is said to be none", async () => {
    await assert.rejects(runFake(shelving, "", { agents: { a: running("git", "log") } }), {
      name: "SessionError",
      message: "a: the session shelves no command line 'git'; it shelves board, lamp",
    });
  });

  it("ends with the turn that ran it", async () => {
    const started = Promise.withResolvers<void>();
    const waits = cli({
      name: "waits",
      about: "a",
      commands: [
        command({
          name: "now",
          about: "a",
          call: async () => {
            started.resolve();
            await new Promise(() => {});
          },
        }),
      ],
    });
    const outer = flow({ agents: { a: agent({ clis: [waits] }) } }, async (_task, { agents: { a } }) => {
      const stop = new AbortController();
      const turn = a.run("go", { signal: stop.signal });
      await started.promise;
      stop.abort(new Error("enough"));
      await assert.rejects(turn, { message: "enough" });
      return "gone on";
    });
    assert.equal(await runFake(outer, "", { agents: { a: running("waits", "now") } }), "gone on");
  });
});

describe("an agent that cannot shelve them", () => {
  class Unshelving extends FakeAgent {
    override readonly shelves = false;
  }
  const litellm = new FakeAgent({ harness: "litellm" });
  const claude = new Unshelving();
  const why = {
    litellm: "declares clis, and litellm has no shell to run them from",
    claude: "declares clis, and this release puts none on the PATH of claude; offer their commands as tools",
  };

  for (const fake of [litellm, claude]) {
    it(`is refused before the run: ${fake.harness}`, async () => {
      await assert.rejects(runFake(shelving, "", { agents: { a: fake } }), {
        name: "CapabilityMissing",
        message: `shelf.test:f: 'a' ${why[fake.harness as keyof typeof why]}`,
      });
      assert.deepEqual(fake.prompts, []);
    });

    it(`is refused at its turn, where a caller hands it on: ${fake.harness}`, async () => {
      const outer = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) =>
        shelving("", { agents: { a } }),
      );
      await assert.rejects(runFake(outer, "", { agents: { a: fake } }), {
        name: "UnsupportedOperation",
        message: `a ${why[fake.harness as keyof typeof why]}`,
      });
      assert.deepEqual(fake.prompts, []);
    });
  }
});
