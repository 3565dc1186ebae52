import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentNeed, type Forks, HARNESS_NAMES, HARNESSES, isHarness, type Rung } from "./harness.ts";

const ALL: readonly Rung[] = ["read-only", "workspace-write", "auto", "bypass"];
const SUBAGENTS: readonly AgentNeed[] = ["subagent_start", "subagent_stop"];

type Row = readonly [needs: readonly AgentNeed[], forks: Forks, rungs: readonly Rung[]];

/** What each harness serves, as it is specified. */
const ROWS: Readonly<Record<string, Row>> = {
  claude: [["goal", "loop", "steering", "permission_request", ...SUBAGENTS, "ask_user", "tools"], "anywhere", ALL],
  codex: [["goal", "steering", "permission_request", ...SUBAGENTS, "ask_user", "tools"], "anywhere", ALL],
  kimi: [["goal", "steering", "permission_request", "ask_user"], "anywhere", ALL],
  pi: [["steering", "ask_user", "tools"], "in-place", ALL],
  omp: [["steering", "ask_user", "tools"], "in-place", ALL],
  dsh: [["goal", "tools"], "never", ["bypass"]],
  litellm: [[], "anywhere", ALL],
  "cursor-agent": [SUBAGENTS, "never", ALL],
  mcode: [SUBAGENTS, "never", ["workspace-write", "auto", "bypass"]],
  grok: [["tools"], "in-place", ALL],
  opencode: [["tools"], "in-place", ALL],
  mimo: [["tools"], "in-place", ALL],
  qwen: [["tools"], "in-place", ALL],
  agy: [["tools"], "never", ALL],
  acp: [[], "in-place", []],
};

for (const [name, [needs, forks, rungs]] of Object.entries(ROWS)) {
  test(`${name} serves what its row says`, () => {
    assert.ok(isHarness(name));
    const row = HARNESSES[name];
    assert.deepEqual([[...row.needs].sort(), row.forks, [...row.rungs]], [[...needs].sort(), forks, [...rungs]]);
  });
}

test("every harness but the one of this process is a row of the specification", () => {
  assert.deepEqual([...HARNESS_NAMES].sort(), [...Object.keys(ROWS), "native"].sort());
});

test("the tools of Claude Code and Qwen Code are gated by a hook, and those of the loop in this process", () => {
  assert.deepEqual(
    HARNESS_NAMES.filter((name) => HARNESSES[name].gatesTools),
    ["claude", "qwen", "native"],
  );
});

for (const name of ["", "Claude", "toString", "__proto__"]) {
  test(`'${name}' is no harness`, () => assert.equal(isHarness(name), false));
}
