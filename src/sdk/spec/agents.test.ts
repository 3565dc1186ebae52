import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { HarnessUnrecoverable } from "../../flows/errors.ts";
import { HARNESS_NAMES } from "../../flows/harness.ts";
import { Refused } from "../refused.ts";
import { type AgentSpec, checkAgent, parseAgents } from "./agents.ts";

function spec(value: string): Omit<AgentSpec, "text"> {
  const { text, ...rest } = parseAgents([`r=${value}`])["r"] as AgentSpec;
  assert.equal(text, value);
  return rest;
}

const READ: readonly [string, string, string, string, string][] = [
  ["claude/claude-opus-5:high", "claude", "", "claude-opus-5", "high"],
  ["claude@deepseek/v3:max", "claude", "deepseek", "v3", "max"],
  ["claude-code/m", "claude", "", "m", ""],
  ["grokbuild/m", "grok", "", "m", ""],
  ["codex/gpt-5:", "codex", "", "gpt-5", ""],
  ["codex/gpt-5:auto", "codex", "", "gpt-5", ""],
  ["opencode/custom_provider:gateway/m", "opencode", "", "custom_provider:gateway/m", ""],
  ["pi/qwen3:8b", "pi", "", "qwen3:8b", ""],
  ["pi/qwen3:latest:auto", "pi", "", "qwen3:latest", ""],
  ["kimi/k2:swarm max", "kimi", "", "k2", "swarm max"],
  ["cursor-agent/m:extra-high", "cursor-agent", "", "m", "extra-high"],
  ["litellm/openai/gpt-5", "litellm", "", "openai/gpt-5", ""],
  ["native/scripted/dir/a.json", "native", "", "scripted/dir/a.json", ""],
  ["native/openai-compatible@home/q:low", "native", "", "openai-compatible@home/q", "low"],
];
for (const [text, harness, provider, model, effort] of READ) {
  test(`reads ${text}`, () => assert.deepEqual(spec(text), { harness, provider, model, effort }));
}

const EXPECTED_ROLE = "expected <role>=<harness>[@<provider>]/<model>[:<effort>]";
const EXPECTED_SPEC = "expected [NAME=]CLI[@PROVIDER]/MODEL[:EFFORT]";
const REFUSED: readonly [string, readonly string[], string][] = [
  ["no =", ["claude/m"], `-a 'claude/m': ${EXPECTED_ROLE}`],
  ["an empty role", ["=claude/m"], `-a '=claude/m': ${EXPECTED_ROLE}`],
  ["an empty item", [""], "-a '': an item is empty"],
  [
    "a role that is no identifier",
    ["my-role=claude/m"],
    "-a 'my-role=claude/m': 'my-role' is not a place a flow could declare: what is written before `=` is a key of the record of agents the flow declares, so it is a JavaScript identifier",
  ],
  ["an unknown CLI", ["a=vim/m"], `-a 'a=vim/m': ${EXPECTED_SPEC}`],
  ["acp, which is named by what was added", ["a=acp/m"], `-a 'a=acp/m': ${EXPECTED_SPEC}`],
  ["a name of the object prototype", ["a=constructor/m"], `-a 'a=constructor/m': ${EXPECTED_SPEC}`],
  ["an empty model", ["a=claude/"], `-a 'a=claude/': ${EXPECTED_SPEC}`],
  ["nothing but an effort", ["a=claude/:high"], `-a 'a=claude/:high': ${EXPECTED_SPEC}`],
  ["no /", ["a=claude"], `-a 'a=claude': ${EXPECTED_SPEC}`],
  [
    "an @ with nothing after",
    ["a=claude@/m"],
    "-a 'a=claude@/m': expected an account after @, as in claude@deepseek/MODEL:EFFORT",
  ],
  ["a role twice", ["a=claude/m,a=codex/m"], "-a: the role 'a' is given twice"],
  ["a role twice over two options", ["a=claude/m", "a=codex/m"], "-a: the role 'a' is given twice"],
];
for (const [what, values, message] of REFUSED) {
  test(`refuses ${what}`, () => assert.throws(() => parseAgents(values), new Refused(message)));
}

test("several roles, over commas and occurrences", () => {
  assert.deepEqual(Object.keys(parseAgents(["a=claude/m, b = codex/x:low ", "c=pi/y"])), ["a", "b", "c"]);
});

const UNCONFIGURABLE: readonly [string, string][] = [
  ["claude/m:huge", "'huge' is not an effort of claude; one of max, xhigh, high, medium, low"],
  ["codex/m:ultracode", "'ultracode' is not an effort of codex; one of ultra, max, xhigh, high, medium, low"],
  [
    "claude@work/m",
    "no claude account is saved as 'work', and this release saves none; leave out '@work' to use the account that claude is signed into",
  ],
];
for (const [text, reason] of UNCONFIGURABLE) {
  test(`${text} cannot be configured`, () => {
    const given = parseAgents([`r=${text}`])["r"] as AgentSpec;
    assert.throws(
      () => checkAgent(given),
      (error: unknown) =>
        error instanceof Refused &&
        error.message === `HarnessUnrecoverable: ${text}: ${reason}` &&
        error.cause instanceof HarnessUnrecoverable,
    );
  });
}

test("ultracode is taken, though no refusal lists it", () => {
  checkAgent(parseAgents(["r=claude/m:ultracode"])["r"] as AgentSpec);
});

test("whatever is written, it is read or refused", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."ab=,/@:[] \u0000é".split(""), "claude", "-") }), (text) => {
      try {
        parseAgents([text]);
      } catch (error) {
        assert.ok(error instanceof Refused);
      }
    }),
  );
});

test("a spec that is put together is read as its parts", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...HARNESS_NAMES.filter((name) => name !== "acp")),
      fc.stringMatching(/^[a-z0-9._/:-]{1,12}[0-9]$/),
      fc.constantFrom("", "high", "extra-high", "as configured"),
      (harness, model, effort) => {
        assert.deepEqual(spec(`${harness}/${model}:${effort}`), { harness, provider: "", model, effort });
      },
    ),
  );
});
