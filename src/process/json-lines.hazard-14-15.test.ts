// Two objects on a line, log lines, notices and warnings on standard output: notes, never fatal, never glued.
import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, Scene, ENV } from "../../test/support/processes.ts";
import { startChild } from "./child.ts";
import { readJsonLines } from "./json-lines.ts";
import type { JsonLine } from "./json-lines.ts";

async function read(text: string): Promise<readonly JsonLine[]> {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
  }
  return collect(readJsonLines(chunks()));
}

test("hazard 14: several objects on one line are one note, and the next line is an event", async () => {
  assert.deepEqual(await read('{"a":1}{"b":2}\n{"c":"{}"}\n'), [
    { kind: "note", text: '{"a":1}{"b":2}' },
    { kind: "json", value: { c: "{}" } },
  ]);
});

test("hazard 14: an object over several lines is notes", async () => {
  assert.deepEqual(
    (await read('{\n"a": 1\n}\n[1]\n')).map(({ kind }) => kind),
    ["note", "note", "note", "json"],
  );
});

test("hazard 15: what a CLI prints besides its messages is kept as notes", async (t) => {
  const scene = await Scene.set(t);
  const fake = await scene.fake(String.raw`
    echo 'npm notice new version'
    echo '(node:1) Warning: x'
    printf '\357\273\277{"a":1}\n\n'
    printf '{"b":2}'`);
  const child = await startChild({ argv: [fake], cwd: scene.dir, env: ENV, stdin: "closed" });
  assert.deepEqual(await collect(readJsonLines(child.stdout)), [
    { kind: "note", text: "npm notice new version" },
    { kind: "note", text: "(node:1) Warning: x" },
    { kind: "json", value: { a: 1 } },
    { kind: "json", value: { b: 2 } },
  ]);
});

test("a bare word that happens to be JSON is a note", async () => {
  assert.deepEqual(
    await read('null\n12\n"x"\ntrue\n'),
    ["null", "12", '"x"', "true"].map((text) => ({ kind: "note", text })),
  );
});

test("a note is bounded, whatever the line holds", async () => {
  const [note] = await read(`≤${"≤".repeat(100_000)}\n`);
  assert.ok(note?.kind === "note");
  assert.ok(Buffer.byteLength(note.text) < 5000);
  assert.match(note.text, /more bytes\)$/);
});
