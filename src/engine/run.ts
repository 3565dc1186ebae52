/** One run: the top call and everything under it. */

import { type Budget, budget as readBudget, type BudgetLike, type Usage } from "../flows/budget.ts";
import { FlowCancelled } from "../flows/errors.ts";
import type { FlowState } from "../flows/context.ts";
import type { Outworlder } from "../flows/agent.ts";
import type { Flow } from "../flows/flow.ts";
import type { Harness } from "../flows/harness.ts";
import type { FlowIdentity } from "../flows/definition.ts";
import { Call, type Handed } from "./call.ts";
import { Cancellation } from "./cancellation.ts";
import { Copies } from "./copies.ts";
import type { CallDigest } from "./digest.ts";
import type { Ending } from "./events.ts";
import { Journal, type JournaledCall } from "./journal.ts";
import { sessionsKeptBy } from "./kept.ts";
import { newOutworlder, type OutworlderRecord } from "./outworlder.ts";
import { readParams } from "./params.ts";
import type { JournalStore, KeptDirectory, Place, Recorder, RunSetup, Spend } from "./ports.ts";
import { SpentQuotas } from "./quota.ts";
import { handedOver, handedToTop, runsPerson } from "./requirement.ts";
import type { SessionRecord } from "./session.ts";
import { Skills } from "./skills.ts";
import { CallState, memoryStore } from "./state.ts";

/** A flow call that is going. */
export interface LiveCall {
  readonly id: number;
  /** The id that the run's journal has for it; `undefined` where the run keeps none. */
  readonly journaled: number | undefined;
  readonly ref: string;
  readonly name: string;
  readonly depth: number;
  /** Unix seconds. */
  readonly since: number;
  /** The call that called it; `undefined` for the top one. */
  readonly parent: number | undefined;
  readonly task: string;
  readonly resumable: boolean;
}

export interface EngineRun {
  /** What the flow returned. Settles once every session of the run is closed. */
  readonly result: Promise<unknown>;
  /** Current on every read. */
  readonly usage: Usage;
  /** Cancels the flow where it is: turns are interrupted, `finally` blocks run, sessions are closed. */
  stop(reason?: string): void;
  /** Stops it without waiting for what unwinds: flows and harnesses that still go are given up, sessions are closed. */
  abandon(): void;
  /** The calls that are going, oldest first. */
  running(): readonly LiveCall[];
}

/** A run that was checked. */
export interface PreparedRun {
  /**
   * Starts it: the flow's code runs from here on. Called once.
   *
   * @param journal Of a resumable flow. Left out: its states are held in memory. Closed with the run.
   */
  start(journal?: JournalStore): EngineRun;
}

/**
 * Checks a run. Whoever starts it writes down that it began in between: a flow that never lets go of the process would
 * leave no record otherwise.
 *
 * @throws RequirementError where what is given does not meet the flow's declaration; nothing ran.
 * @throws ParamsError where its params do not validate.
 * @throws RangeError where its budget is none.
 */
export function prepareRun(setup: RunSetup): PreparedRun {
  const run = new Run(setup);
  return {
    start: (journal) => ({
      result: run.start(journal),
      get usage() {
        return run.usage;
      },
      stop: (reason) => run.stop(reason),
      abandon: () => run.abandon(),
      running: () => run.running(),
    }),
  };
}

/** Checks a run and starts it. @throws as `prepareRun`. */
export function startRun(setup: RunSetup, journal?: JournalStore): EngineRun {
  return prepareRun(setup).start(journal);
}

/** What calls, sessions and turns of one run share. */
export class Run {
  readonly recorder: Recorder;
  /** Cancelled where nothing that unwinds is waited for any more. */
  readonly abandoned = new Cancellation();
  readonly workspace: Place;
  readonly quotas = new SpentQuotas();
  readonly copies = new Copies();
  /** What its calls asked for and were refused. */
  refused = 0;
  #journal: Journal | undefined;
  #digest: CallDigest = () => "";
  readonly #setup: RunSetup;
  readonly #top: Call;
  readonly #handed: Handed;
  readonly #params: Record<string, unknown>;
  readonly #going = new Map<number, Call>();
  readonly #loaded = new Map<string, Promise<Flow>>();
  readonly #skills: Skills;
  readonly #conversations = new Map<string, number>();
  readonly #named = new WeakMap<SessionRecord, string>();
  /** The role of the top flow that the run's person fills, whatever role a callee knows them under. */
  readonly #person: string;
  #calls = 0;
  #turns = 0;

  constructor(setup: RunSetup) {
    this.#setup = setup;
    this.recorder = setup.recorder;
    this.workspace = setup.workspace;
    this.#skills = new Skills(setup.skills);
    const limits: Budget | undefined = setup.budget === undefined ? undefined : readBudget(setup.budget as BudgetLike);
    this.#top = new Call(this, undefined, setup.flow, setup.task, limits);
    const role = this.#top.definition.agents.find(({ kind }) => kind === "outworlder");
    this.#person = role?.name ?? "outworlder";
    this.#handed = handedToTop(this.#top, setup);
    this.#params = readParams(this.#top.ref, this.#top.definition.params, setup.params);
  }

  async start(journal?: JournalStore): Promise<unknown> {
    this.#journal = journal && new Journal(journal);
    try {
      // A run without a journal does without what hashes.
      if (this.#journal) this.#digest = await (await import("./digest.ts")).callDigest();
      this.#top.cancellation.throwIfCancelled();
      return await this.#top.execute({ ...this.#handed, params: this.#params }, []);
    } finally {
      await this.copies.close();
      await this.#journal?.close();
    }
  }

  get usage(): Usage {
    return this.#top.ledger.usage;
  }

  stop(reason = "the run was stopped"): void {
    this.#top.cancellation.cancel(new FlowCancelled(`${this.#top.ref}: ${reason}`));
  }

  abandon(): void {
    this.stop();
    this.abandoned.cancel(this.#top.cancellation.reason);
  }

  running(): readonly LiveCall[] {
    return [...this.#going.values()].map((call) => ({
      id: call.id,
      journaled: call.journaled?.id,
      ref: call.ref,
      name: call.definition.identity.name,
      depth: call.depth,
      since: call.startedAt / 1_000,
      parent: call.above?.id,
      task: call.task,
      resumable: call.definition.resumable,
    }));
  }

  // ── what its calls, sessions and turns ask of it ──────────────────────────────────────────────────────────────────

  nextCallId(): number {
    return this.#calls++;
  }

  nextTurn(): number {
    return ++this.#turns;
  }

  /** The number of a role's next conversation, from 1. */
  nextConversation(role: string): number {
    const next = (this.#conversations.get(role) ?? 0) + 1;
    this.#conversations.set(role, next);
    return next;
  }

  /** The call as the journal holds it, with the earlier one that it picks up; `undefined` without a journal. */
  journaled(call: Call, given: Handed & { readonly params: unknown }): JournaledCall | undefined {
    const journal = this.#journal;
    if (!journal) return undefined;
    const digest = this.#digest(call, given);
    return call.above ? call.above.journaled?.child(digest, call.ref) : journal.begin(digest, call.ref);
  }

  /** What a resumable flow's call keeps; in memory where the run has no journal. */
  state(call: Call): FlowState {
    return new CallState(call.journaled?.store ?? memoryStore(), sessionsKeptBy(call));
  }

  /** What a call waits for before anything leaves the process; `undefined` where that is nothing. */
  settling({ ref }: Call): Promise<void> | undefined {
    return this.#journal?.settled(ref);
  }

  keep(harness: Harness): KeptDirectory {
    return this.#setup.keep(harness);
  }

  began(call: Call): void {
    this.#going.set(call.id, call);
    if (!call.above) return;
    this.recorder.record({
      kind: "called",
      at: Date.now() / 1_000,
      call: call.id,
      under: call.above.id,
      flow: call.ref,
      task: call.task,
    });
  }

  returned(call: Call, how: Ending): void {
    this.#going.delete(call.id);
    call.journaled?.ended(how === "done");
    if (!call.above) return;
    this.recorder.record({ kind: "returned", at: Date.now() / 1_000, call: call.id, flow: call.ref, how });
  }

  /** A session's harness named its conversation: told once for each name. */
  opened(session: SessionRecord, id: string): void {
    if (id === "" || this.#named.get(session) === id) return;
    this.#named.set(session, id);
    const { call, role, driver } = session.agent.family;
    const parent = session.forkOf?.driver?.id ?? session.carries?.id;
    call.journaled?.opened({ role, harness: driver.harness, model: driver.model, session: id });
    this.recorder.record({
      kind: "opened",
      at: Date.now() / 1_000,
      call: call.id,
      agent: role,
      cli: driver.harness,
      provider: driver.provider,
      session: id,
      ...(parent ? { parent } : {}),
    });
  }

  /** Something of a session that happened outside any turn. */
  notice(session: SessionRecord, text: string): void {
    const { call, role, driver } = session.agent.family;
    this.recorder.record({
      kind: "notice",
      at: Date.now() / 1_000,
      agent: role,
      cli: driver.harness,
      model: driver.model,
      session: session.driver?.id ?? "",
      call: call.id,
      turn: this.#turns,
      text,
    });
  }

  /** Something of a call that is no agent's doing. */
  remark(call: Call, role: string, text: string): void {
    this.recorder.record({
      kind: "notice",
      at: Date.now() / 1_000,
      agent: role,
      cli: "",
      model: "",
      session: "",
      call: call.id,
      turn: this.#turns,
      text,
    });
  }

  /** USD; `undefined` for a model with no price. */
  priced({ model, tokens }: Spend): number | undefined {
    return this.#setup.prices.cost(model, tokens);
  }

  /** The same ref from the same module is resolved once a run. */
  load(ref: string, asking: FlowIdentity): Promise<Flow> {
    const key = `${asking.directory}\0${asking.ref}\0${ref}`;
    let loading = this.#loaded.get(key);
    if (!loading) {
      loading = this.#setup.load(ref, asking);
      this.#loaded.set(key, loading);
      loading.catch(() => this.#loaded.delete(key));
    }
    return loading;
  }

  handOver(call: Call, agents: Readonly<Record<string, unknown>>, envs: Readonly<Record<string, unknown>>): Handed {
    return handedOver(call, agents, envs);
  }

  /** Gives a call's agents their skills; `undefined` where there is nothing to wait for. */
  equip(call: Call, handed: Handed): Promise<unknown> | undefined {
    return this.#skills.given(call, handed);
  }

  newOutworlder(call: Call): Outworlder {
    return newOutworlder(call);
  }

  person(call: Call, role: string): OutworlderRecord {
    return runsPerson(call, role, this.#setup, call.above ? this.#person : role);
  }
}
