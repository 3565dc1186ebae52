import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { RunEvent, TurnEvent } from "../sdk/events.ts";
import type { Out } from "./io.ts";
import { Screen, type ScreenClock } from "./screen.ts";
import { width } from "./width.ts";

/** A terminal of one line's memory: what would be seen, with the line being redrawn last. */
class Terminal implements Out {
  readonly isTTY: boolean;
  readonly columns: number;
  raw = "";

  constructor(isTTY: boolean, columns = 60) {
    this.isTTY = isTTY;
    this.columns = columns;
  }

  write(text: string): void {
    this.raw += text;
  }

  /** The lines that a person sees: a carriage return starts the line again, an erase empties the rest of it. */
  get lines(): string[] {
    return this.raw.split("\n").map((line) => {
      let seen = "";
      let column = 0;
      // oxlint-disable-next-line no-control-regex
      for (const [piece] of line.matchAll(/\r|\u001b\[K|[^\r\u001b]+|\u001b(?!\[K)[^\r\u001b]*/g)) {
        const text = stripVTControlCharacters(piece);
        if (piece === "\r") column = 0;
        else if (piece === "\u001b[K") seen = seen.slice(0, column);
        else {
          seen = seen.slice(0, column) + text + seen.slice(column + text.length);
          column += text.length;
        }
      }
      return seen.trimEnd();
    });
  }
}

class TestClock implements ScreenClock {
  time = 1_000;
  #tick: (() => void) | undefined;

  now(): number {
    return this.time;
  }

  every(_ms: number, tick: () => void): () => void {
    this.#tick = tick;
    return () => (this.#tick = undefined);
  }

  /** Lets time pass; returns whether anything was due. */
  pass(seconds: number): boolean {
    this.time += seconds;
    this.#tick?.();
    return this.#tick !== undefined;
  }
}

const BUILDER = { agent: "builder", cli: "claude", model: "claude-opus-5", session: "s1", call: 0, turn: 1 } as const;
const REVIEWER = { ...BUILDER, agent: "reviewer", cli: "codex", model: "gpt-5", session: "s2", turn: 2 } as const;

function at(second: number, of: typeof BUILDER | typeof REVIEWER, event: object): TurnEvent {
  return { at: 1_000 + second, ...of, ...event } as unknown as TurnEvent;
}

const TURN: readonly RunEvent[] = [
  at(0, BUILDER, { kind: "begins", text: "Add a --dry-run flag to the importer, and a test for it.", conversation: 1 }),
  { kind: "opened", at: 1_000, call: 0, agent: "builder", cli: "claude", provider: "", session: "s1" },
  at(1, BUILDER, { kind: "reasoning", text: "The flag is parsed in cli.py.\nThe test is beside it." }),
  at(2, BUILDER, { kind: "text", text: "I'll start with the parser.\n\nThen the test." }),
  at(3, BUILDER, { kind: "tool", text: "Bash npm test -- --dry-run", tool: "Bash", input: {} }),
  at(4, BUILDER, { kind: "tool-ends", text: "12 passed\n1 failed", tool: "Bash", failed: true }),
  at(4, BUILDER, { kind: "tool-ends", text: "", tool: "Bash", failed: false }),
  at(4, BUILDER, { kind: "tool", text: "review path=a.py", tool: "mcp__humanize__review", input: {} }),
  at(4, BUILDER, { kind: "subagent", text: "explore(find the parser)", whose: "t1" }),
  at(5, BUILDER, { kind: "tool", text: "Read(cli.py)", tool: "Read", input: {}, whose: "t1" }),
  at(6, BUILDER, { kind: "subagent-ends", text: "explore(find the parser)", whose: "t1" }),
  at(6, BUILDER, { kind: "notice", text: "rate limited; trying again in 2s" }),
  at(7, BUILDER, { kind: "asks", text: "Which importer?" }),
  at(7, BUILDER, { kind: "took", text: "go on" }),
  at(8, BUILDER, { kind: "text", text: "Done: --dry-run prints what it would do." }),
  at(9, BUILDER, {
    kind: "result",
    text: "Done: --dry-run prints what it would do.",
    tokens: { "claude-opus-5": 340 },
    spent: { input: 1_200, output: 340, cache_read: 56_000 },
    cost: 0.0123,
  }),
  at(9, BUILDER, { kind: "ends", text: "", seconds: 9 }),
];

const LINES = [
  "● builder is working · claude/claude-opus-5 · Add a --dry-…",
  "  The flag is parsed in cli.py.",
  "  The test is beside it.",
  "● I'll start with the parser.",
  "",
  "  Then the test.",
  "● Bash(npm test -- --dry-run)",
  "  ⎿ 12 passed 1 failed",
  "● review(path=a.py)",
  "● explore(find the parser) started",
  "  ● Read(cli.py)",
  "● explore(find the parser) done",
  "! builder: rate limited; trying again in 2s",
  "? builder asks: Which importer?",
  "● Done: --dry-run prints what it would do.",
  "  builder worked for 9s · 1.2k input · 340 output · 56.0k cache read · $0.01 · claude-opus-5",
  "",
];

/** On a terminal of 60 columns, what is too wide goes on under itself. */
const WRAPPED = LINES.flatMap((line) =>
  line.includes("worked for")
    ? ["  builder worked for 9s · 1.2k input · 340 output · 56.0k", "  cache read · $0.01 · claude-opus-5"]
    : [line],
);

function screen(options: { err?: Terminal; out?: Terminal; env?: Record<string, string>; spent?: () => number }) {
  const { err = new Terminal(true), out = new Terminal(true), env = {}, spent = () => 0 } = options;
  const clock = new TestClock();
  return { err, out, clock, screen: new Screen({ io: { stdout: out, stderr: err, env }, spent, clock }) };
}

test("a turn on a terminal: permanent lines, the clock gone at its end, the answer not said twice", () => {
  const { err, out, screen: shown } = screen({});
  for (const event of TURN) shown.event(event);
  shown.close();
  assert.deepEqual(err.lines, WRAPPED);
  assert.equal(out.raw, "");
});

test("on a pipe: the same lines, no escape, no clock; the answer on stdout in one write", () => {
  const { err, out, clock, screen: shown } = screen({ err: new Terminal(false), out: new Terminal(false) });
  for (const event of TURN) {
    shown.event(event);
    assert.equal(clock.pass(1), false);
  }
  shown.close();
  assert.equal(err.raw, LINES.join("\n"));
  assert.equal(out.raw, "Done: --dry-run prints what it would do.\n");
});

test("the answer goes to stdout where that alone is no terminal", () => {
  const { err, out, screen: shown } = screen({ out: new Terminal(false) });
  for (const event of TURN) shown.event(event);
  shown.close();
  assert.deepEqual(err.lines, WRAPPED);
  assert.equal(out.raw, "Done: --dry-run prints what it would do.\n");
});

test("an answer that no text said is shown among the lines", () => {
  const { err, screen: shown } = screen({});
  shown.event(TURN[0] as RunEvent);
  shown.event(at(1, BUILDER, { kind: "result", text: "four", tokens: {}, spent: {} }));
  shown.event(at(1, BUILDER, { kind: "ends", text: "", seconds: 1 }));
  shown.close();
  assert.deepEqual(err.lines.slice(1), ["● four", "  builder worked for 1s · claude-opus-5", ""]);
});

test("the clock: who works, for how long, what was spent; redrawn in place, gone when the run ends", () => {
  let spent = 0;
  const { err, clock, screen: shown } = screen({ spent: () => spent });
  shown.event(TURN[0] as RunEvent);
  assert.equal(err.lines.at(-1), "⠋ builder is working 0s");
  clock.pass(65);
  assert.equal(err.lines.at(-1), "⠙ builder is working 1m 05s");
  spent = 0.0123;
  shown.event(at(66, REVIEWER, { kind: "begins", text: "review it", conversation: 2 }));
  assert.equal(err.lines.at(-1), "⠙ 2 turns working 1m 05s · $0.01");
  shown.close();
  assert.equal(err.lines.at(-1), "");
  assert.equal(clock.pass(1), false);
});

test("several turns at once: each line says whose it is", () => {
  const { err, screen: shown } = screen({ err: new Terminal(false) });
  shown.event(at(0, BUILDER, { kind: "begins", text: "build", conversation: 1 }));
  shown.event(at(0, REVIEWER, { kind: "begins", text: "review", conversation: 2 }));
  shown.event(at(1, BUILDER, { kind: "text", text: "building" }));
  shown.event(at(1, REVIEWER, { kind: "tool", text: "Read a.py", tool: "Read", input: {} }));
  shown.event(at(1, REVIEWER, { kind: "tool-ends", text: "no such file", tool: "Read", failed: true }));
  shown.event(at(1, REVIEWER, { kind: "failed", text: "quota spent", error: "HarnessThrottled" }));
  shown.event(at(2, REVIEWER, { kind: "ends", text: "", seconds: 2 }));
  shown.event(at(3, BUILDER, { kind: "text", text: "built" }));
  assert.deepEqual(err.lines, [
    "● builder is working · claude/claude-opus-5 · build",
    "● reviewer is working · conversation 2 · codex/gpt-5 · rev…",
    "● builder: building",
    "● reviewer 2: Read(a.py)",
    "  reviewer 2: ⎿ no such file",
    "✗ reviewer: quota spent",
    "  reviewer worked for 2s · gpt-5",
    "● built",
    "",
  ]);
});

test("calls of other flows are shown, the top one is not", () => {
  const { err, screen: shown } = screen({ err: new Terminal(false) });
  shown.event({ kind: "called", at: 1, call: 0, under: 0, flow: "top:top", task: "x" });
  shown.event({ kind: "called", at: 1, call: 1, under: 0, flow: "plan:plan", task: "x" });
  shown.event({ kind: "returned", at: 2, call: 1, flow: "plan:plan", how: "failed" });
  assert.deepEqual(err.lines, ["▸ plan:plan called", "◂ plan:plan failed", ""]);
});

test("what an agent says cannot colour, clear or rename the terminal", () => {
  const evil = "\u001b[2J\u001b]0;owned\u0007\r\u009b31mred";
  const { err, screen: shown } = screen({ env: { NO_COLOR: "1" } });
  shown.event(at(0, { ...BUILDER, agent: evil } as never, { kind: "begins", text: evil, conversation: 1 }));
  for (const kind of ["text", "reasoning", "subagent", "asks", "tool-ends", "notice", "failed"]) {
    shown.event(at(1, { ...BUILDER, agent: evil, model: evil } as never, { kind, text: evil, error: evil }));
  }
  shown.event(at(1, BUILDER, { kind: "tool", tool: evil, text: evil, input: {} }));
  shown.event(at(1, BUILDER, { kind: "result", text: evil, tokens: { [evil]: 1 }, spent: {} }));
  shown.event(at(1, { ...BUILDER, agent: evil } as never, { kind: "ends", text: "", seconds: 1 }));
  shown.note(evil);
  shown.close();
  const foreign = err.raw.replaceAll("\r\u001b[K", "").replaceAll("\u001b[K", "").replaceAll("\r⠋", "⠋");
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(foreign, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
});

test("the clock never wraps, however narrow the terminal or wide the name", () => {
  for (const columns of [1, 2, 10, 24, 80]) {
    const { err, screen: shown } = screen({ err: new Terminal(true, columns), spent: () => 12.5 });
    shown.event(
      at(0, { ...BUILDER, agent: "建设者的名字很长" } as never, { kind: "begins", text: "", conversation: 1 }),
    );
    assert.ok(width(err.lines.at(-1) ?? "") < Math.max(columns, 2), `${columns}: ${err.lines.at(-1)}`);
  }
});

test("what the flow prints goes under the lines and above the clock, and half a line is left whole", () => {
  const { err, screen: shown } = screen({});
  // Both streams are one terminal.
  const { screen: one } = screen({ err, out: err });
  one.event(TURN[0] as RunEvent);
  one.printed("stdout", "half");
  one.printed("stdout", " a line\n");
  one.printed("stderr", "more");
  one.event(at(1, BUILDER, { kind: "text", text: "said" }));
  one.close();
  assert.deepEqual(err.lines.slice(1), ["half a line", "more", "● said", ""]);
  shown.close();
});

test("TERM=dumb has no clock", () => {
  const { clock, err, screen: shown } = screen({ env: { TERM: "dumb" } });
  shown.event(TURN[0] as RunEvent);
  assert.equal(clock.pass(1), false);
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(err.raw, /[\r\u001b]/);
});

test("colours: dim for what passes by, red for a failure, none under NO_COLOR", () => {
  const coloured = screen({});
  coloured.screen.event(at(1, BUILDER, { kind: "failed", text: "no\nway", error: "HarnessRefused" }));
  assert.equal(coloured.err.raw, "\u001b[31m✗ builder: no\u001b[39m\n  \u001b[31mway\u001b[39m\n");
  const plain = screen({ env: { NO_COLOR: "1" } });
  plain.screen.event(at(1, BUILDER, { kind: "failed", text: "no", error: "HarnessRefused" }));
  assert.equal(plain.err.raw, "✗ builder: no\n");
});

test("on a terminal a text is broken between words and goes on under itself, its own indent kept", () => {
  const { err, screen: shown } = screen({ err: new Terminal(true, 30), env: { NO_COLOR: "1" } });
  shown.event(
    at(1, BUILDER, { kind: "text", text: "one two three four five six seven\n  - a list that goes on and on" }),
  );
  shown.event(at(1, BUILDER, { kind: "text", text: "漢字".repeat(14) }));
  shown.event(at(1, BUILDER, { kind: "tool", text: "Bash npm run test -- --only this", tool: "Bash", input: {} }));
  shown.note("record: /a/path/that/is/wider/than/the/terminal");
  shown.close();
  assert.deepEqual(err.lines, [
    "● one two three four five six",
    "  seven",
    "    - a list that goes on and",
    "    on",
    `● ${"漢字".repeat(6)}漢`,
    `  字${"漢字".repeat(6)}`,
    "  漢字",
    "● Bash(npm run test -- --only",
    "  this)",
    "record:",
    "  /a/path/that/is/wider/than/the/terminal",
    "",
  ]);
});

test("a turn that a person stopped is yellow, and not red", () => {
  const { err, screen: shown } = screen({});
  shown.event(at(1, BUILDER, { kind: "failed", text: "the run was stopped", error: "FlowCancelled" }));
  assert.equal(err.raw, "\u001b[33m✗ builder: the run was stopped\u001b[39m\n");
});

test("a turn under ten seconds says its tenths", () => {
  const { err, screen: shown } = screen({});
  shown.event(at(1, BUILDER, { kind: "ends", text: "", seconds: 0.26 }));
  assert.equal(err.lines[0], "  builder worked for 0.2s · claude-opus-5");
});
