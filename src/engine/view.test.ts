import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, env, flow, localEnv, outworlder } from "hmz/flows";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";

describe("a view grants what its role declared, whatever could be done underneath", () => {
  const outcome = async (work: () => unknown): Promise<string> => {
    try {
      await work();
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`;
    }
    return "granted";
  };

  it("for agents", async () => {
    const plain = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      const all = a as unknown as Record<string, (...given: unknown[]) => unknown>;
      const session = await a.spawn();
      return [
        await outcome(() => all["steer"]?.("x", { session })),
        await outcome(() => all["onPermissionRequest"]?.(null)),
        await outcome(() => all["onSubagentStart"]?.(null)),
        await outcome(() => all["onSubagentStop"]?.(null)),
        await outcome(() => all["onAskUser"]?.(null)),
        await outcome(() => a.onStop(null)),
      ];
    });
    assert.deepEqual(await runFake(plain, "", { agents: { a: new FakeAgent({ harness: "claude" }) } }), [
      "CapabilityNotGranted: a: steer needs steering on the role",
      "CapabilityNotGranted: a: a permission_request hook needs permission_request on the role",
      "CapabilityNotGranted: a: a subagent_start hook needs subagent_start on the role",
      "CapabilityNotGranted: a: a subagent_stop hook needs subagent_stop on the role",
      "CapabilityNotGranted: a: a ask_user hook needs ask_user on the role",
      "granted",
    ]);
  });

  it("for environments", async () => {
    const machine = new FakeEnv({ files: { a: "" } });
    const plain = flow(
      { envs: { none: env(), shell: env({ needs: ["shell"] }), files: localEnv({ needs: ["files"] }) } },
      async (_task, { envs }) => {
        const all = envs as unknown as Record<string, Record<string, (...given: unknown[]) => unknown>>;
        const rows: [string, string, unknown][] = [
          ["none", "exec", ["true"]],
          ["none", "read", "a"],
          ["none", "readText", "a"],
          ["none", "write", "a"],
          ["none", "deriveWorktree", {}],
          ["none", "deriveTempClone", "x"],
          ["none", "destroyTempClone", "x"],
          ["none", "deriveScratch", "x"],
          ["none", "destroyScratch", "x"],
          ["none", "snapshot", "x"],
          ["none", "rewind", "x"],
          ["none", "snapshots", undefined],
          ["shell", "exec", ["true"]],
          ["shell", "exec", "true"],
          ["files", "exec", ["true"]],
          ["files", "write", "a"],
        ];
        const said = [];
        for (const [role, method, argument] of rows) {
          said.push(await outcome(() => all[role]?.[method]?.(argument, "data")));
        }
        return said;
      },
    );
    const lacks = (role: string, what: string, need: string) =>
      `CapabilityNotGranted: ${role}: ${what} needs ${need} on the role`;
    assert.deepEqual(await runFake(plain, "", { envs: { none: machine, shell: machine } }), [
      lacks("none", "exec", "shell"),
      lacks("none", "read", "files"),
      lacks("none", "read", "files"),
      lacks("none", "write", "files"),
      lacks("none", "deriveWorktree", "worktree"),
      lacks("none", "deriveTempClone", "temp_clone"),
      lacks("none", "destroyTempClone", "temp_clone"),
      lacks("none", "deriveScratch", "scratch"),
      lacks("none", "destroyScratch", "scratch"),
      lacks("none", "snapshot", "git"),
      lacks("none", "rewind", "git"),
      lacks("none", "snapshots", "git"),
      "granted",
      lacks("shell", "a script exec", "bash"),
      lacks("files", "exec", "shell"),
      "granted",
    ]);
    assert.deepEqual(machine.commands, [["true"]]);
  });

  it("of an environment that is derived, the same", async () => {
    const derives = flow({ envs: { e: env({ needs: ["files"] }) } }, async (_task, { envs: { e } }) => {
      const sub = await e.deriveSubdir("a/b");
      await sub.write("c.txt", "text");
      const wrong = [];
      for (const path of ["/etc", "..", "a/../..", "", "../x"])
        wrong.push((await outcome(() => e.deriveSubdir(path))).split(":")[0]);
      return [sub.role, sub.workdir, sub.backend, await e.readText("a/b/c.txt"), "exec" in sub, wrong];
    });
    const [role, workdir, backend, text, , wrong] = (await runFake(derives)) as unknown[];
    assert.deepEqual([role, workdir, backend, text], ["e", "/work/a/b", "local", "text"]);
    assert.deepEqual(wrong, ["RangeError", "RangeError", "RangeError", "RangeError", "RangeError"]);
  });
});

describe("a view leaks nothing", () => {
  it("of the driver, the machine, the call or the run behind it", async () => {
    const driver = new FakeAgent();
    const machine = new FakeEnv();
    const local = new FakeEnv({ workdir: "/here" });
    const looks = flow(
      { agents: { a: agent(), human: outworlder() }, envs: { e: env(), here: localEnv() }, resumable: true },
      async (_task, given) => {
        const session = await given.agents.a.spawn();
        await given.agents.a.run("x", { session });
        // The flow itself is the module's own, and so is zod, whose lazy getters do not bear being looked at.
        return reachable({ ...given, session, other: await given.agents.human.spawn() }, [given.ctx.flow]);
      },
    );
    const found = await runFake(looks, "", { agents: { a: driver }, envs: { e: machine }, local });
    const secret = new Set<unknown>([driver, machine, local, ...driver.sessions]);
    for (const { path, value } of found) {
      assert.ok(!secret.has(value), `${path} is a driver's own object`);
      const made = (value as { constructor?: { name?: unknown } }).constructor?.name;
      assert.ok(
        !["Call", "Run", "Scope", "SessionRecord", "Turn", "Ledger", "FakeAgent", "FakeEnv", "FakeSession"].includes(
          String(made),
        ),
        `${path} is a ${String(made)}`,
      );
    }
    assert.ok(found.length > 20);
  });

  it("and cannot be changed", async () => {
    const changes = flow(
      { agents: { a: agent() }, envs: { e: env() } },
      async (_task, { agents: { a }, envs: { e }, ctx }) => {
        for (const view of [a, e, ctx, await a.spawn()]) {
          assert.throws(() => Object.assign(view, { extra: 1 }), TypeError);
          assert.throws(() => Object.assign(view, { role: "other" }), TypeError);
          assert.throws(() => Object.setPrototypeOf(view, {}), TypeError);
        }
      },
    );
    await runFake(changes);
  });
});

interface Found {
  readonly path: string;
  readonly value: object;
}

/** Every object that is reached by properties, symbols, getters and prototypes, but not by calling anything. */
function reachable(start: object, but: readonly object[]): Found[] {
  const seen = new Set<unknown>([...but, Object.prototype, Function.prototype, Array.prototype, globalThis]);
  const found: Found[] = [];
  const queue: Found[] = [{ path: "given", value: start }];
  for (let next = queue.shift(); next && found.length < 5_000; next = queue.shift()) {
    const { path, value } = next;
    if (seen.has(value)) continue;
    seen.add(value);
    found.push(next);
    const visit = (key: string, part: unknown): void => {
      if ((typeof part === "object" && part !== null) || typeof part === "function") {
        queue.push({ path: `${path}.${key}`, value: part });
      }
    };
    visit("[[prototype]]", Object.getPrototypeOf(value));
    for (
      let owner: object | null = value;
      owner && owner !== Object.prototype;
      owner = Object.getPrototypeOf(owner) as object
    ) {
      for (const key of Reflect.ownKeys(owner)) {
        const property = Object.getOwnPropertyDescriptor(owner, key);
        try {
          visit(String(key), property?.get ? (property.get.call(value) as unknown) : property?.value);
        } catch {
          // A getter that refuses its receiver leaks nothing.
        }
      }
    }
  }
  return found;
}
