/** One run of a flow, from what is asked for to how it ended. */

import { join } from "node:path";
import type { Ending, RunEvent } from "../engine/events.ts";
import type { JournalStore, OutworlderDriver, Recorder } from "../engine/ports.ts";
import type { EngineRun, LiveCall } from "../engine/run.ts";
import type { Usage } from "../flows/budget.ts";
import { BudgetExceeded, FlowCancelled, FlowException } from "../flows/errors.ts";
import type { Began, EpicWriter } from "../home/epic.ts";
import type { TemporaryShelf } from "../home/kept.ts";
import { EventQueue } from "./event-queue.ts";
import { prepare, type Prepared, refusedBecause, type RunParts } from "./prepare.ts";
import { noteRun } from "./leftovers.ts";
import { Refused } from "./refused.ts";
import { isPricedByTable, unpricedModels } from "./unpriced.ts";

const NOBODY: OutworlderDriver = {
  away: () => true,
  ask: () => Promise.reject(new Error("nobody is outside this run")),
};

const NOTHING_SPENT: Usage = { duration: 0, cost: 0, outputTokens: 0 };

/** Any length that a timer can have. */
const HOLD_MS = 3_600_000;

type Watcher = (event: RunEvent) => void;

/** The runs of this process that go, oldest first. */
const going = new Set<Run>();

/** Every flow call that is going in this process, oldest first. */
export function runningCalls(): readonly LiveCall[] {
  return [...going].flatMap((run) => run.running).sort((one, other) => one.since - other.since);
}

/** A run. Nothing of it has started until `start` or `wait` is called. */
export class Run {
  readonly task: string;
  /** As it was named. */
  readonly flow: string;
  readonly #parts: RunParts;
  #preparing: Promise<Prepared> | undefined;
  #prepared: Prepared | undefined;
  #refreshing: Promise<void> | undefined;
  #stopRefreshing = (): void => {};
  #stalePrices = "";
  #starting: Promise<void> | undefined;
  #ended: Promise<unknown> | undefined;
  #engine: EngineRun | undefined;
  #epic: EpicWriter | undefined;
  #result: unknown;
  #stops = 0;
  /** Takes away the note that this run goes. */
  #forget = (): void => {};
  #stopReason = "the run was stopped";
  #fault: { readonly error: unknown } | undefined;
  #over = false;
  #trouble: Error | undefined;
  #profile: { stop(): void } | undefined;
  /** Conversations that a run without a journal keeps. */
  #shelf: TemporaryShelf | undefined;
  readonly #watchers = new Set<Watcher>();
  readonly #queues = new Set<EventQueue<RunEvent>>();

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.task = parts.task;
    this.flow = typeof parts.flow === "string" ? parts.flow : parts.flow.name;
  }

  /** The flow's canonical ref; `""` until it was found. */
  get ref(): string {
    return this.#prepared?.definition.identity.ref ?? "";
  }

  /**
   * The epic that it picks up, and the lines of its journal that could not be read and are passed over; `undefined` for
   * a run from the beginning, and until it was checked.
   */
  get picksUp(): { readonly epic: string; readonly bad: readonly number[] } | undefined {
    return this.#prepared?.earlier;
  }

  /** What the flow returned; `undefined` until then. */
  get result(): unknown {
    return this.#result;
  }

  /** What the run has spent so far. */
  get usage(): Usage {
    return this.#engine?.usage ?? NOTHING_SPENT;
  }

  /** The directory of the run's epic, once it has started. */
  get epic(): string | undefined {
    return this.#epic?.directory;
  }

  /** The flow calls that are going, oldest first. */
  get running(): readonly LiveCall[] {
    return this.#over ? [] : (this.#engine?.running() ?? []);
  }

  /** The first record of the run that could not be written; the run goes on without. */
  get trouble(): Error | undefined {
    return this.#trouble;
  }

  /**
   * The run's events from now on. Each loop over it is a reader at its own pace, and ends with the run.
   */
  get events(): AsyncIterable<RunEvent> {
    return {
      [Symbol.asyncIterator]: () => {
        const queue: EventQueue<RunEvent> = new EventQueue(() => this.#queues.delete(queue));
        if (this.#over) queue.end();
        else this.#queues.add(queue);
        return queue;
      },
    };
  }

  /** Calls `listener` with each event as it happens. What it throws is lost. Returns what ends that. */
  watch(listener: Watcher): () => void {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  }

  /**
   * Finds the flow and checks everything that can be checked beforehand; brings the prices up to date where the run is
   * held to them. Starts nothing.
   *
   * @throws Refused
   */
  async check(): Promise<void> {
    this.#preparing ??= prepare(this.#parts);
    this.#prepared = await this.#preparing;
    this.#refreshing ??= this.#refresh(this.#prepared);
    await this.#refreshing;
  }

  async #refresh(prepared: Prepared): Promise<void> {
    const { options, env } = this.#parts;
    if (!isPricedByTable(prepared, options)) return;
    const { refreshPrices } = await import("../home/prices-refresh.ts");
    const stopped = new Promise<string>((resolve) => {
      this.#stopRefreshing = () => resolve("");
      if (this.#stops > 0) resolve("");
    });
    this.#stalePrices = await Promise.race([refreshPrices(env), stopped]);
  }

  /**
   * The cost limit that nothing can enforce, in a sentence: a model without a price counts as costing nothing. `""` where
   * every model has one, where cost is not limited, and until the run was checked.
   */
  unreadable(): string {
    return this.#prepared ? unpricedModels(this.#prepared, this.#parts.options) : "";
  }

  /** Why the prices that the run is held to could not be brought up to date, in a sentence; `""` otherwise. */
  stalePrices(): string {
    return this.#stalePrices;
  }

  /**
   * Starts the run; resolves once it goes.
   *
   * @throws Refused where it is refused before anything of it ran.
   */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /**
   * Waits for the end, starting the run where it was not. Resolves to what the flow returned, once everything that the
   * run made was released.
   *
   * @throws Refused where it was refused; BudgetExceeded where its budget ended it; FlowCancelled where it was stopped;
   *   otherwise what the flow threw.
   */
  async wait(): Promise<unknown> {
    await this.start();
    return this.#ended;
  }

  /**
   * Stops the run: turns under way are interrupted, the flow's `finally` blocks run, everything is released. Does not
   * wait. A second stop waits for nothing that unwinds.
   */
  stop(reason?: string): void {
    this.#stops += 1;
    if (this.#stops === 1 && reason !== undefined) this.#stopReason = reason;
    this.#stopRefreshing();
    this.#engine?.stop(this.#stopReason);
    if (this.#stops > 1) this.#engine?.abandon();
  }

  /**
   * Ends the run as failed: an error was thrown where no call of its flow can fail with it, in a timer or a listener.
   * `wait` rejects with it.
   */
  fail(error: unknown): void {
    this.#fault ??= { error };
    this.stop("its code threw where nothing could catch it");
  }

  /** The process ends, and the run with it: its record says that it failed. Does not wait. */
  cutShort(error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#profile?.stop();
    const usage = this.#engine?.usage ?? NOTHING_SPENT;
    this.#epic?.end({ how: "failed", usage, error: recorded(error) });
  }

  /** Stops the run where it has not ended, and waits until everything is released. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#starting) return;
    if (!this.#over) this.stop();
    await this.wait().catch(() => {});
  }

  async #start(): Promise<void> {
    const { signal } = this.#parts.options;
    const abort = (): void => this.stop();
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      await this.check();
      await this.#launch(this.#prepared as Prepared, () => signal?.removeEventListener("abort", abort));
    } catch (error) {
      signal?.removeEventListener("abort", abort);
      this.#finish();
      this.#forget();
      await this.#prepared?.close();
      throw error instanceof FlowCancelled ? error : refusedBecause(error);
    }
  }

  async #launch(prepared: Prepared, done: () => void): Promise<void> {
    const { flow, earlier } = prepared;
    const [{ prepareRun }, { createEpic, EPIC_FILES }, { keptUnder, temporaryShelf }, { machineDir }, journals, home] =
      await Promise.all([
        import("../engine/run.ts"),
        import("../home/epic.ts"),
        import("../home/kept.ts"),
        import("../home/paths.ts"),
        flow.resumable ? import("../home/journal.ts") : undefined,
        this.#parts.home(),
      ]);
    this.#forget = await noteRun(this.#parts.env, home);
    // Nothing is waited for from here until the engine goes: a stop that came before would reach nobody.
    if (this.#stops > 0) throw new FlowCancelled(`${this.flow}: ${this.#stopReason}`);
    const recorder: Recorder = {
      record: (event) => {
        this.#epic?.record(event);
        this.#tell(event);
      },
    };
    const { workspace, budget, params, prices, chat } = prepared;
    const shelf = temporaryShelf(() => machineDir(this.#parts.env));
    this.#shelf = shelf;
    const checked = prepareRun({
      flow,
      task: this.task,
      agents: prepared.agents,
      envs: prepared.envs,
      workspace,
      outworlder: this.#parts.options.outworlder ?? NOBODY,
      params,
      budget,
      prices,
      recorder,
      load: prepared.catalog.loader(),
      skills: prepared.skills,
      keep: (harness) => (journals && this.#epic ? keptUnder(this.#epic.directory) : shelf.keep)(harness),
      fullView: chat,
    });
    const trouble = (error: Error): void => void (this.#trouble ??= error);
    let journal: JournalStore | undefined;
    try {
      this.#epic = createEpic({
        home,
        workspace: workspace.workdir,
        began: began(this.flow, this.task, prepared),
        trouble,
      });
      journal = journals?.openJournal({
        path: join(this.#epic.directory, EPIC_FILES.journal),
        ...(earlier ? { earlier: earlier.records } : {}),
        durable: this.#parts.options.durable ?? false,
        trouble,
      });
      const file = join(this.#epic.directory, EPIC_FILES.profile);
      this.#profile = prepared.profile?.({ pid: process.pid, file, trouble });
    } catch (error) {
      throw new Refused(`the record of the run cannot be kept: ${(error as Error).message}`, { cause: error });
    }
    const engine = checked.start(journal);
    this.#engine = engine;
    going.add(this);
    this.#ended = this.#end(engine, prepared).finally(done);
    // Whoever only starts a run and reads its events is not to be ended by its failure.
    this.#ended.catch(() => {});
  }

  async #end(engine: EngineRun, prepared: Prepared): Promise<unknown> {
    // A flow may wait for a promise that no handle stands behind: Node would end the process with the run still going.
    const held = setInterval(() => {}, HOLD_MS);
    let how: Ending = "done";
    let error: unknown;
    try {
      this.#result = await engine.result;
    } catch (thrown) {
      error = thrown;
      const stopped = this.#stops > 0 || thrown instanceof BudgetExceeded || thrown instanceof FlowCancelled;
      how = stopped ? "stopped" : "failed";
    }
    if (this.#fault) {
      ({ error } = this.#fault);
      how = "failed";
    }
    await prepared.close();
    this.#profile?.stop();
    this.#shelf?.remove();
    this.#forget();
    this.#epic?.end({ how, usage: engine.usage, ...(how === "done" ? {} : { error: recorded(error) }) });
    this.#finish();
    clearInterval(held);
    if (how !== "done") throw error;
    return this.#result;
  }

  #tell(event: RunEvent): void {
    for (const watcher of this.#watchers) {
      try {
        watcher(event);
      } catch {
        // A reader that fails is no failure of the run.
      }
    }
    for (const queue of this.#queues) queue.push(event);
  }

  #finish(): void {
    this.#over = true;
    going.delete(this);
    for (const queue of this.#queues) queue.end();
    this.#queues.clear();
    this.#watchers.clear();
  }
}

function began(flow: string, task: string, prepared: Prepared): Began {
  const { budget } = prepared;
  return {
    flow,
    ref: prepared.definition.identity.ref,
    task,
    resumable: prepared.flow.resumable,
    ...(prepared.earlier ? { picked_up: prepared.earlier.epic } : {}),
    agents: Object.entries(prepared.agents).map(([agent, { harness, model, effort, provider }]) => ({
      agent,
      backend: harness,
      model,
      effort,
      provider,
    })),
    envs: prepared.envSpecs,
    params: withoutInfinity(prepared.params),
    budget: withoutInfinity(budget),
  };
}

/** JSON has no infinity, no NaN and no big integer: they would read as no limit at all, as null, or not be written. */
function withoutInfinity(value: unknown): unknown {
  const text = JSON.stringify(value, (_key, member: unknown) =>
    (typeof member === "number" && !Number.isFinite(member)) || typeof member === "bigint" ? String(member) : member,
  );
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}

/** An error as the epic keeps it. */
function recorded(error: unknown): unknown {
  if (error instanceof FlowException) return error.toJSON();
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: "Error", message: String(error) };
}
