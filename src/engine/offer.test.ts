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
});
