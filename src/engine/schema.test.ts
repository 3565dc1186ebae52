import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { agent, flow, OutputSchemaError, z } from "hmz/flows";
import { FakeAgent, runFake } from "hmz/fakes";
import { jsonSchema, readAnswer } from "./schema.ts";

const Verdict = z.object({ ok: z.boolean(), note: z.string().default("") }).meta({ title: "Verdict" });
const yes = { ok: true, note: "" };

describe("reading an answer of a schema", () => {
  const rows: readonly (readonly [string, string])[] = [
    ["the whole answer", '{"ok":true}'],
    ["the whole answer, stripped", '\n  {"ok":true}\n\n'],
    ["a fenced block", 'Here:\n```json\n{"ok":true}\n```\nDone.'],
    ["a block of another info string", 'Here:\n```jsonc title="a"\n{"ok":true}\n```'],
    ["a block of none", '```\n{"ok":true}\n```'],
    ["a block of tildes", 'x\n~~~JSON\n{"ok":true}\n~~~'],
    ["a longer fence", 'x\n````\n{"ok":true}\n````'],
    ["the second block", '```\nls\n```\n```json\n{"ok":true}\n```'],
    ["the first block that validates", '```json\n{"ok":1}\n```\n```json\n{"ok":true}\n```'],
    ["lines that end in CRLF", 'x\r\n```json\r\n{"ok":true}\r\n```\r\n'],
    ["the span of braces", 'The verdict is {"ok":true}.'],
    ["the span of braces around others", 'so {"ok":true,"note":""} it is'],
    ["a block in a quote's prose", 'I said `{}` and then:\n\n```\n{"ok":true}\n```'],
  ];
  for (const [what, answer] of rows) {
    it(what, () => assert.deepEqual(readAnswer(answer, Verdict), yes));
  }

  it("takes the first that validates, in that order", () => {
    const both = '```json\n{"ok":false}\n```\nand {"ok":true}';
    assert.equal(readAnswer(both, Verdict).ok, false);
  });

  it("is refused with the first 200 characters, as JSON", () => {
    const rows = [
      ["no", 'the answer is not a Verdict: "no"'],
      ['{"ok":"yes"}', 'the answer is not a Verdict: "{\\"ok\\":\\"yes\\"}"'],
      ["", 'the answer is not a Verdict: ""'],
      ["a\nb", 'the answer is not a Verdict: "a\\nb"'],
      ["x".repeat(500), `the answer is not a Verdict: "${"x".repeat(200)}"`],
      ["😀".repeat(300), `the answer is not a Verdict: "${"😀".repeat(200)}"`],
    ] as const;
    for (const [answer, message] of rows) {
      assert.throws(() => readAnswer(answer, Verdict), { name: "OutputSchemaError", message });
    }
  });

  it("finds an object in whatever prose stands around its block", () => {
    const prose = fc.string().filter((text) => !/[{}`~]/.test(text));
    fc.assert(
      fc.property(prose, prose, fc.boolean(), fc.string(), (before, after, ok, note) => {
        const answer = `${before}\n\`\`\`json\n${JSON.stringify({ ok, note }, null, 2)}\n\`\`\`\n${after}`;
        assert.deepEqual(readAnswer(answer, Verdict), { ok, note });
      }),
    );
  });

  it("never throws anything else, whatever the answer", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("{", "}", "`", "~", "\n", '"', "a", ":", ">", " ") }), (answer) => {
        try {
          readAnswer(answer, Verdict);
        } catch (error) {
          assert.ok(error instanceof OutputSchemaError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("a turn with an output schema", () => {
  const asks = flow({ name: "asks", agents: { a: agent() } }, async (_task, { agents: { a } }) =>
    a.run("judge", { outputSchema: Verdict }),
  );

  it("returns a value of it, its defaults filled in, from text and from an object", async () => {
    assert.deepEqual(await runFake(asks, "", { agents: { a: '```\n{"ok":true}\n```' } }), yes);
    assert.deepEqual(await runFake(asks, "", { agents: { a: { ok: true } } }), yes);
  });

  it("fails with OutputSchemaError, and the session goes on", async () => {
    const twice = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) => {
      const session = await a.spawn();
      await assert.rejects(a.run("judge", { session, outputSchema: Verdict }), OutputSchemaError);
      return a.run("again", { session });
    });
    assert.equal(await runFake(twice, "", { agents: { a: ["no", "fine"] } }), "fine");
  });

  it("is told to the harness as JSON Schema of what is to be written", () => {
    const { properties, required } = jsonSchema(Verdict) as { properties: object; required: unknown };
    assert.deepEqual(Object.keys(properties), ["ok", "note"]);
    assert.deepEqual(required, ["ok"]);
    assert.equal(jsonSchema(Verdict), jsonSchema(Verdict));
  });

  it("that transforms is applied once", async () => {
    const Count = z.object({ n: z.string().transform(Number) });
    const counts = flow({ agents: { a: agent() } }, async (_task, { agents: { a } }) =>
      a.run("count", { outputSchema: Count }),
    );
    for (const reply of ['{"n":"3"}', { n: "3" }]) {
      assert.deepEqual(await runFake(counts, "", { agents: { a: new FakeAgent({ reply }) } }), { n: 3 });
    }
  });
});
