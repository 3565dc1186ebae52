import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { permission } from "hmz/flows";
import { FakeAgent, FakeEnv, type FakeSession } from "hmz/fakes";
import { RecordingHost } from "../../test/conformance/recording-host.ts";
import { temporaryDirectory } from "../../test/support/temporary.ts";
import type { KeptConversation, TurnSetup } from "../engine/ports.ts";
import type { Harness } from "../flows/harness.ts";

const machine = new FakeEnv();

function setupIn(workdir = "/work"): TurnSetup {
  return { place: { machine, workdir }, hung: new Set(), tools: [], clis: [], schema: undefined };
}

function open(agent: FakeAgent, carries?: KeptConversation): FakeSession {
  const opening = { role: "builder", permission: permission(), skills: [], callbacks: {} };
  return agent.open(carries ? { ...opening, carries } : opening) as FakeSession;
}

async function take(session: FakeSession, prompt: string, setup = setupIn()): Promise<void> {
  await session.ready(setup);
  await session.take(prompt, new RecordingHost(setup));
}

test("a session knows what it carries on: the session, where it is its agent's, and all that was said", async () => {
  const agent = new FakeAgent({ reply: ["one", "two", "three", "four"] });
  const session = open(agent);
  await take(session, "first");
  const at = temporaryDirectory("kept");
  session.keep(at);
  await take(session, "gone on");
  const carried = open(agent, { id: session.id, at });
  assert.equal(carried.forkedFrom, session);
  await take(carried, "second");
  assert.deepEqual(carried.prompts, ["second"]);
  const said = (session: FakeSession): readonly unknown[] => session.messages.map(({ content }) => content);
  assert.deepEqual(said(carried), ["first", "one", "second", "three"]);

  const later = open(new FakeAgent({ reply: "five" }), { id: session.id, at });
  assert.equal(later.forkedFrom, undefined);
  await take(later, "third");
  assert.deepEqual(said(later), ["first", "one", "third", "five"]);
});

test("a fork's messages begin with its parent's", async () => {
  const agent = new FakeAgent({ reply: ["one", "two"] });
  const parent = open(agent);
  await take(parent, "first");
  const fork = agent.open({ role: "builder", permission: permission(), skills: [], callbacks: {}, forkOf: parent });
  await take(fork as FakeSession, "second");
  assert.deepEqual(
    fork.messages?.map(({ content }) => content),
    ["first", "one", "second", "two"],
  );
});

const ROWS = "keeps its sessions as rows of a database: the conversation cannot be found as files";

for (const [harness, message] of [
  ["cursor-agent", "cursor-agent cannot fork a session"],
  ["mcode", "mcode cannot fork a session"],
  ["agy", "agy cannot fork a session"],
  ["dsh", "dsh cannot fork a session"],
  ["opencode", `opencode ${ROWS}`],
  ["mimo", `mimo ${ROWS}`],
] as const) {
  test(`${harness} keeps no conversation`, async () => {
    const session = open(new FakeAgent({ harness }));
    await take(session, "first");
    const at = temporaryDirectory("kept");
    assert.throws(() => session.keep(at), { name: "UnsupportedOperation", message });
    assert.deepEqual(readdirSync(at), []);
  });
}

for (const [what, harness, spoil, refusal] of [
  [
    "on a harness that forks in place, in another workdir",
    "pi",
    () => {},
    { name: "UnsupportedOperation", message: "pi cannot fork a session into another workdir" },
  ],
  ["gone", "claude", undefined, { name: "SessionError" }],
  [
    "garbage",
    "claude",
    (at: string) => writeFileSync(join(at, "conversation.json"), '{"messages":[]}'),
    { name: "SessionError" },
  ],
] as const) {
  test(`carrying on is refused before the first turn: ${what}`, async () => {
    const agent = new FakeAgent({ harness: harness satisfies Harness });
    const session = open(agent);
    await take(session, "first");
    const at = temporaryDirectory("kept");
    session.keep(at);
    const kept = { id: session.id, at: spoil ? at : join(at, "deleted") };
    spoil?.(at);
    const carried = open(agent, kept);
    const message = `the session cannot be forked: ${harness}: no conversation ${kept.id} under ${kept.at}`;
    await assert.rejects(carried.ready(setupIn("/elsewhere")), { message, ...refusal });
    assert.deepEqual(carried.prompts, []);
  });
}
