import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { agent, CostExceeded, flow, FlowNotFound, FlowRuntimeError, load, localEnv, optional } from "hmz/flows";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";

describe("runFake", () => {
  const loops = flow({ name: "loops", agents: { agent: agent() } }, async (task, { agents }) => {
    for (;;) await agents.agent.run(task);
  });

  it("holds a flow to its budget", async () => {
    const fake = new FakeAgent({ cost: 1 });
    await assert.rejects(runFake(loops, "go", { agents: { agent: fake }, budget: { cost: 2.5 } }), CostExceeded);
    assert.deepEqual(fake.prompts, ["go", "go", "go"]);
  });

  it("closes each driver once a run, whatever the flow came to, and one that fills two roles once", async () => {
    const both = flow({ agents: { a: agent(), b: agent() } }, async (_task, { agents: { a, b } }) => {
      await a.run("x");
      await b.run("y");
      throw new Error("flow");
    });
    const fake = new FakeAgent();
    for (let run = 1; run <= 2; run++) {
      await assert.rejects(runFake(both, "", { agents: { a: fake, b: fake } }), /flow/);
      assert.deepEqual([fake.closed, fake.live], [run, 0]);
    }
    assert.deepEqual(fake.prompts, ["x", "y", "x", "y"]);
  });

  it("gives an optional role where it is given", async () => {
    const maybe = flow(
      { agents: { a: optional(agent({ harness: "pi" })) }, envs: { here: localEnv() } },
      async (_t, given) => [given.agents.a?.harness, given.envs.here.workdir],
    );
    assert.deepEqual(await runFake(maybe), [undefined, "/here"]);
    assert.deepEqual(await runFake(maybe, "", { agents: { a: "hi" }, local: new FakeEnv({ workdir: "/repo" }) }), [
      "pi",
      "/repo",
    ]);
  });

  it("refuses a journal that it would not keep", async () => {
    for (const options of [{ journal: "/tmp/j" }, { resume: true }]) {
      await assert.rejects(runFake(loops, "", options), FlowRuntimeError);
    }
  });

  it("loads a ref from where it is called, and the flow's own refs from where it is defined", async (t) => {
    const directory = await mkdtemp(join(tmpdir(), "hmz-run-fake-"));
    t.after(() => rm(directory, { recursive: true }));
    await mkdir(join(directory, "duo"));
    await writeFile(
      join(directory, "duo", "index.ts"),
      `import { flow, load } from "hmz/flows";
export const duo = flow({}, async (task: string) => (await load(":second"))(task));
export const second = flow({}, async (task: string) => "second " + task);
`,
    );
    assert.equal(await runFake(join(directory, "duo"), "go"), "second go");
    assert.equal(await runFake(`${join(directory, "duo")}:second`, "go"), "second go");
    await assert.rejects(runFake("./no-such-flow-here", "go"), FlowNotFound);
    const loads = flow({ name: "loads" }, async (task) => (await load(`${join(directory, "duo")}:second`))(task));
    assert.equal(await runFake(loads, "x"), "second x");
  });
});
