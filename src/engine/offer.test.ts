import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, flow, tool, z } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";

describe("a tool of the flow's own", () => {
  const takes = z.object({ path: z.string(), times: z.number().default(1) });
  const returns = (value: unknown) => tool({ name: "t", about: "a", takes, call: () => value });
  const rows = [
    ["a string as it is", returns("read this"), { path: "a" }, "read this"],
    ["nothing as done", returns(undefined), { path: "a" }, "done"],
    ["null as done", returns(null), { path: "a" }, "done"],
    ["anything else as JSON", returns({ ok: [1, true] }), { path: "a" }, '{"ok":[1,true]}'],
    ["a promise, awaited", returns(Promise.resolve("later")), { path: "a" }, "later"],
    [
      "its input, read by its schema",
      tool({ name: "t", about: "a", takes, call: ({ path, times }) => `${path} ${times}` }),
      { path: "a" },
      "a 1",
    ],
    [
      "no input where it takes none",
      tool({ name: "t", about: "a", call: (input) => String(input) }),
      { x: 1 },
      "undefined",
    ],
    [
      "what it throws as its failing",
      tool({
        name: "t",
        about: "a",
        call: () => {
          throw new Error("no such file");
        },
      }),
      {},
      "t failed: no such file",
    ],
    [
      "an input of another shape as called wrongly",
      returns("unused"),
      { path: 5 },
      "t was called wrongly: path: Invalid input: expected string, received number",
    ],
  ] as const;
  for (const [what, offered, input, expected] of rows) {
    it(`answers the agent with ${what}`, async () => {
      const fake = new FakeAgent({ reply: async (_prompt, { session }) => session.use("t", input) });
      const offers = flow({ agents: { a: agent({ tools: [offered as never] }) } }, async (_task, { agents: { a } }) =>
        a.run("x"),
      );
      assert.equal(await runFake(offers, "", { agents: { a: fake } }), expected);
    });
  }

  it("and by a schema that waits for something", async () => {
    const takes = z.object({ path: z.string().refine(async (path) => path !== "b", "is taken") });
    const waits = tool({ name: "t", about: "a", takes, call: ({ path }) => path });
    const fake = new FakeAgent({
      reply: async (_prompt, { session }) => [
        await session.use("t", { path: "a" }),
        await session.use("t", { path: "b" }),
      ],
    });
    const offers = flow({ agents: { a: agent({ tools: [waits] }) } }, async (_task, { agents: { a } }) => a.run("x"));
    assert.equal(await runFake(offers, "", { agents: { a: fake } }), '["a","t was called wrongly: path: is taken"]');
  });

  it("whole, however long", async () => {
    const size = 10 * 1024 * 1024;
    let read = "";
    const fake = new FakeAgent({
      reply: async (_prompt, { session }) => {
        read = await session.use("t", { path: "a" });
        return "done";
      },
    });
    const long = returns("0123456789abcdef".repeat(size / 16));
    const offers = flow({ agents: { a: agent({ tools: [long] }) } }, async (_task, { agents: { a } }) => a.run("x"));
    await runFake(offers, "", { agents: { a: fake } });
    assert.equal(read.length, size);
  });

  it("runs as its flow, while the turn waits", async () => {
    const inner = flow({ name: "inner", agents: { b: agent() } }, async (_task, { agents: { b } }) => b.run("review"));
    const fake = new FakeAgent({
      reply: async (prompt, { session }) => (prompt === "review" ? "looks fine" : session.use("ask")),
    });
    const outer = flow({ agents: { a: agent({ needs: ["tools"] }), reviewer: agent() } }, async (_task, { agents }) => {
      const session = await agents.a.spawn();
      session.offers([tool({ name: "ask", about: "a", call: () => inner("", { agents: { b: agents.reviewer } }) })]);
      return agents.a.run("go", { session });
    });
    assert.equal(await runFake(outer, "", { agents: { a: fake, reviewer: fake } }), "looks fine");
  });

  it("is told to the harness by name, about and schema", async () => {
    const fake = new FakeAgent();
    const offers = flow({ agents: { a: agent({ tools: [returns("x")] }) } }, async (_task, { agents: { a } }) =>
      a.run("x"),
    );
    await runFake(offers, "", { agents: { a: fake } });
    const [offered] = fake.sessions[0]?.offered ?? [];
    assert.deepEqual([offered?.name, offered?.about], ["t", "a"]);
    assert.deepEqual(offered?.schema["required"], ["path"]);
  });

  it("fails for the agent alone: it may call again, and the flow goes on", async () => {
    const picky = tool({ name: "t", about: "a", takes: z.object({ n: z.number().max(3) }), call: ({ n }) => `${n}` });
    const fake = new FakeAgent({
      reply: async (_prompt, { session }) => `${await session.use("t", { n: 5 })}; ${await session.use("t", { n: 2 })}`,
    });
    const offers = flow({ agents: { a: agent({ tools: [picky] }) } }, async (_task, { agents: { a } }) => a.run("x"));
    const said = await runFake(offers, "", { agents: { a: fake } });
    assert.equal(said, "t was called wrongly: n: Too big: expected number to be <=3; 2");
    assert.deepEqual(
      fake.sessions[0]?.tools.map(({ ran }) => ran),
      [false, true],
    );
  });

  it("ends with the turn that called it: the turns that it takes are interrupted", async () => {
    const reviewer = new FakeAgent({ reply: async () => new Promise<string>(() => {}) });
    const stop = new AbortController();
    const fake = new FakeAgent({ reply: async (_prompt, { session }) => session.use("review") });
    let ended: unknown;
    const outer = flow({ agents: { a: agent(), reviewer: agent() } }, async (_task, { agents }) => {
      const session = await agents.a.spawn();
      const reviewing = Promise.withResolvers<void>();
      session.offers([
        tool({
          name: "review",
          about: "a",
          call: async () => {
            const turn = agents.reviewer.run("review");
            reviewing.resolve();
            await turn.catch((error: unknown) => {
              ended = error;
            });
          },
        }),
      ]);
      const turn = agents.a.run("go", { session, signal: stop.signal });
      await reviewing.promise;
      await new Promise((resolve) => setImmediate(resolve));
      stop.abort(new Error("enough"));
      await assert.rejects(turn, { message: "enough" });
      await new Promise((resolve) => setImmediate(resolve));
      return ended;
    });
    assert.deepEqual(await runFake(outer, "", { agents: { a: fake, reviewer } }), new Error("enough"));
  });
});

describe("which tools are on offer", () => {
  const named = (name: string, says = name) => tool({ name, about: says, call: () => says });
  /** What the agent finds on offer in each of its turns. */
  const seeing = () => new FakeAgent({ reply: (_prompt, { session }) => names(session.offered) });
  const names = (offered: readonly { readonly name: string; readonly about: string }[]): string =>
    offered.map(({ name, about }) => (name === about ? name : `${name}=${about}`)).join(" ");

  it("the role's, and what the session offers, which stands in place of the role's of its name", async () => {
    const offers = flow(
      { agents: { a: agent({ tools: [named("x"), named("y")] }) } },
      async (_task, { agents: { a } }) => {
        const session = await a.spawn();
        const seen = [await a.run("1", { session })];
        session.offers([named("y", "mine"), named("z")]);
        seen.push(await a.run("2", { session }));
        session.offers([named("w")]);
        seen.push(await a.run("3", { session }));
        session.offers(null);
        return [...seen, await a.run("4", { session })];
      },
    );
    assert.deepEqual(await runFake(offers, "", { agents: { a: seeing() } }), ["x y", "x y=mine z", "x y w", "x y"]);
  });

  it("each session's own, of two of one agent", async () => {
    const offers = flow({ agents: { a: agent({ tools: [named("x")] }) } }, async (_task, { agents: { a } }) => {
      const [one, two] = [await a.spawn(), await a.spawn()];
      one.offers([named("y")]);
      return Promise.all([a.run("1", { session: one }), a.run("2", { session: two }), a.run("3")]);
    });
    assert.deepEqual(await runFake(offers, "", { agents: { a: seeing() } }), ["x y", "x", "x"]);
  });

  it("an agent's that was derived, too", async () => {
    const offers = flow({ agents: { a: agent({ tools: [named("x")] }) } }, async (_task, { agents: { a } }) =>
      a.derive({ permission: { local: "read" } }).run("1"),
    );
    assert.equal(await runFake(offers, "", { agents: { a: seeing() } }), "x");
  });

  it("a called flow's own role's, and none of its caller's", async () => {
    const inner = flow(
      { name: "inner", agents: { b: agent({ tools: [named("y")] }) } },
      async (_task, { agents: { b } }) => b.run("1"),
    );
    const outer = flow({ agents: { a: agent({ tools: [named("x")] }) } }, async (_task, { agents: { a } }) => [
      await inner("", { agents: { b: a } }),
      await a.run("2"),
    ]);
    assert.deepEqual(await runFake(outer, "", { agents: { a: seeing() } }), ["y", "x"]);
  });

  it("none but what is an array of tools, each of its own name, on a harness that takes them", async () => {
    const plain = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      const session = await a.spawn();
      const why = (tools: unknown): string => {
        try {
          session.offers(tools as never);
          return "offered";
        } catch (error) {
          return String(error);
        }
      };
      const said = [
        session.takesTools,
        why([named("x")]),
        why(null),
        why("x"),
        why([{}]),
        why([named("x"), named("x")]),
      ];
      await session[Symbol.asyncDispose]();
      return [...said, why([])];
    });
    assert.deepEqual(await runFake(plain, "", { agents: { a: new FakeAgent({ harness: "pi" }) } }), [
      true,
      "offered",
      "offered",
      "TypeError: a: offers takes an array of tools",
      "TypeError: a: offers takes an array of tools",
      "TypeError: a: offers names one tool twice",
      "SessionError: a: the session is over",
    ]);
    const takesNone = "UnsupportedOperation: a: kimi takes no tools of a flow's own";
    assert.deepEqual(await runFake(plain, "", { agents: { a: new FakeAgent({ harness: "kimi" }) } }), [
      false,
      takesNone,
      "offered",
      takesNone,
      takesNone,
      takesNone,
      "SessionError: a: the session is over",
    ]);
  });

  it("refused before anything runs, where a role declares them and its harness takes none", async () => {
    const offers = flow({ name: "f", agents: { a: agent({ tools: [named("x")] }) } }, async () => "ran");
    await assert.rejects(runFake(offers, "", { agents: { a: new FakeAgent({ harness: "kimi" }) } }), {
      name: "CapabilityMissing",
      message: "offer.test:f: 'a' needs tools, which kimi does not support",
    });
  });
});

describe("an agent that reaches for what only the flow has", () => {
  const working = (name: string, input: Readonly<Record<string, unknown>>) =>
    new FakeAgent({ reply: async (_prompt, { session }) => `built; ${await session.use(name, input)}` });

  it("another agent", async () => {
    const delegating = flow({ agents: { builder: agent(), reviewer: agent() } }, async (task, { agents }) => {
      const session = await agents.builder.spawn();
      session.offers([
        tool({
          name: "review",
          about: "have the reviewer read one file and say what is wrong with it",
          takes: z.object({ path: z.string().describe("the file to have read") }),
          call: ({ path }) => agents.reviewer.run(`Review ${path}. Be brief.`),
        }),
      ]);
      return agents.builder.run(task, { session });
    });
    const reviewer = new FakeAgent({ reply: "no tests" });
    const agents = { builder: working("review", { path: "parser.ts" }), reviewer };
    assert.equal(await runFake(delegating, "write the parser", { agents }), "built; no tests");
    assert.deepEqual(reviewer.prompts, ["Review parser.ts. Be brief."]);
  });

  it("a whole flow", async () => {
    const chase = flow(
      { name: "chase", agents: { worker: agent(), judge: agent() } },
      async (task, { agents, ctx }) => {
        let rounds = 0;
        do {
          await agents.worker.run(task);
          rounds++;
        } while ((await agents.judge.run("Is it done?")) !== "yes");
        return { rounds, flow: ctx.flow.name };
      },
    );
    const outer = flow({ agents: { builder: agent(), judge: agent() } }, async (task, { agents }) => {
      const session = await agents.builder.spawn();
      session.offers([
        tool({
          name: "chase",
          about: "run the loop on one task and report what it came to",
          takes: z.object({ task: z.string().describe("what to have the loop do") }),
          call: ({ task }) => chase(task, { agents: { worker: agents.judge, judge: agents.judge } }),
        }),
      ]);
      return agents.builder.run(task, { session });
    });
    const judge = new FakeAgent({ reply: ["worked", "no", "worked", "yes"] });
    const agents = { builder: working("chase", { task: "mend it" }), judge };
    assert.equal(await runFake(outer, "go", { agents }), 'built; {"rounds":2,"flow":"chase"}');
    assert.deepEqual(judge.prompts, ["mend it", "Is it done?", "mend it", "Is it done?"]);
  });
});
