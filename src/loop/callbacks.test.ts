import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { agent, flow, type FlowContext, type RunDone, type Session, tool, z } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { nativeDriver } from "./driver.ts";

const look = tool({ name: "look", about: "looks", takes: z.object({ at: z.string() }), call: ({ at }) => `saw ${at}` });

/** An agent that looks twice and then says what it is told to. */
function scripted(): ReturnType<typeof nativeDriver> {
  const file = join(temporaryDirectory("callbacks"), "script.json");
  const looks = ["a", "b"].map((at) => ({ tool: "look", input: { at } }));
  writeFileSync(file, JSON.stringify({ scenes: [{ steps: [{ tools: looks }, { say: "draft" }] }] }));
  return nativeDriver({ model: `scripted/${file}`, env: {} });
}

/** The same as a fake. */
const faked = (): FakeAgent =>
  new FakeAgent({
    harness: "native",
    reply: async (_prompt, { session }) => {
      await session.use("look", { at: "a" });
      await session.use("look", { at: "b" });
      return "draft";
    },
  });

for (const [what, driver] of [
  ["native", scripted],
  ["a fake of native", faked],
] as const) {
  test(`${what} calls a role's callbacks as the flow, with its context and the session`, async () => {
    const around: { readonly ctx: FlowContext; readonly session: Session }[] = [];
    const heard: string[] = [];
    let done: RunDone | undefined;
    const inner = flow({ name: "inner", agents: { b: agent() } }, async (_task, { agents: { b } }) => b.run("?"));
    let ask = async (): Promise<string> => "";
    const f = flow(
      {
        agents: {
          a: agent({
            tools: [look],
            callbacks: {
              beforeModel: [(call) => void around.push(call)],
              afterModel: [
                (call) => void around.push(call),
                ({ response: { text } }) => (text === "draft" ? { text: "final", toolCalls: [] } : undefined),
              ],
              beforeTool: [
                (call) => void around.push(call),
                async ({ input }) => ((input as { at: string }).at === "a" ? ask() : undefined),
              ],
              afterTool: [
                (call) => void around.push(call),
                ({ result }) => void heard.push(String(result)),
                ({ result }) => (result === "saw b" ? "shortened" : undefined),
                () => void heard.push("after the first answer"),
              ],
              afterRun: [
                async (told) => {
                  around.push(told);
                  done = told;
                },
              ],
            },
          }),
          other: agent(),
        },
      },
      async (_task, { agents: { a, other }, ctx }) => {
        ask = () => inner("", { agents: { b: other } });
        const session = await a.spawn();
        const said = await a.run("go", { session });
        assert.ok(around.length >= 7 && around.every((call) => call.ctx === ctx && call.session === session));
        return said;
      },
    );
    const said = await runFake(f, "", { agents: { a: driver(), other: "asked" } });
    assert.equal(said, "final");
    assert.deepEqual(heard.sort(), ["after the first answer", "asked", "saw b"].sort());
    assert.equal(done?.said, "final");
    assert.equal(done?.messages[0]?.content, "go");
    assert.equal(done?.messages.at(-1)?.role, "assistant");
    assert.ok((done?.usage.outputTokens ?? -1) >= 0);
  });

  test(`${what} fails its turn where a callback throws`, async () => {
    const refuses = {
      beforeTool: [
        () => {
          throw new Error("not today");
        },
      ],
    };
    const f = flow({ agents: { a: agent({ tools: [look], callbacks: refuses }) } }, async (_task, { agents: { a } }) =>
      a.run("go"),
    );
    await assert.rejects(runFake(f, "", { agents: { a: driver() } }), { message: "not today" });
  });
}

test("afterRun follows a turn of every harness, the prompt and its answer where it keeps its messages to itself", async () => {
  const told: (Pick<RunDone, "said" | "messages" | "usage"> | undefined)[] = [];
  const afterRun = [({ said, messages, usage }: RunDone) => void told.push({ said, messages, usage })];
  const f = flow({ agents: { a: agent({ callbacks: { afterRun } }) } }, async (_task, { agents: { a } }) =>
    a.run("go"),
  );
  const a = new FakeAgent({ reply: "went", cost: 2, outputTokens: 3, seconds: 4 });
  assert.equal(await runFake(f, "", { agents: { a } }), "went");
  const messages = [
    { role: "user", content: "go" },
    { role: "assistant", content: "went" },
  ];
  assert.deepEqual(told, [{ said: "went", messages, usage: { duration: 4_000, cost: 2, outputTokens: 3 } }]);
});
