import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OutputSchemaError, z } from "hmz/flows";
import { FakeOutworlder } from "hmz/fakes";

const { signal } = new AbortController();
const ask = (human: FakeOutworlder, prompt: string, schema?: z.ZodType) => human.ask({ prompt, schema, signal });

describe("a fake outworlder", () => {
  it("answers as it is told, and remembers what it was asked", async () => {
    const human = new FakeOutworlder({ reply: ["yes", undefined, { n: 1 }, '{"n":2}'] });
    const schema = z.object({ n: z.number() });
    assert.equal(await ask(human, "a"), "yes");
    assert.equal(await ask(human, "b"), "ok");
    assert.deepEqual(await ask(human, "c", schema), { n: 1 });
    assert.deepEqual(await ask(human, "d", schema), { n: 2 });
    assert.deepEqual(human.asked, ["a", "b", "c", "d"]);
    assert.equal(human.away(), false);
  });

  it("answers nothing with the schema's defaults, and refuses a reply of another shape", async () => {
    const schema = z.object({ n: z.number().default(3) });
    assert.deepEqual(schema.parse(await ask(new FakeOutworlder(), "a", schema)), { n: 3 });
    await assert.rejects(ask(new FakeOutworlder({ reply: "no" }), "a", z.object({ n: z.number() })), OutputSchemaError);
  });

  it("is away where told", () => {
    assert.equal(new FakeOutworlder({ away: true }).away(), true);
  });

  it("stops waiting for an answer when the turn is interrupted", async () => {
    const human = new FakeOutworlder({ reply: () => new Promise<string>(() => {}) });
    const aborter = new AbortController();
    const asked = human.ask({ prompt: "a", schema: undefined, signal: aborter.signal });
    aborter.abort(new Error("stop"));
    await assert.rejects(asked, /stop/);
  });
});
