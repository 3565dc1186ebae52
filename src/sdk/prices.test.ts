import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { FakeAgent } from "../fakes/index.ts";
import { agent, type BudgetLike, flow } from "../flows/index.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { Hmz } from "./hmz.ts";
import type { Run } from "./run.ts";

const item = { category: "input_tokens", price: 7 };
const models = [{ id: "acme-1", name: "Acme 1", provider: "acme", pricingItems: [item] }];
const list = JSON.stringify({ currency: "USD", unit: "USD / 1M tokens", versions: [{ date: "2026-11-01", models }] });

let asked = 0;
let answers = true;
const server = createServer((_request, response) => {
  asked++;
  if (answers) response.end(list);
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
after(() => {
  server.closeAllConnections();
  server.close();
});

const nothing = flow({ name: "nothing", agents: { builder: agent() } }, async () => "done");

function run(builder: string | FakeAgent, budget: BudgetLike, prices = ""): Run {
  const root = temporaryDirectory("prices");
  writeFileSync(join(root, "a.json"), JSON.stringify({ scenes: [{ steps: [{ say: "said" }] }] }));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const env = { ...process.env, TMPDIR: root, HUMANIZE_PRICES: prices === "" ? url : prices, OPENAI_API_KEY: "none" };
  return new Hmz({ workspace: root, home: root, env }).run(nothing, "x", { agents: { builder }, budget });
}

test("a finite cost limit brings the prices up to date before the run, and before it is said what has none", async () => {
  asked = 0;
  const priced = run("native/openai/acme-1", { cost: 5 });
  await priced.check();
  assert.deepEqual([asked, priced.unreadable(), priced.stalePrices()], [1, "", ""]);
  assert.equal(await priced.wait(), "done");
  assert.equal(asked, 1);
});

test("no other run asks for prices", async () => {
  asked = 0;
  for (const other of [
    run("native/openai/acme-1", { cost: Infinity }),
    run("native/openai/acme-1", { duration: "1h" }),
    run("native/scripted/a.json", { cost: 5 }),
    run(new FakeAgent(), { cost: 5 }),
    run("native/openai/acme-1", { cost: 5 }, "off"),
  ]) {
    await other.check();
    assert.equal(other.stalePrices(), "");
  }
  assert.equal(asked, 0);
});

test("prices that cannot be had are a note, and the run goes on", async () => {
  const offline = run("native/openai/acme-1", { cost: 5 }, "/no/such/list.json");
  assert.equal(await offline.wait(), "done");
  assert.match(offline.stalePrices(), /^the prices of models could not be brought up to date, .*: ENOENT$/);
  assert.match(offline.unreadable(), /^'openai\/acme-1' has no price here/);
});

test("a stop does not wait for a source that is silent", async () => {
  answers = false;
  const stopped = run("native/openai/acme-1", { cost: 5 });
  setTimeout(() => stopped.stop(), 20);
  await assert.rejects(stopped.wait(), { name: "FlowCancelled" });
});
