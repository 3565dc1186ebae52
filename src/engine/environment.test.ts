import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agent, env, flow, localEnv } from "hmz/flows";
import { FakeAgent, FakeEnv, runFake } from "hmz/fakes";

async function refusal(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return "nothing was refused";
}

describe("an environment", () => {
  const rows: readonly (readonly [method: string, given: readonly unknown[], said: string])[] = [
    ["exec", [5], "TypeError: exec takes one command: an argv, or a script"],
    ["exec", [[]], "TypeError: exec takes one command: an argv, or a script"],
    ["exec", [["echo", 1]], "TypeError: exec takes one command: an argv, or a script"],
    ["exec", [undefined], "TypeError: exec takes one command: an argv, or a script"],
    ["exec", [["true"], { timeout: -1 }], "RangeError: exec: timeout=-1 is not a number of milliseconds"],
    ["exec", [["true"], { timeout: "1s" }], "RangeError: exec: timeout=1s is not a number of milliseconds"],
    ["exec", [["true"], { timeout: 0 }], "nothing was refused"],
    ["exec", ["true"], "nothing was refused"],
    ["read", [""], "TypeError: a path is a string that is not empty"],
    ["read", [7], "TypeError: a path is a string that is not empty"],
    ["write", ["a", 7], "TypeError: write takes a string, or bytes"],
    ["write", ["", "x"], "TypeError: a path is a string that is not empty"],
    ...["/etc", "..", "a/../..", "../x", "", 7].map(
      (path) =>
        [
          "deriveSubdir",
          [path],
          `RangeError: '${path}' is not a directory under the workdir: a relative path that does not climb out`,
        ] as const,
    ),
  ];
  for (const [method, given, expected] of rows) {
    it(`${method}(${given.map((value) => JSON.stringify(value)).join(", ")}): ${expected}`, async () => {
      const asks = flow({ envs: { e: env({ needs: ["bash", "files"] }) } }, async (_task, { envs }) => {
        const all = envs.e as unknown as Record<string, (...given: readonly unknown[]) => unknown>;
        return refusal(() => all[method]?.(...given));
      });
      assert.equal(await runFake(asks), expected);
    });
  }

  it("fails as its machine does: a missing file, a program past its timeout, a directory that cannot be made", async () => {
    const fails = flow({ envs: { e: env({ needs: ["bash", "files"] }) } }, async (_task, { envs: { e } }) => {
      const said = [
        await refusal(() => e.read("no/such")),
        await refusal(() => e.readText("no/such")),
        await refusal(() => e.exec(["sleep", "60"], { timeout: 1 })),
        await refusal(() => e.exec("sleep 60", { timeout: 1 })),
        await refusal(() => e.deriveSubdir("file/sub")),
        await refusal(() => e.write("file/sub", "x")),
        await refusal(() => e.read(".")),
      ];
      return said.map((line) => line.split(":")[0]);
    });
    // A script is answered by nothing that a fake machine knows: one that never ends stands for it.
    const machine = new FakeEnv({
      files: { file: "" },
      run: (command) => (typeof command === "string" ? new Promise(() => {}) : undefined),
    });
    assert.deepEqual(await runFake(fails, "", { envs: { e: machine } }), [
      "EnvFileNotFound",
      "EnvFileNotFound",
      "EnvCommandTimeout",
      "EnvCommandTimeout",
      "EnvError",
      "EnvError",
      "EnvError",
    ]);
  });

  it("says where it is", async () => {
    const says = flow({ envs: { far: env(), here: localEnv() } }, async (_task, { envs: { far, here } }) =>
      [far, here, await far.deriveSubdir("a/./b")].map(({ role, backend, provider, workdir, available }) =>
        [role, backend, provider, workdir, available].join(),
      ),
    );
    const far = new FakeEnv({ backend: "ssh", provider: "box", workdir: "/srv" });
    assert.deepEqual(await runFake(says, "", { envs: { far } }), [
      "far,ssh,box,/srv,true",
      "here,local,,/here,true",
      "far,ssh,box,/srv/a/b,true",
    ]);
  });

  it("is nothing to a model that is called directly", async () => {
    const works = flow({ agents: { a: agent() }, envs: { here: localEnv() } }, async (_task, { agents, envs }) => [
      await refusal(() => agents.a.run("x", { env: envs.here })),
      await agents.a.run("x"),
    ]);
    assert.deepEqual(await runFake(works, "", { agents: { a: new FakeAgent({ harness: "litellm" }) } }), [
      "UnsupportedOperation: a: litellm is a model called directly, with no tools and no filesystem, so its turns work " +
        "in no environment; run it without env",
      "ok",
    ]);
  });
});
