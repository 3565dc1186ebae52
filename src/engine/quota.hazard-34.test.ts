import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { type Agent, agent, flow, FlowException, HarnessThrottled } from "hmz/flows";
import { FakeAgent, type FakeAgentOptions, runFake } from "hmz/fakes";
import { quotaSpent, spentQuota } from "./quota.ts";

const NOW = 1_800_000_000_000;
const RESETS = NOW + 3_600_000;
const TOLD = "You've hit your limit · resets 1pm (Asia/Seoul)";

function limited(
  options: FakeAgentOptions = {},
  quota: { resetsAt?: number; ofModel?: boolean } = { resetsAt: RESETS },
) {
  return new FakeAgent({
    ...options,
    reply: () => {
      throw quotaSpent(new HarnessThrottled(TOLD), quota);
    },
  });
}

async function said(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "taken",
    (error: unknown) => `${(error as Error).name}: ${(error as Error).message}`,
  );
}

const REFUSED = `HarnessThrottled: claude: its quota is spent, and no turn is sent until ${new Date(RESETS).toISOString()}: ${TOLD}`;

/** Runs a function as a flow of two agents. */
function over<R>(one: FakeAgent, other: FakeAgent, body: (one: Agent, other: Agent) => Promise<R>): Promise<R> {
  const asks = flow({ agents: { one: agent(), other: agent() } }, async (_task, { agents }) =>
    body(agents.one, agents.other),
  );
  return runFake(asks, "", { agents: { one, other } });
}

function at(t: TestContext): (ms: number) => void {
  t.mock.timers.enable({ apis: ["Date"], now: NOW });
  return (ms) => t.mock.timers.setTime(ms);
}

describe("a quota that is spent", () => {
  it("is asked again by none of 200 turns but those that were under way", async (t) => {
    at(t);
    const one = limited();
    const lines = await over(one, new FakeAgent(), async (a) => {
      let next = 0;
      const told: string[] = [];
      const worker = async (): Promise<void> => {
        while (next++ < 200) told.push(await said(a.run("go")));
      };
      await Promise.all(Array.from({ length: 8 }, worker));
      return told;
    });
    assert.ok(one.prompts.length <= 8, `${one.prompts.length} turns were sent`);
    assert.equal(lines.length, 200);
    assert.deepEqual([...new Set(lines)].sort(), [`HarnessThrottled: ${TOLD}`, REFUSED].sort());
  });

  it("is not asked by a turn that waited in a hook meanwhile", async (t) => {
    at(t);
    const one = limited();
    const told = await over(one, new FakeAgent(), async (a) => {
      let release: () => void = () => {};
      const released = new Promise<void>((resolve) => (release = resolve));
      a.onUserPromptSubmit(async ({ prompt }) => (prompt === "late" ? (await released, {}) : {}));
      const late = said(a.run("late"));
      const first = await said(a.run("first"));
      release();
      return [first, await late];
    });
    assert.deepEqual(told, [`HarnessThrottled: ${TOLD}`, REFUSED]);
    assert.deepEqual(one.prompts, ["first"]);
  });

  it("is every agent's of that harness and account, and nobody else's", async (t) => {
    at(t);
    const rows: readonly (readonly [FakeAgentOptions, string])[] = [
      [{ model: "another" }, REFUSED],
      [{ provider: "work" }, "taken"],
      [{ harness: "codex" }, "taken"],
    ];
    for (const [options, expected] of rows) {
      const other = new FakeAgent(options);
      assert.equal(await over(limited(), other, async (a, b) => (await said(a.run("x")), said(b.run("y")))), expected);
      assert.equal(other.prompts.length, expected === "taken" ? 1 : 0);
    }
  });

  it("of one model leaves the account's others", async (t) => {
    at(t);
    const one = limited({ model: "opus" }, { resetsAt: RESETS, ofModel: true });
    const told = await over(one, new FakeAgent({ model: "sonnet" }), async (a, b) => [
      await said(a.run("x")),
      await said(a.run("x")),
      await said(b.run("x")),
    ]);
    assert.deepEqual(told, [`HarnessThrottled: ${TOLD}`, REFUSED, "taken"]);
  });

  it("of one provider's models leaves another's, where a harness has several", async (t) => {
    at(t);
    const one = limited({ harness: "native", model: "openai/gpt" });
    const other = new FakeAgent({ harness: "native", model: "anthropic/claude" });
    assert.equal(await over(one, other, async (a, b) => (await said(a.run("x")), said(b.run("x")))), "taken");
  });

  it("is asked again once it resets; without a time, in five minutes", async (t) => {
    for (const [quota, until] of [
      [{ resetsAt: RESETS }, RESETS],
      [{}, NOW + 300_000],
    ] as const) {
      t.mock.timers.reset();
      const clock = at(t);
      const one = limited({}, quota);
      const sent = await over(one, new FakeAgent(), async (a) => {
        const counts: number[] = [];
        for (const now of [NOW, NOW, until - 1, until]) {
          clock(now);
          await said(a.run("x"));
          counts.push(one.prompts.length);
        }
        return counts;
      });
      assert.deepEqual(sent, [1, 1, 1, 2]);
    }
  });

  it("a rate limit that passes holds nobody back", async () => {
    const one = new FakeAgent({
      reply: () => {
        throw new HarnessThrottled("429");
      },
    });
    await over(one, new FakeAgent(), async (a) => {
      for (let turn = 0; turn < 3; turn++) await said(a.run("x"));
    });
    assert.equal(one.prompts.length, 3);
  });

  it("marks an error without changing what it is as JSON", () => {
    const error = quotaSpent(new HarnessThrottled(TOLD), { resetsAt: RESETS });
    assert.deepEqual(spentQuota(error), { resetsAt: RESETS });
    assert.deepEqual(error.toJSON(), new HarnessThrottled(TOLD).toJSON());
    assert.equal(spentQuota(FlowException.from(error.toJSON())), undefined);
  });
});
