/** An agent without a CLI: answers what a test says, and reports what a test says it spends. */

import { type AgentNeed, type Forks, type Harness, HARNESSES } from "../flows/harness.ts";
import type { AgentDriver, Opening, SessionDriver } from "../engine/ports.ts";
import { FakeSession, type FakeTurns } from "./fake-session.ts";
import { Replies, type Reply } from "./reply.ts";

/** What a {@link FakeAgent} answers, serves and reports. */
export interface FakeAgentOptions {
  /** Which harness it stands for. Default `claude`. */
  readonly harness?: Harness | undefined;
  /** What it answers. Left out: "ok", or the defaults of the schema asked for. */
  readonly reply?: Reply | undefined;
  /** Default `fake`. */
  readonly model?: string | undefined;
  readonly effort?: string | undefined;
  readonly provider?: string | undefined;
  /** What it serves. Default: the needs in its harness's row. */
  readonly needs?: Iterable<AgentNeed> | undefined;
  /** USD reported for each answer. Default 0. */
  readonly cost?: number | undefined;
  /** Output tokens reported for each answer. Default 1. */
  readonly outputTokens?: number | undefined;
  /** Seconds reported for each answer; nothing waits. Default 0. */
  readonly seconds?: number | undefined;
  /** Whether, or where, it forks. Default: as its harness does. */
  readonly forks?: boolean | Forks | undefined;
  /** Whether its sessions have no id until their first turn is past its hooks. */
  readonly namesLate?: boolean | undefined;
}

/**
 * An agent for tests: taken by `runFake` and wherever the SDK takes an agent's spec.
 *
 * Its turns are instant. It refuses what its harness refuses.
 */
export class FakeAgent implements AgentDriver {
  readonly harness: Harness;
  readonly model: string;
  readonly effort: string;
  readonly provider: string;
  readonly serves: ReadonlySet<AgentNeed>;
  readonly forks: Forks;
  readonly shelves: boolean;
  /** Every prompt that any session was sent, with what hooks added to it, and the reasons of stop hooks. */
  readonly prompts: string[] = [];
  /** Every session, in the order they were opened. */
  readonly sessions: FakeSession[] = [];
  readonly #turns: FakeTurns;
  #live = 0;
  #peak = 0;
  #closed = 0;

  constructor(options: FakeAgentOptions = {}) {
    const { harness = "claude", model = "fake", effort = "", provider = "" } = options;
    const { cost = 0, outputTokens = 1, seconds = 0, namesLate = false } = options;
    const row = HARNESSES[harness];
    this.harness = harness;
    this.model = model;
    this.effort = effort;
    this.provider = provider;
    this.serves = new Set(options.needs ?? row.needs);
    this.shelves = harness !== "litellm";
    this.forks = forksOf(options.forks, row.forks);
    const spend = { model, tokens: { output: outputTokens }, cost, seconds };
    this.#turns = {
      harness,
      serves: this.serves,
      forks: this.forks,
      kept: new Map(),
      spend,
      namesLate,
      replies: new Replies(options.reply),
      prompted: (prompt) => this.prompts.push(prompt),
      closed: () => this.#live--,
    };
  }

  /** Sessions that are open now. */
  get live(): number {
    return this.#live;
  }

  /** The most sessions that were open at once. */
  get peak(): number {
    return this.#peak;
  }

  /** How many times it was closed: once a run. */
  get closed(): number {
    return this.#closed;
  }

  open(opening: Opening): SessionDriver {
    const session = new FakeSession(this.#turns, opening, `fake-${this.sessions.length + 1}`);
    this.sessions.push(session);
    this.#live++;
    this.#peak = Math.max(this.#peak, this.#live);
    return session;
  }

  async close(): Promise<void> {
    this.#closed++;
  }
}

function forksOf(given: boolean | Forks | undefined, harness: Forks): Forks {
  if (typeof given === "string") return given;
  if (given === undefined) return harness;
  if (!given) return "never";
  return harness === "never" ? "in-place" : harness;
}
