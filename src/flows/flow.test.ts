import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, flow, FlowRefError, FlowRuntimeError, load, localEnv, tool, z } from "hmz/flows";
import { asking, type Caller, loaderOutsideAnyRun, loadsOutsideAnyRun } from "./ambient.ts";
import { definition } from "./definition.ts";

describe("a flow", () => {
  const declaration = {
    name: "twice",
    description: "Two passes.",
    agents: { builder: agent() },
    envs: { workspace: localEnv() },
    params: z.object({ rounds: z.number().default(2) }),
    resumable: true,
  } as const;
  const twice = flow(declaration, async () => "done");

  it("says what it declares", () => {
    assert.equal(twice.name, "twice");
    assert.equal(twice.ref, "flow.test:twice");
    assert.equal(twice.description, "Two passes.");
    assert.equal(twice.hidden, false);
    assert.equal(twice.resumable, true);
    assert.equal(twice.expectedAgents, declaration.agents);
    assert.equal(twice.expectedEnvs, declaration.envs);
    assert.deepEqual(twice.expectedParams.parse({}), { rounds: 2 });
  });

  it("knows the file that defined it", () => {
    assert.match(definition(twice).definedIn, /flow\.test\.ts$/);
  });

  it("cannot be changed by who holds it", () => {
    for (const key of ["name", "hidden", "resumable", "expectedParams"]) {
      assert.throws(() => {
        (twice as unknown as Record<string, unknown>)[key] = "other";
      }, TypeError);
    }
  });

  it("called outside any run is refused, as a rejection", async () => {
    const called = twice("go", { agents: { builder: undefined as never } });
    await assert.rejects(called, (error) => {
      assert.ok(error instanceof FlowRuntimeError);
      assert.equal(error.message, "flow.test:twice: a flow is called from inside a run; start one with new Hmz().run");
      return true;
    });
  });

  it("called inside a run goes to the call that asks", async () => {
    const calls: unknown[] = [];
    const caller = {
      call: async (...given: readonly unknown[]) => {
        calls.push(given);
        return "answered";
      },
      load: async () => twice,
      newOutworlder: () => undefined,
    } as unknown as Caller;
    const bare = flow({ name: "bare" }, async () => undefined);
    assert.equal(await asking.run(caller, () => bare("go")), "answered");
    assert.deepEqual(calls, [[bare, "go", {}]]);
    assert.equal(await asking.run(caller, () => load("any")), twice);
  });
});

describe("load outside any run", () => {
  it("refuses a ref that is relative to the flow asking", async () => {
    await assert.rejects(load(":review"), (error) => {
      assert.ok(error instanceof FlowRefError);
      assert.equal(error.message, "':review' is relative to the flow asking, and no flow is asking");
      return true;
    });
  });

  it("asks whoever can find flows, and is refused where nobody can", async (t) => {
    const before = loaderOutsideAnyRun();
    t.after(() => loadsOutsideAnyRun(before as never));
    loadsOutsideAnyRun(undefined as never);
    await assert.rejects(load("plan"), {
      name: "FlowRuntimeError",
      message: "'plan': a flow is loaded inside a run, or after importing hmz",
    });
    const plan = flow({ name: "plan" }, async () => undefined);
    loadsOutsideAnyRun(async (ref) => {
      assert.equal(ref, "plan");
      return plan;
    });
    assert.equal(await load("plan"), plan);
  });
});

describe("a tool", () => {
  it("is frozen", () => {
    const made = tool({ name: "a", about: "b", call: () => 1 });
    assert.ok(Object.isFrozen(made));
  });
});
