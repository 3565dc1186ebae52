import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";
import * as fc from "fast-check";
import { agent, type Budget, type EffectiveBudget, type FlowContext, flow } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import type { RunEvent } from "./events.ts";

// ── what is drawn: a tree of calls, each with turns and calls of its own ────────────────────────────────────────────

interface Turn {
  readonly turn: Role;
  /** How many rounds of the event loop its answer takes. */
  readonly rounds: number;
  readonly budget: Budget | undefined;
}

interface Node {
  readonly budget: Budget | undefined;
  readonly together: boolean;
  readonly steps: readonly (Turn | Node)[];
}

/** What one answer of each agent reports: whole numbers, so that every sum is exact. */
const PAID = {
  free: { cost: 0, outputTokens: 1, seconds: 1 },
  cheap: { cost: 1, outputTokens: 10, seconds: 0 },
  dear: { cost: 7, outputTokens: 3, seconds: 4 },
} as const;
type Role = keyof typeof PAID;
const ROLES = Object.keys(PAID) as Role[];

const graceful = fc.oneof(
  fc.boolean(),
  fc.record({ duration: fc.boolean(), cost: fc.boolean(), outputTokens: fc.boolean() }),
);
const limits = fc
  .record({
    cost: fc.option(fc.oneof(fc.integer({ min: 0, max: 25 }), fc.constant(Infinity)), { nil: undefined }),
    outputTokens: fc.option(fc.oneof(fc.integer({ min: 0, max: 60 }), fc.constant(Infinity)), { nil: undefined }),
    graceful: fc.option(graceful, { nil: undefined }),
  })
  .filter(({ cost, outputTokens }) => cost !== undefined || outputTokens !== undefined);
const mayLimit = fc.option(limits, { nil: undefined, freq: 2 });
const turns: fc.Arbitrary<Turn> = fc.record({
  turn: fc.constantFrom(...ROLES),
  rounds: fc.integer({ min: 0, max: 3 }),
  budget: fc.option(limits, { nil: undefined, freq: 1 }),
});

function nodes(depth: number): fc.Arbitrary<Node> {
  const step: fc.Arbitrary<Turn | Node> =
    depth === 0 ? turns : fc.oneof({ weight: 3, arbitrary: turns }, { weight: 2, arbitrary: nodes(depth - 1) });
  return fc.record({ budget: mayLimit, together: fc.boolean(), steps: fc.array(step, { minLength: 1, maxLength: 4 }) });
}

// ── the model: the log of what was spent, added up anew for each question ───────────────────────────────────────────

type Limit = "cost" | "outputTokens";
const LEAVES = { cost: "CostExceeded", outputTokens: "OutputTokensExceeded" } as const;

interface Entry {
  /** The turn's: its call's path and its own name. */
  readonly path: string;
  readonly cost: number;
  readonly outputTokens: number;
}

/** Paths are `/0/1/t2`: every prefix is a call above. */
class Model {
  readonly log: Entry[] = [];
  readonly lasted: { readonly path: string; readonly seconds: number }[] = [];
  readonly budgets = new Map<string, Budget>();

  spent(path: string, upTo = this.log.length): Record<Limit, number> {
    const under = this.log.slice(0, upTo).filter((entry) => isUnder(entry.path, path));
    return {
      cost: under.reduce((sum, { cost }) => sum + cost, 0),
      outputTokens: under.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
    };
  }

  /** How many entries had been logged when a limit of a path's own was reached; `undefined` where none is. */
  reachedAt(path: string, limit: Limit): number | undefined {
    const most = this.budgets.get(path)?.[limit];
    if (most === undefined) return undefined;
    for (let upTo = 0; upTo <= this.log.length; upTo++) if (this.spent(path, upTo)[limit] >= most) return upTo;
    return undefined;
  }

  /** The leaf that a turn asked for under a path is refused with: the nearest spent budget's first limit. */
  refusal(path: string): string | undefined {
    for (const above of chain(path)) {
      const cost = this.reachedAt(above, "cost") ?? Infinity;
      const tokens = this.reachedAt(above, "outputTokens") ?? Infinity;
      if (cost < Infinity || tokens < Infinity) return LEAVES[cost <= tokens ? "cost" : "outputTokens"];
    }
    return undefined;
  }

  /** The leaves of hard limits over a turn that are reached. */
  cuts(path: string): string[] {
    return chain(path).flatMap((above) =>
      (["cost", "outputTokens"] as const)
        .filter((limit) => this.isHard(above, limit) && this.reachedAt(above, limit) !== undefined)
        .map((limit) => LEAVES[limit]),
    );
  }

  isHard(path: string, limit: Limit | "duration"): boolean {
    const { graceful = true } = this.budgets.get(path) ?? {};
    return !(typeof graceful === "boolean" ? graceful : (graceful[limit] ?? true));
  }

  /** Least over the chain of limit, less what was spent there, and with what was spent here. */
  effective(path: string): EffectiveBudget {
    const may = (limit: Limit): number | undefined => {
      const setting = chain(path).filter((above) => this.budgets.get(above)?.[limit] !== undefined);
      if (setting.length === 0) return undefined;
      const left = setting.map(
        (above) => (this.budgets.get(above)?.[limit] ?? 0) - this.spent(above)[limit] + this.spent(path)[limit],
      );
      return Math.max(0, Math.min(...left));
    };
    const soft = (limit: Limit): boolean =>
      chain(path).every((above) => this.budgets.get(above)?.[limit] === undefined || !this.isHard(above, limit));
    const [cost, outputTokens] = [may("cost"), may("outputTokens")];
    const each = { duration: true, cost: soft("cost"), outputTokens: soft("outputTokens") };
    return {
      ...(cost === undefined ? {} : { cost }),
      ...(outputTokens === undefined ? {} : { outputTokens }),
      graceful: each.cost && each.outputTokens ? true : each,
    };
  }
}

function isUnder(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}/`);
}

/** The path and every one above it, nearest first. */
function chain(path: string): string[] {
  const parts = path.split("/").slice(1);
  return parts.map((_part, index) => `/${parts.slice(0, parts.length - index).join("/")}`);
}

// ── running a tree, each event held against the model ───────────────────────────────────────────────────────────────

interface Taken {
  readonly path: string;
  readonly role: Role;
  /** How many entries had been logged when it began. */
  readonly began: number;
  end: string | undefined;
}

async function check(tree: Node): Promise<void> {
  const model = new Model();
  const specs = new Map<string, Node>();
  const contexts = new Map<string, FlowContext>();
  const paths = new Map<number, string>([[0, "/0"]]);
  const taken = new Map<number, Taken>();
  const rounds = new Map<string, number>();

  const readAll = (): void => {
    for (const [path, ctx] of contexts) {
      const seconds = model.lasted.filter((turn) => isUnder(turn.path, path)).reduce((sum, t) => sum + t.seconds, 0);
      const { duration, ...spent } = ctx.usage;
      assert.deepEqual(spent, model.spent(path), `usage of ${path}`);
      assert.ok(Math.abs(duration - seconds * 1_000) < 0.01, `duration of ${path}: ${duration}`);
      assert.deepEqual(ctx.budget, model.effective(path), `budget of ${path}`);
    }
  };

  // What is thrown where an event is recorded may be taken for the turn's own failure: kept aside, and thrown at the end.
  let wrong: unknown;
  const held = (fn: () => void): void => {
    try {
      fn();
    } catch (error) {
      wrong ??= error;
    }
  };
  const turnOf = (turn: number): Taken => taken.get(turn) ?? assert.fail(`turn ${turn} did not begin`);
  const record = (event: RunEvent): void =>
    held(() => {
      if (event.kind === "called") {
        paths.set(event.call, event.task);
        return;
      }
      // A turn's time stands in the ledger before its end is told.
      if (event.kind === "ends") model.lasted.push({ path: turnOf(event.turn).path, seconds: event.seconds });
      readAll();
      switch (event.kind) {
        case "begins": {
          const path = event.text;
          assert.equal(path.slice(0, path.lastIndexOf("/")), paths.get(event.call));
          assert.equal(model.refusal(path.slice(0, path.lastIndexOf("/"))), undefined, `${path} began, though spent`);
          assert.deepEqual(model.cuts(path), [], `${path} began under a hard limit that is reached`);
          const role = event.agent as Role;
          taken.set(event.turn, { path, role, began: model.log.length, end: undefined });
          break;
        }
        case "text": {
          const { path, role } = turnOf(event.turn);
          assert.deepEqual(model.cuts(path), [], `${path} spends under a hard limit that was reached`);
          const { cost, outputTokens } = PAID[role];
          // It is spent as soon as this returns, before anything else runs.
          model.log.push({ path, cost, outputTokens });
          break;
        }
        case "result": {
          const turn = turnOf(event.turn);
          assert.deepEqual(model.cuts(turn.path), [], `${turn.path} came to an end under a hard limit`);
          turn.end = "done";
          break;
        }
        case "failed": {
          const turn = turnOf(event.turn);
          assert.ok(model.cuts(turn.path).includes(event.error), `${turn.path} failed with ${event.error}`);
          turn.end = event.error;
          break;
        }
      }
    });

  const fakes = Object.fromEntries(
    ROLES.map((role) => {
      const reply = async (prompt: string): Promise<string> => {
        for (let left = rounds.get(prompt) ?? 0; left > 0; left--) await nextRound();
        return prompt;
      };
      return [role, new FakeAgent({ ...PAID[role], reply })];
    }),
  ) as Record<Role, FakeAgent>;

  const walks = flow(
    { name: "walks", agents: { free: agent(), cheap: agent(), dear: agent() } },
    async (path, { agents, ctx }) => {
      contexts.set(path, ctx);
      const { together = false, steps = [] } = specs.get(path) ?? {};
      const step = async (next: Turn | Node, index: number): Promise<void> => {
        if ("steps" in next) {
          const child = `${path}/${index}`;
          specs.set(child, next);
          if (next.budget) model.budgets.set(child, next.budget);
          await walks(child, { agents, budget: next.budget });
        } else await take(`${path}/t${index}`, next);
        held(readAll);
      };
      const take = async (name: string, { turn, rounds: slow, budget }: Turn): Promise<void> => {
        rounds.set(name, slow);
        if (budget) model.budgets.set(name, budget);
        const said = await agents[turn].run(name, { budget }).then(
          () => "done",
          (error: unknown) => (error as Error).name,
        );
        const began = [...taken.values()].find((one) => one.path === name);
        held(() => {
          if (began) assert.equal(said, began.end);
          else if (model.refusal(path)) assert.equal(said, model.refusal(path), `the refusal of ${name}`);
          else assert.ok(model.cuts(name).includes(said), `${name} was refused with ${said}`);
        });
      };
      held(readAll);
      if (together) await Promise.all(steps.map(step));
      else for (const [index, next] of steps.entries()) await step(next, index);
      // Whatever is spent stays spent, and says so in the same words each time.
      const refused = model.refusal(path);
      for (const role of refused === undefined ? [] : ROLES) {
        const said = await agents[role].run(`${path}/late`).then(
          () => "done",
          (error: unknown) => (error as Error).name,
        );
        held(() => assert.equal(said, refused, `a late turn under ${path}`));
      }
    },
  );

  specs.set("/0", tree);
  const budget = tree.budget ?? { cost: Infinity };
  model.budgets.set("/0", budget);
  await runFake(walks, "/0", { agents: fakes, budget, recorder: { record } });
  held(readAll);
  if (wrong !== undefined) throw wrong;

  for (const fake of Object.values(fakes)) assert.equal(fake.live, 0);
  for (const turn of taken.values()) assert.notEqual(turn.end, undefined, `${turn.path} did not end`);
  for (const path of model.budgets.keys()) {
    for (const limit of ["cost", "outputTokens"] as const) {
      const reached = model.reachedAt(path, limit);
      if (reached === undefined || reached === 0) continue;
      // Past the limit by what was under way when it was reached, the one that reached it among that.
      const most = model.budgets.get(path)?.[limit] ?? 0;
      const underWay = [...taken.values()].filter((turn) => isUnder(turn.path, path) && turn.began < reached);
      const late = model.log.slice(reached - 1).filter((entry) => isUnder(entry.path, path));
      for (const { path: spender } of late) assert.ok(underWay.some((turn) => turn.path === spender));
      const over = model.spent(path)[limit] - most;
      assert.ok(over < late.reduce((sum, entry) => sum + entry[limit], 0) || over === 0);
      if (model.isHard(path, limit)) assert.equal(late.length, 1, `${path} spent past its hard ${limit}`);
    }
  }
}

/** Two turns at once: the first spends the tokens, and the second, under way by then, the money. */
const ONE_LIMIT_AFTER_ANOTHER: Node = {
  budget: { cost: 2, outputTokens: 1 },
  together: false,
  steps: [
    {
      budget: undefined,
      together: true,
      steps: [
        { turn: "cheap", rounds: 0, budget: undefined },
        { turn: "cheap", rounds: 1, budget: undefined },
      ],
    },
    { turn: "free", rounds: 0, budget: undefined },
  ],
};

describe("a tree of calls that spend, side by side and one after another", () => {
  it("adds up, leaves what the specification says, and stops where it says", async () => {
    await fc.assert(fc.asyncProperty(nodes(3), check), {
      numRuns: 150,
      examples: [[ONE_LIMIT_AFTER_ANOTHER]],
    });
  });
});
