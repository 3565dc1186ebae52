/** What a program learns of flows: which calls go, and a copy of one to change. */

import assert from "node:assert/strict";
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { flow, FlowNotFound, FlowRefError } from "../flows/index.ts";
import { put } from "../../test/support/git.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { Hmz } from "./hmz.ts";
import { Refused } from "./refused.ts";

const SOURCE = `import { flow } from "hmz/flows"; export const loop = flow({}, async () => "looped");`;

describe("the calls that are going", () => {
  it("are those of every run of the process, oldest first, with what each is", async () => {
    const hmz = new Hmz({ workspace: temporaryDirectory("running"), home: temporaryDirectory("home") });
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const inner = flow({ name: "inner" }, () => held);
    const outer = flow({ name: "outer", resumable: true }, async () => inner("in", {}));
    const runs = ["one", "two"].map((task) => hmz.run(outer, task, { budget: { cost: 1 } }));
    for (const run of runs) await run.start();
    while (hmz.flows.running().length < 4) await new Promise((resolve) => setImmediate(resolve));
    const running = hmz.flows.running();
    const told = running.map(({ name, depth, parent, task, resumable, journaled }) => ({
      name,
      depth,
      parent,
      task,
      resumable,
      journaled,
    }));
    const top = { name: "outer", depth: 1, parent: undefined, resumable: true, journaled: 1 };
    const below = { name: "inner", depth: 2, parent: 0, task: "in", resumable: false, journaled: 2 };
    assert.deepEqual(
      told.toSorted((one, other) => `${one.depth} ${one.task}`.localeCompare(`${other.depth} ${other.task}`)),
      [{ ...top, task: "one" }, { ...top, task: "two" }, below, below],
    );
    assert.ok(running.every(({ since }, index) => since >= (running[index - 1]?.since ?? 0)));
    release();
    for (const run of runs) await run.wait();
    assert.deepEqual(hmz.flows.running(), []);
  });
});

describe("a copy of a flow", () => {
  it("is the whole of it, in the shape that it has, but for what says that it was installed", async () => {
    const root = temporaryDirectory("fork");
    put(root, {
      "elsewhere/loop/index.ts": SOURCE,
      "elsewhere/loop/skills/notes/SKILL.md": "---\nname: notes\n---\n",
      "elsewhere/loop/.installed.json": "{}",
      "elsewhere/loop/link": { link: "index.ts" },
      "elsewhere/single.ts": SOURCE.replace("loop", "single"),
    });
    const hmz = new Hmz({ workspace: root, home: join(root, "home") });
    const copy = await hmz.flows.fork("./elsewhere/loop");
    assert.equal(copy, join(root, ".hmz/flows/loop"));
    assert.equal(readFileSync(join(copy, "index.ts"), "utf8"), SOURCE);
    assert.ok(existsSync(join(copy, "skills/notes/SKILL.md")));
    assert.ok(lstatSync(join(copy, "link")).isSymbolicLink());
    assert.ok(!existsSync(join(copy, ".installed.json")));
    assert.equal(await hmz.run("@local/loop", "x", { budget: { cost: 1 } }).wait(), "looped");
    assert.equal(await hmz.flows.fork("./elsewhere/single"), join(root, ".hmz/flows/single.ts"));
    assert.equal(await hmz.flows.fork("./elsewhere/loop", "copies/mine"), join(root, "copies/mine"));
    const built = await hmz.flows.fork("ralph_loop");
    assert.ok(existsSync(built));
    assert.equal((await hmz.flows.load("@local/ralph_loop")).name, "ralph_loop");
  });

  it("is refused where a flow of its name is there, in either shape, and leaves nothing", async () => {
    const root = temporaryDirectory("fork");
    put(root, {
      "elsewhere/a/index.ts": SOURCE,
      "elsewhere/b/index.ts": SOURCE,
      ".hmz/flows/a/index.ts": SOURCE,
      ".hmz/flows/b.mjs": SOURCE,
      "elsewhere/c/index.ts": SOURCE,
      file: "",
    });
    const hmz = new Hmz({ workspace: root, home: join(root, "home") });
    for (const [name, into, said] of [
      ["./elsewhere/a", undefined, ".hmz/flows/a is there already: choose another name"],
      ["./elsewhere/b", undefined, ".hmz/flows/b.mjs is there already: choose another name"],
      ["./elsewhere/c", "elsewhere/b", "elsewhere/b is there already: choose another name"],
    ] as const) {
      await assert.rejects(hmz.flows.fork(name, into), (error: unknown) => {
        assert.ok(error instanceof Refused);
        assert.equal(error.message, said);
        return true;
      });
    }
    await assert.rejects(hmz.flows.fork("./elsewhere/c", "file/below"), Refused);
    await assert.rejects(hmz.flows.fork("nowhere"), FlowNotFound);
    await assert.rejects(hmz.flows.fork(":relative"), FlowRefError);
    assert.deepEqual(readdirSync(join(root, ".hmz/flows")).sort(), ["a", "b.mjs"]);
  });
});
