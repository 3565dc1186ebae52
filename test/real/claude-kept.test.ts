import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { KeptConversation, SessionDriver, Spend } from "../../src/engine/ports.ts";
import { localPlace } from "../conformance/local-place.ts";
import { totalOf } from "../conformance/recording-host.ts";
import { scripted, type Step } from "../model-server/script.ts";
import { served, startBench, turn, type Bench } from "./claude.ts";

/** A place in the home that no shell would take without quotes. */
function kept(bench: Bench, session: SessionDriver, name = "kept"): KeptConversation {
  const at = join(bench.home, "an epic", `${name} für später`);
  mkdirSync(at, { recursive: true });
  session.keep?.(at);
  return { id: session.id, at };
}

/** Every file under a directory: its path, when it was written, what it holds. */
function filesIn(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((file) => `${file.slice(directory.length + 1)} ${statSync(file).mtimeMs} ${readFileSync(file, "latin1")}`)
    .toSorted();
}

/** The conversation that the last model call was given, without the harness's own remarks and its marks of a cache. */
function conversation({ server }: Bench): readonly string[] {
  const { conversation } = server.requests.at(-1) ?? assert.fail("no request");
  return conversation
    .filter(({ by, text }) => by !== "user" || text.includes("SCRIPT["))
    .map(({ by, text }) => `${by}: ${text.replace(/,"cache_control":\{[^}]*\}/, "")}`);
}

const LOOK: Step = {
  tool: "Agent",
  input: { description: "look", prompt: `x ${scripted([{ text: "found" }])}`, subagent_type: "general-purpose" },
};

describe("the real Claude Code: kept conversations", () => {
  test("carry on word for word from where they stood, at once, and nothing of the person's is touched", async () => {
    await using bench = await startBench();
    const session = bench.session();
    await turn(bench, session, [LOOK, { text: "one" }], { words: "first" });
    await turn(bench, session, [{ sh: "seq 1 40000" }, { text: "two" }], { words: "second" });
    const copy = kept(bench, session);
    const stood = [...conversation(bench), "assistant: two"];
    assert.deepEqual(
      readdirSync(copy.at, { recursive: true })
        .map(String)
        .map((name) => name.replace(copy.id, "ID").replace(/(agent-|tool-results\/)\w+/, "$1X"))
        .toSorted(),
      [
        "ID",
        "ID.jsonl",
        "ID/subagents",
        "ID/subagents/agent-X.jsonl",
        "ID/subagents/agent-X.meta.json",
        "ID/tool-results",
        "ID/tool-results/X.txt",
      ],
    );
    const before = filesIn(copy.at);
    await turn(bench, session, [{ text: "three" }], { words: "third" });
    await session.close();
    const projects = join(bench.home, "config", "projects");
    const home = filesIn(projects);

    const setup = { ...bench.setup, place: localPlace(join(bench.home, "elsewhere")) };
    const carried = bench.session({ opening: { carries: copy } });
    await turn(bench, carried, [{ text: "branch" }], { words: "fourth", setup });
    assert.deepEqual(conversation(bench), [...stood, `user: fourth ${scripted([{ text: "branch" }])}`]);
    await turn(bench, carried, [{ text: "leaf" }], { words: "fifth", setup });
    assert.deepEqual(conversation(bench).slice(stood.length), [
      `user: fourth ${scripted([{ text: "branch" }])}`,
      "assistant: branch",
      `user: fifth ${scripted([{ text: "leaf" }])}`,
    ]);
    const two = [bench.session({ opening: { carries: copy } }), bench.session({ opening: { carries: copy } })];
    await Promise.all(two.map((session) => turn(bench, session, [{ text: "at once" }])));
    await Promise.all([carried, ...two].map((session) => session.close()));

    assert.deepEqual(filesIn(copy.at), before);
    const own = [...new Set([carried, ...two].map(({ id }) => `/${id}.jsonl `))];
    assert.equal(own.length, 3);
    assert.deepEqual(
      filesIn(projects).filter((file) => !own.some((name) => file.includes(name))),
      home,
    );
  });

  test("carry on where the home holds nothing of them any more", async () => {
    await using bench = await startBench();
    const session = bench.session();
    await turn(bench, session, [{ text: "one" }]);
    const copy = kept(bench, session);
    await session.close();
    rmSync(join(bench.home, "config"), { recursive: true });
    const carried = bench.session({ opening: { carries: copy } });
    await turn(bench, carried, [{ text: "two" }]);
    assert.deepEqual(conversation(bench).slice(1, 2), ["assistant: one"]);
  });

  test("are kept after each of many turns with the last answer in them", async () => {
    await using bench = await startBench();
    const session = bench.session();
    for (let at = 0; at < 20; at++) {
      await turn(bench, session, [{ sh: "true" }, { text: `answer ${at}.` }]);
      const copy = kept(bench, session, `copy ${at}`);
      const lines = readFileSync(join(copy.at, `${copy.id}.jsonl`), "utf8").split("\n");
      assert.ok(lines.some((line) => line.includes('"role":"assistant"') && line.includes(`"answer ${at}."`)));
    }
  });

  test("pay what the model served from there on, over restarts, and so do those kept of them", async () => {
    await using bench = await startBench();
    const spends: Spend[] = [];
    const elsewhere = { ...bench.setup, place: localPlace(join(bench.home, "elsewhere")) };
    const take = async (taker: SessionDriver, text: string, setup = bench.setup): Promise<void> => {
      spends.push(...(await turn(bench, taker, [{ sh: "true" }, { text }], { setup })).host.spends);
    };
    const session = bench.session();
    await take(session, "one");
    // A new process: the one before has written down what the conversation had cost.
    await take(session, "two", elsewhere);
    const carried = bench.session({ opening: { carries: kept(bench, session) } });
    await take(carried, "three");
    await take(carried, "four", elsewhere);
    await take(session, "five");
    const again = bench.session({ opening: { carries: kept(bench, carried, "again") } });
    await take(again, "six");
    await take(again, "seven");
    assert.deepEqual(totalOf(spends), served(bench.server));
  });
});
