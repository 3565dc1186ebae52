import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, flow, outworlder, Outworlder, z } from "hmz/flows";
import { FakeOutworlder, runFake } from "hmz/fakes";

async function refusal(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

const Answer = z.object({ n: z.number() }).meta({ title: "Answer" });
const Defaults = z.object({ n: z.number().default(7) });

describe("the run's outworlder", () => {
  const asks = flow({ agents: { human: outworlder() } }, async (_task, { agents: { human } }) => [
    human.away,
    await human.run("name?", { session: await human.spawn() }),
    await human.run("n?", { outputSchema: Defaults }),
    await refusal(() => human.run("n?", { outputSchema: Answer })),
  ]);

  it("is asked where somebody is there", async () => {
    const human = new FakeOutworlder({ reply: ["Ada", { n: 1 }, '{"n":2}'] });
    assert.deepEqual(await runFake(asks, "", { outworlder: human }), [false, "Ada", { n: 1 }, "nothing was refused"]);
    assert.deepEqual(human.asked, ["name?", "n?", "n?"]);
  });

  it("answers at once while away: nothing, or defaults", async () => {
    const human = new FakeOutworlder({ away: true, reply: "never asked" });
    assert.deepEqual(await runFake(asks, "", { outworlder: human }), [
      true,
      "",
      { n: 7 },
      "OutworlderAway: nobody is there to answer with a Answer, and it has fields with no default",
    ]);
    assert.deepEqual(human.asked, []);
  });

  it("is asked as the role that the run filled, whatever role it is passed under", async () => {
    const roles: string[] = [];
    const human = {
      away: (role: string) => (roles.push(role), false),
      ask: async ({ role }: { role: string }) => (roles.push(role), "yes"),
    };
    const inner = flow({ agents: { boss: outworlder(), a: agent() } }, async (_task, { agents: { boss, a } }) => {
      await boss.run("?");
      await a.run("?");
    });
    const outer = flow({ agents: { human: outworlder() } }, async (_task, { agents: { human } }) => {
      await inner("", { agents: { boss: human, a: human } });
    });
    await runFake(outer, "", { outworlder: human });
    assert.deepEqual(new Set(roles), new Set(["human"]));
  });

  it("is asked as each role that the run filled, and by a callee as the first", async () => {
    const roles: string[] = [];
    const human = {
      away: () => false,
      ask: async ({ role }: { role: string }) => (roles.push(role), "yes"),
    };
    const inner = flow({ agents: { any: outworlder() } }, async (_task, { agents: { any } }) => any.run("?"));
    const outer = flow({ agents: { first: outworlder(), second: outworlder() } }, async (_task, { agents }) => {
      await agents.first.run("?");
      await agents.second.run("?");
      await inner("");
      await inner("", { agents: { any: agents.second } });
    });
    await runFake(outer, "", { outworlder: human });
    assert.deepEqual(roles, ["first", "second", "first", "second"]);
  });

  it("is not waited for once the question is taken back", async () => {
    const human = { away: () => false, ask: () => new Promise(() => {}) };
    const reason = new Error("enough");
    const asks = flow({ agents: { human: outworlder() } }, async (_task, { agents }) => {
      const taken = new AbortController();
      const asked = agents.human.run("?", { signal: taken.signal });
      taken.abort(reason);
      await assert.rejects(asked, (error) => error === reason);
      await assert.rejects(agents.human.run("?", { signal: taken.signal }), (error) => error === reason);
      const made = Outworlder.new();
      made.onOutworlderRun(() => new Promise(() => {}));
      return refusal(() => made.run("?", { signal: AbortSignal.abort(reason) }));
    });
    assert.equal(await runFake(asks, "", { outworlder: human }), "Error: enough");
  });

  it("cannot do what an agent can", async () => {
    const tries = flow({ agents: { human: outworlder() } }, async (_task, { agents: { human } }) => {
      const session = await human.spawn();
      return [
        await refusal(() => human.fork(session)),
        await refusal(() => human.derive({ skills: ["lint"] })),
        await refusal(() => human.derive({ skills: [] })),
        await refusal(() => human.onOutworlderRun(() => ({ output: "x" }))),
        await refusal(() => human.run("x", { session: {} as never })),
        await refusal(() => human.run("x", { env: {} as never })),
        await refusal(() => session.offers([])),
        await refusal(() => (human as unknown as { steer(): unknown }).steer()),
        await refusal(() => human.derive({ permission: "read" as never })),
        await refusal(() => human.run("x", { session: "x" as never })),
        await refusal(() => human.run("x", { env: "/work" as never })),
        await refusal(() => human.run("x", { env: undefined })),
        await refusal(() => human.run(5 as never)),
        await refusal(() => human.derive({ permission: { local: "some" } as never })),
        session.takesTools,
      ];
    });
    assert.deepEqual(await runFake(tries), [
      "UnsupportedOperation: an outworlder's session cannot be forked",
      "CapabilityNotGranted: human: an outworlder has no skills",
      "nothing was refused",
      "CapabilityNotGranted: human: only an outworlder made with Outworlder.new() is answered by a hook",
      "SessionError: human: this object is not one of this agent's",
      "TypeError: this object is not an environment this run handed out",
      "UnsupportedOperation: human: an outworlder takes no tools",
      "UnsupportedOperation: an outworlder cannot be steered",
      "TypeError: permission=read is not a Permission",
      "SessionError: human: x is not one of this agent's",
      "TypeError: /work is not an environment this run handed out",
      "nothing was refused",
      "TypeError: human: a prompt is a string",
      "RangeError: local=some is not a permission kind",
      false,
    ]);
  });
});

describe("an outworlder that the flow answers for", () => {
  it("is away until its hook hangs, and answers with it", async () => {
    const makes = flow({ name: "makes" }, async () => {
      const human = Outworlder.new();
      const before = [human.away, await human.run("?")];
      human.onOutworlderRun(({ prompt, outputSchema, ctx }) => {
        assert.equal(ctx.flow.name, "makes");
        return { output: outputSchema ? { n: 5 } : `you asked ${prompt}` };
      });
      const during = [human.away, await human.run("?"), await human.run("n?", { outputSchema: Answer })];
      human.onOutworlderRun((() => undefined) as never);
      const wrong = await refusal(() => human.run("?"));
      human.onOutworlderRun(null);
      return [before, during, wrong, human.away];
    });
    assert.deepEqual(await runFake(makes), [
      [true, ""],
      [false, "you asked ?", { n: 5 }],
      "TypeError: outworlder: an outworlder_run hook returns { output }",
      true,
    ]);
  });

  it("stands in for a callee's person and its plain agents", async () => {
    const asks = flow({ agents: { human: outworlder(), a: agent() } }, async (_task, { agents: { human, a } }) => [
      await human.run("h"),
      await a.run("a", { session: await a.spawn() }),
    ]);
    const makes = flow({}, async () => {
      const human = Outworlder.new();
      human.onOutworlderRun(({ prompt }) => ({ output: prompt.toUpperCase() }));
      return asks("", { agents: { human, a: human } });
    });
    assert.deepEqual(await runFake(makes), ["H", "A"]);
  });

  it("is made inside a run", async () => {
    assert.throws(() => Outworlder.new(), { name: "FlowRuntimeError" });
  });
});
