import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { FakeAgent } from "../fakes/fake-agent.ts";
import { agent, flow, ParamsError, z } from "../flows/index.ts";
import { Hmz } from "./hmz.ts";
import { Refused } from "./refused.ts";

const root = temporaryDirectory("params");
const home = join(root, "home");
const hmz = new Hmz({ workspace: root, home });
const budget = { cost: 5 };

/** The params as the epic's first record has them. */
async function began(params: Record<string, unknown>): Promise<unknown> {
  let got: unknown;
  const takes = flow({ name: "takes", params: z.object({ given: z.unknown() }) }, async (_task, { params }) => {
    got = params.given;
  });
  const run = hmz.run(takes, "x", { params, budget });
  await run.wait();
  assert.deepEqual(got, params["given"], "the flow has what was given");
  const [line = ""] = readFileSync(join(run.epic ?? "", "epic.jsonl"), "utf8").split("\n");
  const record = JSON.parse(line) as { readonly event: string; readonly params: { readonly given: unknown } };
  assert.equal(record.event, "began");
  return record.params.given;
}

describe("params that JSON has no word for", () => {
  const rows: readonly (readonly [unknown, unknown])[] = [
    [Infinity, "Infinity"],
    [-Infinity, "-Infinity"],
    [Number.NaN, "NaN"],
    [{ deep: [1, Number.NaN, { most: Infinity }] }, { deep: [1, "NaN", { most: "Infinity" }] }],
    [1e308, 1e308],
    ["Infinity", "Infinity"],
  ];
  for (const [given, kept] of rows) {
    it(`are words in the epic: ${typeof given === "object" ? "within" : `${typeof given} ${String(given)}`}`, async () => {
      assert.deepEqual(await began({ given }), kept);
    });
  }
});

describe("params that do not go together", () => {
  const bounds = z.object({ from: z.number(), to: z.number().default(9) });
  const rows = [
    ["a refinement", bounds.refine(({ from, to }) => from <= to, "from is past to"), "from is past to"],
    [
      "a refinement of a field",
      bounds.refine(({ from, to }) => from <= to, { path: ["to"], error: "is before from" }),
      "to: is before from",
    ],
    [
      "several",
      bounds.superRefine(({ from }, context) => {
        context.addIssue({ code: "custom", message: "one" });
        context.addIssue({ code: "custom", path: ["from"], message: `two of ${from}` });
      }),
      "one; from: two of 20",
    ],
    [
      "a check that throws",
      bounds.refine(() => {
        throw new RangeError("of its own");
      }),
      "its params cannot be checked: of its own",
    ],
    ["a check that has to wait", bounds.refine(async () => true), /^takes: its params cannot be checked: /],
  ] as const;
  for (const [what, params, why] of rows) {
    // A person gives text, a flow numbers.
    for (const from of ["20", 20]) {
      it(`are refused before the run: ${what}, from ${typeof from}`, async () => {
        let ran = false;
        const builder = new FakeAgent();
        const takes = flow({ name: "takes", agents: { builder: agent() }, params }, async () => void (ran = true));
        const epics = existsSync(join(home, "epics"))
          ? readdirSync(join(home, "epics"), { recursive: true }).length
          : 0;
        const run = hmz.run(takes, "x", { agents: { builder }, params: { from }, budget });
        const error = await run.wait().catch((thrown: unknown) => thrown);
        assert.ok(error instanceof Refused && error.cause instanceof ParamsError, String(error));
        if (typeof why === "string") assert.equal(error.message, `takes: ${why}`);
        else assert.match(error.message, why);
        assert.equal(ran, false);
        assert.deepEqual(builder.sessions, []);
        assert.equal(run.epic, undefined);
        const after = existsSync(join(home, "epics"))
          ? readdirSync(join(home, "epics"), { recursive: true }).length
          : 0;
        assert.equal(after, epics);
      });
    }
  }
});
