import assert from "node:assert/strict";
import { test } from "node:test";
import { isFetchable, partsOfUrl, withoutPassword } from "./git-url.ts";

const FETCHED: readonly (readonly [url: string, fetched: boolean])[] = [
  ["https://host/o/r", true],
  ["ssh://git@host:22/o/r.git", true],
  ["file:///srv/r", true],
  ["git://host/o/r", true],
  ["ext::sh -c x", false],
  ["ext://sh/x", false],
  ["https:///o/r", false],
  ["ssh://-oProxyCommand=x/r", false],
  ["ssh://git@-oProxyCommand=x/r", false],
  ["https://host/o r", false],
  ["https://host/o\nr", false],
];
for (const [url, fetched] of FETCHED) {
  test(`git ${fetched ? "may" : "may not"} be given ${JSON.stringify(url)}`, () => {
    const parts = partsOfUrl(url);
    assert.equal(parts !== undefined && isFetchable(parts), fetched);
  });
}

const SHOWN: readonly (readonly [text: string, shown: string])[] = [
  ["https://me:s3cret@host/o/r", "https://***@host/o/r"],
  ["https://me:s3c@ret@host/o/r", "https://***@host/o/r"],
  ["https://t0ken@host/o/r", "https://***@host/o/r"],
  ["ssh://git@host/o/r", "ssh://git@host/o/r"],
  ["ssh://git:s3cret@host/o/r", "ssh://***@host/o/r"],
  ["unable to access 'https://me:s3cret@host/o/r/': no", "unable to access 'https://***@host/o/r/': no"],
  ["https://host/a@b", "https://host/a@b"],
];
for (const [text, shown] of SHOWN) {
  test(`${text} is shown as ${shown}`, () => assert.equal(withoutPassword(text), shown));
}
