import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { appender } from "./appender.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";

test("a full disk is told once, and nothing is thrown", { skip: !existsSync("/dev/full") }, () => {
  const troubles: Error[] = [];
  const file = appender("/dev/full", false, (error) => troubles.push(error));
  file.append({ one: 1 });
  file.append({ two: 2 });
  file.close();
  file.close();
  assert.deepEqual(
    troubles.map((error) => (error as NodeJS.ErrnoException).code),
    ["ENOSPC"],
  );
});

test("what is held back is written together, in order, and at the close", () => {
  const path = join(temporaryDirectory("appender"), "a.jsonl");
  const file = appender(path, true, (error) => assert.fail(error));
  file.append({ n: 1 });
  file.append({ n: 2 });
  assert.equal(readFileSync(path, "utf8"), "");
  file.append({ long: "x".repeat(70_000) });
  file.append({ n: 3 });
  file.close();
  file.append({ n: 4 });
  const written = readFileSync(path, "utf8").trimEnd().split("\n");
  assert.deepEqual(
    written.map((line) => line.slice(0, 7)),
    ['{"n":1}', '{"n":2}', '{"long"', '{"n":3}'],
  );
});
