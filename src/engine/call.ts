/** One call of a flow: its context, what it spends, what it opened, and how it ends. */

import { asking, type CallArguments, type Caller } from "../flows/ambient.ts";
import type { Outworlder } from "../flows/agent.ts";
import { type Budget, budget as readBudget, type Usage } from "../flows/budget.ts";
import type { EffectiveBudget, FlowContext, FlowState, Group } from "../flows/context.ts";
import { definition, type FlowDefinition } from "../flows/definition.ts";
import { BudgetExceeded, FlowCancelled, FlowDepthExceeded } from "../flows/errors.ts";
import type { AnyFlow, Flow } from "../flows/flow.ts";
import { Cancellation } from "./cancellation.ts";
import { atInstant } from "./deadline.ts";
import type { Ending } from "./events.ts";
import { runGroup } from "./group.ts";
import { readParams } from "./params.ts";
import { refused } from "./refusal.ts";
import type { Run } from "./run.ts";
import type { SessionRecord } from "./session.ts";
import { exceeded, Ledger } from "./spend.ts";
import type { JournaledCall } from "./journal.ts";

/** The deepest that flows may call one another. */
const DEEPEST = 64;

/** How long a cancelled flow is given to come to an end of its own: its `finally` blocks run in this time. */
const UNWIND_MS = 5_000;

/** How many turns a call may ask for that its spent budget refuses. */
const MOST_REFUSALS = 1_000;

/** The views that a call's function is given. */
export interface Handed {
  readonly agents: Readonly<Record<string, unknown>>;
  readonly envs: Readonly<Record<string, unknown>>;
}

export class Call {
  readonly run: Run;
  readonly above: Call | undefined;
  readonly flow: AnyFlow;
  readonly definition: FlowDefinition;
  readonly task: string;
  readonly id: number;
  readonly depth: number;
  readonly ledger: Ledger;
  /** Ms since the epoch. */
  readonly startedAt = Date.now();
  /** Cancelled with the error that says why the call, and everything under it, is to end. */
  readonly cancellation = new Cancellation();
  readonly context: FlowContext;
  /** As the run's journal holds it; `undefined` where the run keeps none. Set before the flow's function runs. */
  journaled: JournaledCall | undefined;
  /** What its function is given. */
  handed: Handed | undefined;
  readonly #sessions = new Set<SessionRecord>();
  readonly #children = new Set<Call>();
  #turnsUnderWay = 0;
  /** What its code asked for after it had ended. */
  asksAfterEnd = 0;
  /** Turns that were refused because the budget is spent. */
  #refusals = 0;
  #turnsAtRest: (() => void)[] = [];
  #scope: Scope | undefined;
  #ended = false;
  #over = false;
  #whenOver: (() => void)[] = [];

  constructor(run: Run, above: Call | undefined, flow: AnyFlow, task: string, limits: Budget | undefined) {
    this.run = run;
    this.above = above;
    this.flow = flow;
    this.definition = definition(flow);
    this.task = task;
    this.id = run.nextCallId();
    this.depth = above ? above.depth + 1 : 1;
    this.ledger = new Ledger(above?.ledger, limits, this.startedAt);
    this.context = new CallContext(this);
  }

  get ref(): string {
    return this.definition.identity.ref;
  }

  /** What the call's own code runs under, group members apart. */
  get scope(): Scope {
    return (this.#scope ??= new Scope(this));
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Throws where this call, one above it, or the run has ended or was cancelled. */
  assertGoing(): void {
    for (let call: Call | undefined = this; call; call = call.above) {
      call.cancellation.throwIfCancelled();
    }
  }

  /** Throws the leaf of a budget that is spent, here or above. */
  assertAffordable(): void {
    const limit = this.ledger.spent(Date.now());
    if (!limit) return;
    const error = exceeded(this.ref, limit);
    // Whoever goes on asking does not look at what it is told: nothing else would ever end the call.
    if (++this.#refusals >= MOST_REFUSALS) this.cancellation.cancel(error);
    throw error;
  }

  holds(session: SessionRecord): void {
    this.#sessions.add(session);
  }

  drops(session: SessionRecord): void {
    this.#sessions.delete(session);
  }

  turnBegins(): void {
    for (let call: Call | undefined = this; call; call = call.above) call.#turnsUnderWay++;
  }

  turnEnds(): void {
    for (let call: Call | undefined = this; call; call = call.above) {
      if (--call.#turnsUnderWay === 0) for (const resume of call.#turnsAtRest.splice(0)) resume();
    }
  }

  /**
   * Runs the flow's function to its end, and ends everything that ends with it.
   *
   * Everything about what it is given was checked before: a call that is refused is never recorded as one.
   */
  async execute(given: Handed & { readonly params: unknown }, cancellers: readonly Canceller[]): Promise<unknown> {
    const { run, definition, task } = this;
    const whole = { ...given, ctx: this.context } as never;
    const undo = this.#cancelledBy(cancellers);
    if (this.above) this.above.#children.add(this);
    let begun = false;
    let how: Ending = "failed";
    try {
      const equipping = run.equip(this, given);
      if (equipping) await this.#unlessCancelled(equipping);
      this.handed = given;
      this.journaled = run.journaled(this, given);
      const settling = run.settling(this);
      if (settling) await settling;
      run.began(this);
      begun = true;
      const result = await this.#outcome(asking.run(this.scope, async () => definition.run(task, whole)));
      how = "done";
      return result;
    } catch (error) {
      if (error instanceof BudgetExceeded || error instanceof FlowCancelled) how = "stopped";
      throw error;
    } finally {
      for (const step of undo) step();
      if (how === "done" && this.#turnsUnderWay > 0) {
        run.remark(this, "", `${this.ref} returned with a turn still under way, which ends now: is an await missing?`);
      }
      await this.#end();
      if (begun) run.returned(this, how);
    }
  }

  /** Waits until what the run's states hold is on disk, where the run asked for that: before anything leaves it. */
  async settled(): Promise<void> {
    await this.run.settling(this);
  }

  /** What is waited for before the flow's function runs; why the call was cancelled, where it is meanwhile. */
  #unlessCancelled(work: Promise<unknown>): Promise<void> {
    const { cancellation } = this;
    return new Promise((resolve, reject) => {
      const unlisten = cancellation.on(() => reject(cancellation.reason));
      work.finally(unlisten).then(() => (cancellation.cancelled ? reject(cancellation.reason) : resolve()), reject);
    });
  }

  /** What the flow's function comes to; once the call is cancelled, why it was, after the function had time to unwind. */
  #outcome(flow: Promise<unknown>): Promise<unknown> {
    const { cancellation } = this;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      // A function that listens to nothing is left to itself: whatever it asks for next is refused.
      const unlisten = cancellation.on(() => {
        timer = setTimeout(() => reject(cancellation.reason as Error), UNWIND_MS);
      });
      const unabandon = this.run.abandoned.on(() => {
        clearTimeout(timer);
        reject(cancellation.reason);
      });
      const settle = (settled: () => void): void => {
        clearTimeout(timer);
        unlisten();
        unabandon();
        settled();
      };
      flow.then(
        (result) => settle(() => (cancellation.cancelled ? reject(cancellation.reason) : resolve(result))),
        (error: unknown) =>
          settle(() =>
            reject(cancellation.cancelled && isCancellation(error) ? (cancellation.reason as Error) : (error as Error)),
          ),
      );
    });
  }

  /** Cancels the call when what is above it is, and when its deadline passes. Returns what takes that back. */
  #cancelledBy(cancellers: readonly Canceller[]): (() => void)[] {
    const { cancellation } = this;
    const undo = cancellers.map((canceller) =>
      canceller instanceof Cancellation ? cancellation.follow(canceller) : cancellation.followSignal(canceller),
    );
    const { limits } = this.ledger;
    if (limits?.duration !== undefined) {
      undo.push(atInstant(this.startedAt + limits.duration, () => void this.#deadlinePassed()));
    }
    return undo;
  }

  async #deadlinePassed(): Promise<void> {
    if (this.ledger.graceful.duration && this.#turnsUnderWay > 0) {
      await new Promise<void>((resolve) => this.#turnsAtRest.push(resolve));
      // A flow that only returns after its last turn loses nothing by the deadline.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (!this.#ended) this.cancellation.cancel(exceeded(this.ref, "duration"));
  }

  /** Cancels the calls under this one that still go, and closes what it opened once they have ended. */
  async #end(): Promise<void> {
    this.#ended = true;
    for (const child of this.#children)
      child.cancellation.cancelBecause(() => new FlowCancelled(`${child.ref}: ${this.ref} has ended`));
    this.cancellation.cancelBecause(
      () => new FlowCancelled(`${this.ref}: ${this.above ? this.ref : "the run"} has ended`),
    );
    if (this.above) this.above.#children.delete(this);
    if (this.#children.size > 0) await Promise.all([...this.#children].map((child) => child.#isOver()));
    if (this.#sessions.size > 0) await this.closeSessions();
    const removing = this.run.copies.endOf(this);
    if (removing) await removing;
    this.#over = true;
    for (const resolve of this.#whenOver) resolve();
  }

  /** Resolves once the call has ended and everything that it opened is closed. */
  async #isOver(): Promise<void> {
    if (!this.#over) await new Promise<void>((resolve) => this.#whenOver.push(resolve));
  }

  async closeSessions(): Promise<void> {
    await Promise.all([...this.#sessions].map((session) => session.close()));
  }

  /** Structured concurrency, under whatever the running code is under. */
  group<T>(body: (group: Group) => Promise<T> | T): Promise<T> {
    return runGroup(
      {
        above: cancellationOf(this),
        cancelled: (cause) => new FlowCancelled(`${this.ref}: another member of the group failed`, { cause }),
        enter: (cancellation, fn) => asking.run(new Scope(this, cancellation), fn),
      },
      body,
    );
  }
}

type Canceller = Cancellation | AbortSignal;

/** Whether an error only says that its call was cancelled; one that the flow throws while it unwinds does not. */
function isCancellation(error: unknown): boolean {
  return (
    error instanceof FlowCancelled ||
    error instanceof BudgetExceeded ||
    (typeof error === "object" && error !== null && (error as { name?: unknown }).name === "AbortError")
  );
}

class CallContext implements FlowContext {
  readonly #call: Call;
  #state: FlowState | undefined;

  constructor(call: Call) {
    this.#call = call;
    Object.freeze(this);
  }

  get flow(): AnyFlow {
    return this.#call.flow;
  }

  get budget(): EffectiveBudget {
    return this.#call.ledger.effective();
  }

  get usage(): Usage {
    return this.#call.ledger.usage;
  }

  get state(): FlowState | undefined {
    const call = this.#call;
    if (!call.definition.resumable) return undefined;
    return (this.#state ??= call.run.state(call));
  }

  get resumed(): boolean {
    return this.#call.journaled?.earlier ?? false;
  }

  get signal(): AbortSignal {
    return this.#call.cancellation.signal;
  }

  group<T>(body: (group: Group) => Promise<T> | T): Promise<T> {
    return this.#call.group(body);
  }
}

let cancellationIn: (scope: Scope, call: Call) => Cancellation | undefined;

/** A call, or a member of a group in it, as the flows and views that its code uses know it. */
export class Scope implements Caller {
  readonly #call: Call;
  readonly #cancellation: Cancellation;

  constructor(call: Call, cancellation: Cancellation = call.cancellation) {
    this.#call = call;
    this.#cancellation = cancellation;
  }

  static {
    cancellationIn = (scope, call) => (scope.#call === call ? scope.#cancellation : undefined);
  }

  async call(flow: AnyFlow, task: string, options: CallArguments): Promise<unknown> {
    let admitted: () => Promise<unknown>;
    try {
      admitted = this.#admitted(flow, task, options);
    } catch (error) {
      return refused(this.#call, error);
    }
    return admitted();
  }

  /** The call, where nothing refuses it, to be made at once. */
  #admitted(flow: AnyFlow, task: string, options: CallArguments): () => Promise<unknown> {
    const above = this.#call;
    const { ref } = definition(flow).identity;
    for (let call: Call | undefined = above; call; call = call.above) {
      if (call.ended) throw new FlowCancelled(`${ref}: ${call.above ? call.ref : "the run"} has ended`);
      call.cancellation.throwIfCancelled();
    }
    this.#cancellation.throwIfCancelled();
    options.signal?.throwIfAborted();
    if (above.depth >= DEEPEST) {
      throw new FlowDepthExceeded(`${ref}: flows are called ${DEEPEST + 1} deep, and ${DEEPEST} is the most`);
    }
    const limits = options.budget === undefined ? undefined : ownBudget(options.budget);
    const call = new Call(above.run, above, flow, task, limits);
    const { agents = {}, envs = {}, signal } = options;
    const handed = above.run.handOver(call, agents, envs);
    const params = readParams(call.ref, call.definition.params, options.params);
    return () => call.execute({ ...handed, params }, signal ? [this.#cancellation, signal] : [this.#cancellation]);
  }

  load(ref: string): Promise<Flow> {
    return this.#call.run.load(ref, this.#call.definition.identity);
  }

  newOutworlder(): Outworlder {
    return this.#call.run.newOutworlder(this.#call);
  }
}

/** What the running code of a call is under: a group's cancellation where it runs in one, else the call's own. */
export function cancellationOf(call: Call): Cancellation {
  const store = asking.getStore();
  return (store instanceof Scope ? cancellationIn(store, call) : undefined) ?? call.cancellation;
}

/**
 * Runs a function as a call's flow: what it calls and loads is that flow's doing.
 *
 * @param cancellation Ends the turns and calls that it begins; the call's own where left out.
 */
export function asFlow<T>(call: Call, fn: () => T, cancellation?: Cancellation): T {
  return asking.run(cancellation ? new Scope(call, cancellation) : call.scope, fn);
}

function ownBudget(given: unknown): Budget {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError("a call's budget is made by budget({ duration, cost, outputTokens, graceful })");
  }
  return readBudget(given);
}
