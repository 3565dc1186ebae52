import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, flow, tool } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";

describe("callbacks around a fake agent's tools", () => {
  const heard: string[] = [];
  const look = tool({ name: "look", about: "looks", call: () => "seen" });
  const watches = flow(
    {
      name: "watches",
      agents: {
        a: agent({
          tools: [look],
          callbacks: {
            beforeTool: [
              ({ tool: name, input }) => (JSON.stringify(input) === '{"deny":true}' ? `no ${name}` : undefined),
            ],
            afterTool: [({ tool: name, result }) => void heard.push(`${name}: ${String(result)}`)],
          },
        }),
      },
    },
    async (task, { agents: { a } }) => {
      if (task === "hooked") a.onPreToolUse(() => ({ block: true, reason: "no" }));
      return a.run("go");
    },
  );
  const acts = (deny: boolean) =>
    new FakeAgent({
      harness: "native",
      reply: async (_prompt, { session }) => {
        const input = deny ? { deny } : {};
        const ran = await session.tool("shell", input);
        return `${ran} ${await session.use("look", input)} ${session.tools.map((use) => use.ran).join()}`;
      },
    });

  it("hear of each use, of its own tools and of the flow's", async () => {
    heard.length = 0;
    assert.equal(await runFake(watches, "", { agents: { a: acts(false) } }), "true seen true,true");
    assert.deepEqual(heard, ["shell: done", "look: seen"]);
  });

  it("stand in place of a tool that does not run then", async () => {
    heard.length = 0;
    assert.match(await runFake(watches, "", { agents: { a: acts(true) } }), /^false no look false,/);
    assert.deepEqual(heard, ["shell: no shell", "look: no look"]);
  });

  it("hear of nothing that a hook refused", async () => {
    heard.length = 0;
    assert.match(await runFake(watches, "hooked", { agents: { a: acts(false) } }), /^false /);
    assert.ok(!heard.includes("shell: done"));
  });

  it("are refused of a harness that offers the flow's tools and has no such seam", async () => {
    for (const harness of ["claude", "grok", "pi"] as const) {
      const fake = new FakeAgent({ harness });
      await assert.rejects(runFake(watches, "", { agents: { a: fake } }), {
        name: "CapabilityMissing",
        message: `fake-callbacks.test:watches: 'a' needs tool_callbacks, which ${harness} does not support`,
      });
      assert.deepEqual(fake.prompts, []);
    }
  });
});
