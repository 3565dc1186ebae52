import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import { machineDir } from "./paths.ts";
import { keptPrices, type Limits, refreshPrices } from "./prices-refresh.ts";
import { pricesOf } from "./prices.ts";

const million = { input: 1_000_000 };

function list(usd: unknown, date = "2026-11-01"): string {
  const item = { category: "input_tokens", price: usd };
  const model = { id: "acme-1", name: "Acme 1", provider: "acme", pricingItems: [item] };
  return JSON.stringify({ currency: "USD", unit: "USD / 1M tokens", versions: [{ date, models: [model] }] });
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const text =
  (body: string, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(200, headers).end(body);

/** A source of prices on loopback; `answer` may be changed as the test goes on. */
async function source(t: TestContext, answer: Answer) {
  const requests: IncomingMessage[] = [];
  const it = { answer, requests, url: "", stop: () => void server.close() };
  const server = createServer((request, response) => {
    requests.push(request);
    it.answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  it.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/prices.json`;
  return it;
}

/** A machine of its own, with its kept table. */
function machine(HUMANIZE_PRICES: string) {
  const env = { TMPDIR: temporaryDirectory("prices"), HUMANIZE_PRICES };
  const attempt = join(machineDir(env), "prices.attempt");
  const table = join(machineDir(env), "prices.json");
  return {
    env,
    table,
    refresh: (limits?: Partial<Limits>) =>
      refreshPrices(env, { wholeMs: 20_000, firstMs: 5_000, bytes: 1 << 20, ...limits }),
    cost: (model = "acme-1") => pricesOf(keptPrices(env)).cost(model, million),
    kept: () => JSON.parse(readFileSync(table, "utf8")) as Record<string, unknown>,
    /** As if the last attempt, and what was fetched, were of two days ago. */
    twoDaysLater() {
      const then = Date.now() / 1_000 - 2 * 86_400;
      utimesSync(attempt, then, then);
      try {
        writeFileSync(table, JSON.stringify({ ...JSON.parse(readFileSync(table, "utf8")), fetched: then }));
      } catch {
        // Nothing was kept.
      }
    },
  };
}

const NOT = "the prices of models could not be brought up to date, and those at hand hold: ";

describe("the kept prices", () => {
  it("are fetched where there are none, and hold for a day", async (t) => {
    const from = await source(t, text(list(7), { etag: '"one"' }));
    const here = machine(from.url);
    assert.equal(here.cost("claude-sonnet-4-5"), 3);
    assert.equal(await here.refresh(), "");
    assert.equal(here.cost(), 7);
    const { fetched, ...kept } = here.kept();
    assert.ok(Math.abs(Number(fetched) - Date.now() / 1_000) < 60);
    assert.deepEqual(kept, {
      source: from.url,
      etag: '"one"',
      date: "2026-11-01",
      models: { "acme-1": { provider: "acme", name: "Acme 1", per_million: { input: 7 } } },
    });
    assert.equal(statSync(here.table).mode & 0o777, 0o600);
    from.answer = text(list(9));
    assert.equal(await here.refresh(), "");
    assert.deepEqual([from.requests.length, here.cost()], [1, 7]);
    here.twoDaysLater();
    assert.equal(await here.refresh(), "");
    assert.deepEqual([from.requests.length, here.cost()], [2, 9]);
    assert.deepEqual(readdirSync(machineDir(here.env)).sort(), ["prices.attempt", "prices.json"]);
  });

  it("are asked for by what they were last, and stay where they have not changed", async (t) => {
    const from = await source(t, text(list(7), { etag: '"one"' }));
    const here = machine(from.url);
    await here.refresh();
    here.twoDaysLater();
    from.answer = (_request, response) => void response.writeHead(304).end();
    assert.equal(await here.refresh(), "");
    assert.equal(from.requests[1]?.headers["if-none-match"], '"one"');
    assert.equal(here.cost(), 7);
    assert.ok(Number(here.kept()["fetched"]) > Date.now() / 1_000 - 60);
  });

  it("of another source are fetched anew, and not asked for by that one's tag", async (t) => {
    const one = await source(t, text(list(7), { etag: '"one"' }));
    const two = await source(t, text(list(8)));
    const here = machine(one.url);
    await here.refresh();
    here.env.HUMANIZE_PRICES = two.url;
    assert.equal(await here.refresh(), "");
    assert.equal(two.requests[0]?.headers["if-none-match"], undefined);
    assert.equal(here.cost(), 8);
  });

  it("are fetched once by runs that start at once", async (t) => {
    const from = await source(t, text(list(7)));
    const here = machine(from.url);
    assert.deepEqual(await Promise.all(Array.from({ length: 8 }, () => here.refresh())), Array(8).fill(""));
    assert.equal(from.requests.length, 1);
  });

  it("are the ones of the greatest date, of the standard tier, of every kind that has a price", async (t) => {
    const item = (category: unknown, price: unknown) => ({ category, price });
    const models = [
      { id: "a", pricingItems: [item("input_tokens", 1), item("input_tokens", 2), item("cache_storage_tokens", 50)] },
      {
        id: "b",
        pricingItems: [item("output_tokens", 4), item("cache_read_tokens", 0), item("cache_write_tokens", 2)],
      },
      { id: "c", pricingItems: [item("cache_storage_tokens", 50)] },
      { id: 5, pricingItems: [item("input_tokens", 1)] },
      "d",
    ];
    const versions = [{ date: "2026-01-01", models: [] }, { date: "2026-03-01", models }, { date: "2025-12-31" }];
    const from = await source(t, text(JSON.stringify({ currency: "USD", unit: "1M tokens", versions })));
    const here = machine(from.url);
    assert.equal(await here.refresh(), "");
    assert.equal(here.kept()["date"], "2026-03-01");
    assert.deepEqual(here.kept()["models"], {
      a: { provider: "", name: "", per_million: { input: 1 } },
      b: { provider: "", name: "", per_million: { output: 4, cache_read: 0, cache_write: 2 } },
    });
  });

  for (const poison of [-1, "3", null, [], {}, true]) {
    it(`hold no price of ${JSON.stringify(poison)}`, async (t) => {
      const from = await source(t, text(list(poison)));
      const here = machine(from.url);
      assert.equal(await here.refresh(), `${NOT}it prices no model`);
      assert.equal(here.cost("claude-sonnet-4-5"), 3);
    });
  }

  it("hold no endless price, and no prototype", async (t) => {
    const endless = list(1).replace('"price":1', '"price":1e999');
    const from = await source(t, text(endless));
    const here = machine(from.url);
    assert.equal(await here.refresh(), `${NOT}it prices no model`);
    here.twoDaysLater();
    from.answer = text(list(2).replace("acme-1", "__proto__"));
    assert.equal(await here.refresh(), "");
    assert.equal(here.cost("claude-sonnet-4-5"), undefined);
    assert.equal(here.cost("__proto__"), 2);
  });
});

describe("prices that cannot be fetched", () => {
  const rows: readonly (readonly [string, Answer, string])[] = [
    ["no JSON", text("<html>"), "it is not JSON"],
    ["a torn list", text(list(7).slice(0, 40)), "it is not JSON"],
    ["another currency", text(list(7).replace("USD", "EUR")), "it is not a list of prices in USD per 1M tokens"],
    ["another unit", text(list(7).replace("1M", "1K")), "it is not a list of prices in USD per 1M tokens"],
    ["an array", text("[]"), "it is not a list of prices in USD per 1M tokens"],
    ["an error", (_request, response) => void response.writeHead(503).end("no"), "it answered with status 503"],
    ["an answer to no tag", (_request, response) => void response.writeHead(304).end(), "it answered with status 304"],
    ["too much", text(" ".repeat(2 << 20)), `it is larger than ${1 << 20} bytes`],
    [
      "too much, packed small",
      (_request, response) =>
        void response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(8 << 20, " "))),
      `it is larger than ${1 << 20} bytes`,
    ],
    ["a connection that breaks", (request) => void request.socket.destroy(), "UND_ERR_SOCKET"],
  ];
  for (const [what, answer, why] of rows) {
    it(`${what}: what was kept holds, and is tried again in an hour`, async (t) => {
      const from = await source(t, text(list(7), { etag: '"one"' }));
      const here = machine(from.url);
      await here.refresh();
      here.twoDaysLater();
      writeFileSync(here.table, JSON.stringify({ ...here.kept(), etag: "" }));
      from.answer = answer;
      assert.equal(await here.refresh(), `${NOT}${why}`);
      assert.equal(here.cost(), 7);
      assert.equal(await here.refresh(), "");
      assert.equal(from.requests.length, 2);
    });
  }

  it("a source that says nothing, or never ends, is waited for so long and no longer", async (t) => {
    const from = await source(t, () => {});
    const here = machine(from.url);
    assert.equal(await here.refresh({ firstMs: 20 }), `${NOT}it said nothing for 0.02 s`);
    const slow = await source(t, (_request, response) => void response.writeHead(200).write("{"));
    here.env.HUMANIZE_PRICES = slow.url;
    assert.equal(await here.refresh({ wholeMs: 50 }), `${NOT}it took too long`);
  });

  it("nobody listens: the table that comes with hmz holds", async (t) => {
    const gone = await source(t, () => {});
    const here = machine(gone.url);
    gone.stop();
    assert.equal(await here.refresh(), `${NOT}ECONNREFUSED`);
    assert.equal(here.cost("claude-sonnet-4-5"), 3);
  });

  it("what is said of it tells no part of the source, which may hold a key", async () => {
    const note = await machine("http://user:secret@127.0.0.1:1/?key=secret").refresh();
    assert.equal(note, `${NOT}the address in HUMANIZE_PRICES cannot be asked`);
  });

  it("a clock that was ahead does not keep a table for ever", async (t) => {
    const from = await source(t, text(list(7)));
    const here = machine(from.url);
    await here.refresh();
    const ahead = Date.now() / 1_000 + 30 * 86_400;
    writeFileSync(here.table, JSON.stringify({ ...here.kept(), fetched: ahead }));
    utimesSync(join(machineDir(here.env), "prices.attempt"), ahead, ahead);
    from.answer = text(list(8));
    await here.refresh();
    assert.equal(here.cost(), 8);
  });
});

describe("HUMANIZE_PRICES", () => {
  for (const off of ["", "0", "off", "OFF", "no", "none", "empty", " off "]) {
    it(`'${off}' asks nobody, and the table that comes with hmz holds`, async () => {
      const here = machine(off);
      writeFileSync(here.table, JSON.stringify({ models: { x: { per_million: { input: 1 } } } }));
      assert.equal(await here.refresh(), "");
      assert.equal(keptPrices(here.env), undefined);
      assert.equal(here.cost("claude-sonnet-4-5"), 3);
    });
  }

  it("may name a file, which is read as it is now", async () => {
    const file = join(temporaryDirectory("prices"), "list.json");
    writeFileSync(file, list(7));
    const here = machine(file);
    assert.equal(await here.refresh(), "");
    assert.equal(here.cost(), 7);
    writeFileSync(file, list(11));
    assert.equal(await here.refresh(), "");
    assert.equal(here.cost(), 11);
    here.env.HUMANIZE_PRICES = join(file, "none");
    assert.match(await here.refresh(), /ENOTDIR/);
    assert.equal(here.cost(), 11);
  });
});
