import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { BudgetExceeded, type Flow, HarnessDropped, HARNESSES, OutputTokensExceeded } from "hmz/flows";
import { FakeAgent, type FakeAnswer, FakeOutworlder, runFake } from "hmz/fakes";
import { chat } from "../../../src/builtin/chat.ts";
import { continue_loop } from "../../../src/builtin/continue_loop.ts";
import { flame_chase } from "../../../src/builtin/flame_chase.ts";
import { goal } from "../../../src/builtin/goal.ts";
import { ralph_loop } from "../../../src/builtin/ralph_loop.ts";
import { rlar } from "../../../src/builtin/rlar.ts";
import { stateful_ralph } from "../../../src/builtin/stateful_ralph.ts";

const TASK = "write the tests";
const FLOWS = { chat, continue_loop, flame_chase, goal, ralph_loop, rlar, stateful_ralph };
const budget = { outputTokens: 4 };

const fails = (times: number, reply: FakeAnswer = "done") => {
  let taken = 0;
  return (): FakeAnswer => {
    taken += 1;
    if (taken > times) throw new HarnessDropped("the line broke");
    return reply;
  };
};

test("every flow has the roles that the reference lists", () => {
  const roles = (flow: object): object => {
    const { expectedAgents, expectedEnvs, resumable } = flow as Flow;
    return {
      agents: Object.entries(expectedAgents).map(([name, role]) =>
        role.kind === "agent" ? name : `${name}: ${role.kind}`,
      ),
      envs: Object.entries(expectedEnvs).map(([name, role]) => [name, role.kind === "env" && role.local]),
      resumable,
    };
  };
  const envs = [["workspace", true]];
  assert.deepEqual(roles(chat), { agents: ["assistant", "human: outworlder"], envs, resumable: false });
  assert.deepEqual(roles(ralph_loop), { agents: ["agent"], envs, resumable: false });
  assert.deepEqual(roles(stateful_ralph), { agents: ["agent"], envs, resumable: true });
  assert.deepEqual(roles(continue_loop), { agents: ["agent"], envs, resumable: false });
  assert.deepEqual(roles(goal), { agents: ["worker"], envs, resumable: false });
  assert.deepEqual(roles(flame_chase), { agents: ["first_chaser", "second_chaser"], envs, resumable: true });
  assert.deepEqual(roles(rlar), { agents: ["actor", "reviewer"], envs, resumable: true });
  assert.ok(!Object.values(FLOWS).some((flow) => flow.hidden));
});

test("every file is one flow of its own name, imports hmz/flows alone, and fits a page", () => {
  const directory = new URL("../../../src/builtin/", import.meta.url);
  const files = readdirSync(directory);
  assert.deepEqual(
    files.toSorted(),
    Object.keys(FLOWS).map((name) => `${name}.ts`),
  );
  for (const file of files) {
    const source = readFileSync(new URL(file, directory), "utf8");
    const imports = [...source.matchAll(/from "([^"]*)"/g)].map(([, from]) => from);
    assert.deepEqual(imports, ["hmz/flows"], file);
    assert.match(source, /^\/\*\* [^\n]+\. \*\/\n/, file);
    assert.ok(source.split("\n").length <= 60, file);
    assert.doesNotMatch(source, /console\.|process\.|setTimeout|budget:/, file);
  }
});

test("chat takes one turn per line of the person, in one session", async () => {
  const assistant = new FakeAgent({ reply: ["first", "second", "third"] });
  const human = new FakeOutworlder({ reply: ["go on", "and more", ""] });
  assert.equal(await runFake(chat, TASK, { agents: { assistant }, outworlder: human }), "third");
  assert.deepEqual(assistant.prompts, [TASK, "go on", "and more"]);
  assert.equal(assistant.sessions.length, 1);
  assert.deepEqual(human.asked, ["first", "second", "third"]);
});

test("chat with nobody there takes the task as its one turn", async () => {
  const assistant = new FakeAgent({ reply: "the answer" });
  assert.equal(await runFake(chat, TASK, { agents: { assistant } }), "the answer");
  assert.deepEqual(assistant.prompts, [TASK]);
});

test("chat ends with the first turn's failure, and reports a later one and goes on", async () => {
  await assert.rejects(
    runFake(chat, TASK, {
      agents: { assistant: new FakeAgent({ reply: fails(0) }) },
      outworlder: new FakeOutworlder(),
    }),
    HarnessDropped,
  );
  let turn = 0;
  const assistant = new FakeAgent({
    reply: () => {
      turn += 1;
      if (turn === 2) throw new HarnessDropped("the line broke");
      return `answer ${turn}`;
    },
  });
  const human = new FakeOutworlder({ reply: ["one", "two", ""] });
  assert.equal(await runFake(chat, TASK, { agents: { assistant }, outworlder: human }), "answer 3");
  assert.deepEqual(human.asked, ["answer 1", "The turn failed: the line broke", "answer 3"]);
});

test("chat ends where its budget does", async () => {
  const human = new FakeOutworlder({ reply: () => "more" });
  await assert.rejects(runFake(chat, TASK, { outworlder: human, budget }), OutputTokensExceeded);
});

test("ralph_loop gives the task to a fresh session each time, until the budget is spent", async () => {
  const agent = new FakeAgent();
  await assert.rejects(runFake(ralph_loop, TASK, { agents: { agent }, budget }), BudgetExceeded);
  assert.deepEqual(agent.prompts, [TASK, TASK, TASK, TASK]);
  assert.equal(agent.sessions.length, 4);
  assert.equal(agent.peak, 1);
  assert.equal(agent.live, 0);
});

test("stateful_ralph gives the task to one session each time", async () => {
  const agent = new FakeAgent();
  await assert.rejects(runFake(stateful_ralph, TASK, { agents: { agent }, budget }), BudgetExceeded);
  assert.deepEqual(agent.prompts, [TASK, TASK, TASK, TASK]);
  assert.equal(agent.sessions.length, 1);
});

test("continue_loop gives the task once, and then says to continue", async () => {
  const agent = new FakeAgent();
  await assert.rejects(runFake(continue_loop, TASK, { agents: { agent }, budget }), BudgetExceeded);
  assert.deepEqual(agent.prompts, [TASK, "Continue.", "Continue.", "Continue."]);
  assert.equal(agent.sessions.length, 1);
});

test("goal hands the task to the harness's own goal", async () => {
  const worker = new FakeAgent({ reply: "met" });
  assert.equal(await runFake(goal, TASK, { agents: { worker }, budget }), "met");
  const requests = worker.sessions.flatMap((session) => session.requests);
  assert.deepEqual(
    requests.map(({ command, prompt }) => [command, prompt]),
    [["goal", TASK]],
  );
});

test("goal is refused for a harness without one", async () => {
  const without = Object.entries(HARNESSES).find(([, { needs }]) => !needs.some((need) => need === "goal"));
  const worker = new FakeAgent({ harness: without?.[0] as keyof typeof HARNESSES });
  await assert.rejects(runFake(goal, TASK, { agents: { worker }, budget }), /needs goal/);
  assert.deepEqual(worker.prompts, []);
});

test("flame_chase takes turns, beginning with the first", async () => {
  const order: string[] = [];
  const chaser = (name: string): FakeAgent => new FakeAgent({ reply: () => void order.push(name) });
  const agents = { first_chaser: chaser("first"), second_chaser: chaser("second") };
  await assert.rejects(runFake(flame_chase, TASK, { agents, budget }), BudgetExceeded);
  assert.deepEqual(order, ["first", "second", "first", "second"]);
  for (const { prompts } of Object.values(agents)) assert.ok(prompts.every((prompt) => prompt.startsWith(TASK)));
});

test("rlar hands the reviewer's notes to the actor until the reviewer says done", async () => {
  const actor = new FakeAgent({ reply: ["one", "two", "three"] });
  const reviewer = new FakeAgent({
    reply: [
      { done: false, notes: "the edges" },
      { done: false, notes: "the names" },
      { done: true, notes: "" },
    ],
  });
  assert.equal(await runFake(rlar, TASK, { agents: { actor, reviewer } }), "three");
  const after = (notes: string): string => `${TASK}\n\nThe last review of the work so far says:\n\n${notes}`;
  assert.deepEqual(actor.prompts, [TASK, after("the edges"), after("the names")]);
  assert.equal(reviewer.prompts.length, 3);
  assert.equal(actor.sessions.length, 3);
});

test("rlar stops where its budget does", async () => {
  const reviewer = new FakeAgent({ reply: () => ({ done: false, notes: "more" }) });
  await assert.rejects(runFake(rlar, TASK, { agents: { reviewer }, budget }), BudgetExceeded);
});

for (const [name, flow] of Object.entries(FLOWS)) {
  if (name === "chat" || name === "goal") continue;
  test(`${name} ends with the failure of a turn`, async () => {
    const agents = Object.fromEntries(
      Object.keys((flow as unknown as Flow).expectedAgents).map((role) => [
        role,
        new FakeAgent({ reply: fails(1, { done: false, notes: "more" }) }),
      ]),
    );
    await assert.rejects(runFake(flow as unknown as Flow, TASK, { agents }), HarnessDropped);
  });
}
