/** Many calls at once, alike and deep: each is picked up as itself, and what was finished is not done again. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { FakeAgent, runFake } from "../fakes/index.ts";
import { agent, type AgentRole, flow, type Flow, z } from "../flows/index.ts";
import { readJournal } from "../home/journal.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

const DEEP = 10;
const WIDE = 100;

class Crash extends Error {}

interface Life {
  /** How many calls may still finish before the run crashes. */
  left: number;
  readonly worked: string[];
}

/** Chains of calls, as many as wide, each as deep; every call works once, in its own state. */
function tree(life: Life): Flow {
  const params = z.object({ depth: z.number() });
  const link: Flow<{ a: AgentRole<never> }, Record<never, never>, typeof params, number> = flow(
    { name: "link", agents: { a: agent() }, params, resumable: true },
    async (chain, { agents: { a }, params: { depth }, ctx }) => {
      const below: number = depth < DEEP ? await link(chain, { agents: { a }, params: { depth: depth + 1 } }) : 0;
      const kept = ctx.state.get<number>("worked");
      if (kept !== undefined) return kept;
      await a.run(`${chain} at ${depth}`);
      if (life.left-- <= 0) throw new Crash("the run is gone");
      life.worked.push(`${chain} at ${depth}`);
      ctx.state.set("worked", below + 1);
      return below + 1;
    },
  );
  return flow({ name: "top", agents: { a: agent() }, resumable: true }, async (_task, { agents: { a }, ctx }) => {
    const all = await Promise.all(
      // Every second one is like its neighbour: they are told apart by their order alone.
      Array.from({ length: WIDE }, (_, chain) => link(`chain ${chain >> 1}`, { agents: { a }, params: { depth: 1 } })),
    );
    ctx.state.set("all", all);
    return all;
  }) as unknown as Flow;
}

test(`${DEEP} deep and ${WIDE} wide, stopped four times and picked up each time`, async () => {
  const journal = join(temporaryDirectory("tree"), "resume.jsonl");
  const worked: string[] = [];
  for (const left of [150, 300, 0, 400]) {
    const life: Life = { left, worked: [] };
    const options = { journal, resume: worked.length > 0, agents: { a: new FakeAgent() } };
    await assert.rejects(runFake(tree(life), "", options), Crash);
    worked.push(...life.worked);
  }
  const life: Life = { left: Infinity, worked: [] };
  const result = await runFake(tree(life), "", { journal, resume: true, agents: { a: new FakeAgent() } });
  worked.push(...life.worked);
  assert.deepEqual(
    result,
    Array.from({ length: WIDE }, () => DEEP),
  );
  const times = new Map<string, number>();
  for (const each of worked) times.set(each, (times.get(each) ?? 0) + 1);
  assert.equal(times.size, (WIDE / 2) * DEEP);
  assert.deepEqual([...new Set(times.values())], [2]);
  const { records, bad } = readJournal(journal);
  assert.deepEqual(bad, []);
  const calls = records.filter((record) => (record as { t: string }).t === "call");
  assert.equal(calls.length, 1 + WIDE * DEEP);
});
