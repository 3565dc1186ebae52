import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { FakeAgent, FakeEnv, FakeOutworlder, runFake } from "../fakes/index.ts";
import { FlowDefinitionError } from "../flows/errors.ts";
import { type AnyFlow, flow } from "../flows/flow.ts";
import { agent, optional } from "../flows/role.ts";
import { put } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import type { SkillResolver } from "./ports.ts";
import { type EngineRun, startRun } from "./run.ts";

const SKILL = "---\nname: x\n---\n";

/** A run of a flow whose skills a test resolves. */
function started(flow: AnyFlow, fake: FakeAgent, skills: SkillResolver, kinds: string[] = []): EngineRun {
  const env = new FakeEnv();
  return startRun({
    flow,
    task: "",
    agents: { a: fake },
    envs: {},
    workspace: { machine: env, workdir: env.workdir },
    outworlder: new FakeOutworlder({ away: true }),
    params: {},
    budget: { cost: 1 },
    prices: { cost: () => undefined },
    recorder: { record: ({ kind }) => void kinds.push(kind) },
    load: () => Promise.reject(new Error("nothing is loaded")),
    skills,
    keep: () => {
      throw new Error("nothing here is kept");
    },
  });
}

const named = (...names: readonly string[]) => names.map((name) => ({ name, directory: `/${name}`, entries: [name] }));

describe("the skills of a role", () => {
  const callee = flow({ name: "callee", agents: { b: agent({ skills: ["two"] }) } }, async (_task, { agents: { b } }) =>
    b.run("in"),
  );
  const top = flow(
    { name: "top", agents: { a: agent({ skills: ["one"] }), none: optional(agent({ skills: ["none"] })) } },
    async (_task, { agents: { a } }) => {
      await a.run("out");
      await callee("", { agents: { b: a } });
      await Promise.all([callee("", { agents: { b: a } }), callee("", { agents: { b: a } })]);
    },
  );

  it("are resolved once a run for each role that is filled, and carried by its sessions", async () => {
    const fake = new FakeAgent();
    const asked: string[] = [];
    const resolve: SkillResolver = async ({ identity }, role) => {
      asked.push(`${identity.name}.${role}`);
      return role === "a" ? named("one") : named("two", "three");
    };
    await started(top, fake, resolve).result;
    assert.deepEqual(asked, ["top.a", "callee.b"]);
    assert.deepEqual(
      fake.sessions.map(({ skills }) => skills.join()),
      ["one", "two,three", "two,three", "two,three"],
    );
  });

  it("refuse the call before anything of its flow runs, and are asked for anew by the next", async () => {
    const kinds: string[] = [];
    let refusals = 0;
    const calls = flow({ name: "calls", agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      await assert.rejects(callee("", { agents: { b: a } }), { name: "FlowDefinitionError", message: "no two" });
      return callee("", { agents: { b: a } });
    });
    const fake = new FakeAgent();
    const run = started(
      calls,
      fake,
      async () => {
        if (refusals++ === 0) throw new FlowDefinitionError("no two");
        return named("two");
      },
      kinds,
    );
    assert.equal(await run.result, "ok");
    assert.deepEqual([kinds.filter((kind) => kind === "called").length, fake.sessions.length], [1, 1]);
  });

  it("do not hold a run that is stopped while they are fetched", async () => {
    const asked = Promise.withResolvers<void>();
    const run = started(top, new FakeAgent(), () => {
      asked.resolve();
      return new Promise(() => {});
    });
    await asked.promise;
    run.stop();
    await assert.rejects(run.result, { name: "FlowCancelled", message: /the run was stopped$/ });
    assert.deepEqual(run.running(), []);
  });

  it("are narrowed by name, and by what the role wrote to be given them", async () => {
    const fake = new FakeAgent();
    const resolve: SkillResolver = async () => [
      { name: "lint", directory: "/lint", entries: ["url"] },
      { name: "test", directory: "/test", entries: ["url", "test"] },
      { name: "ship", directory: "/ship", entries: ["ship"] },
    ];
    const narrows = flow({ agents: { a: agent({ skills: ["url", "test", "ship"] }) } }, async (_task, { agents }) => {
      for (const skills of [["url"], ["ship", "test"], []]) await agents.a.derive({ skills }).run("x");
      const lint = agents.a.derive({ skills: ["url"] }).derive({ skills: ["lint"] });
      await lint.derive({}).run("x");
      assert.throws(() => lint.derive({ skills: ["ship"] }), { name: "CapabilityNotGranted" });
    });
    await started(narrows, fake, resolve).result;
    assert.deepEqual(
      fake.sessions.map(({ skills }) => skills.join()),
      ["lint,test", "test,ship", "", "lint"],
    );
  });
});

describe("the skills of a role over fakes", () => {
  const source = (skills: readonly string[]): string =>
    `import { agent, flow } from "hmz/flows";
    export const f = flow({ agents: { a: agent({ skills: ${JSON.stringify(skills)} }) } }, async (task, { agents }) => agents.a.run(task));`;

  it("are those beside the flow, and any that a URL names, nothing of it fetched", async () => {
    const directory = temporaryDirectory("flow");
    const skills = ["review", "https://host.test/o/skills#lint", "https://host.test/o/testing.git"];
    put(directory, { "index.ts": source(skills), "skills/review/SKILL.md": SKILL });
    const fake = new FakeAgent();
    await runFake(directory, "x", { agents: { a: fake } });
    assert.deepEqual(fake.sessions[0]?.skills, ["review", "lint", "testing"]);
  });

  it("are refused where the flow has none of the name", async () => {
    const directory = temporaryDirectory("flow");
    put(directory, { "index.ts": source(["review"]) });
    const fake = new FakeAgent();
    await assert.rejects(runFake(directory, "x", { agents: { a: fake } }), {
      name: "FlowDefinitionError",
      message: /: 'a' names the skill 'review', and \S+\/skills has none of it$/,
    });
    await assert.rejects(runFake(join(directory, "index.ts"), "x"), { name: "FlowDefinitionError" });
    assert.equal(fake.sessions.length, 0);
    const inline = flow({ name: "inline", agents: { a: agent({ skills: ["x"] }) } }, async () => {});
    await assert.rejects(runFake(inline), {
      message: /inline: 'a' names the skill 'x', and a flow that is one file has none of it$/,
    });
  });
});
