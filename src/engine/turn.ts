/** One turn: a prompt and its answer, in the order of events that the flow relies on. */

import type { z } from "zod";
import type { Session } from "../flows/agent.ts";
import { type BudgetLike, budget as readBudget, type Usage } from "../flows/budget.ts";
import type { RunDone } from "../flows/callbacks.ts";
import {
  CapabilityNotGranted,
  FlowException,
  HarnessDropped,
  SessionError,
  UnsupportedOperation,
} from "../flows/errors.ts";
import { type HookFn, type HookKind, type HookParams, type HookParamsOf, type HookResultOf } from "../flows/hooks.ts";
import { type AgentRecord, unshelved } from "./agent.ts";
import { asFlow, cancellationOf } from "./call.ts";
import { Cancellation } from "./cancellation.ts";
import { atInstant, within } from "./deadline.ts";
import { envOf } from "./environment.ts";
import { type HarnessEvent, TOKEN_KINDS, type TokenKind, type TurnEvent } from "./events.ts";
import { answerOf, hook, HOOK_TIMEOUT_MS } from "./hooks.ts";
import { Interruption } from "./interruption.ts";
import { offered, shelved } from "./offer.ts";
import type { Answer, Place, SessionDriver, Spend, TurnHost, TurnSetup, Verdict } from "./ports.ts";
import { refused } from "./refusal.ts";
import { jsonSchema, readAnswer } from "./schema.ts";
import type { SessionRecord } from "./session.ts";
import { exceeded, Ledger } from "./spend.ts";

/** How often a stop hook may keep a turn going on the same answer and for the same reason: more is a hook stuck. */
const SAME_STOPS = 10;

export interface TurnOptions {
  readonly env?: unknown;
  readonly outputSchema?: z.ZodType | undefined;
  readonly budget?: BudgetLike | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Takes a turn of a session. Whatever can be refused is refused before anything is sent. */
export async function takeTurn(
  agent: AgentRecord,
  session: SessionRecord,
  prompt: string,
  options: TurnOptions,
): Promise<unknown> {
  let turn: Turn;
  try {
    turn = admitted(agent, session, prompt, options);
  } catch (error) {
    return refused(agent.family.call, error);
  }
  return turn.run(prompt);
}

/** The turn, where nothing refuses it. */
function admitted(agent: AgentRecord, session: SessionRecord, prompt: string, options: TurnOptions): Turn {
  const { call, driver, role } = agent.family;
  call.assertGoing();
  cancellationOf(call).throwIfCancelled();
  options.signal?.throwIfAborted();
  const command = commandOf(prompt);
  if (command && !agent.grant.needs.has(command)) {
    throw new CapabilityNotGranted(`${role}: /${command} needs ${command} on the role`);
  }
  const { outputSchema } = options;
  if (outputSchema !== undefined && typeof (outputSchema as Partial<z.ZodType> | null)?.safeParse !== "function") {
    throw new TypeError(`${role}: outputSchema is not a zod schema, as z.object({ … })`);
  }
  const place = placeOf(agent, options.env);
  const why = unshelved(agent.grant.clis, driver.harness, driver.shelves);
  if (why !== undefined) throw new UnsupportedOperation(`${role} ${why}`);
  if (session.closed) throw new SessionError(`${role}: the session is over`);
  if (session.under) throw new SessionError(`${role}: a turn of this session is under way`);
  call.assertAffordable();
  call.run.quotas.assertLeft(agent.family.driver);
  const turn = new Turn(session, place, options, command);
  turn.assertAffordable();
  return turn;
}

function commandOf(prompt: string): "goal" | "loop" | undefined {
  const word = /^\s*\/(goal|loop)(?=\s|$)/.exec(prompt)?.[1];
  return word as "goal" | "loop" | undefined;
}

function placeOf({ family }: AgentRecord, env: unknown): Place {
  const { call, role, driver } = family;
  if (env === undefined || env === null) return call.run.workspace;
  const found = envOf(env);
  if (!found || found.call.run !== call.run) {
    throw new TypeError(
      `${typeof env === "object" ? "this object" : String(env)} is not an environment this run handed out`,
    );
  }
  if (driver.harness === "litellm") {
    throw new UnsupportedOperation(
      `${role}: litellm is a model called directly, with no tools and no filesystem, so its turns work in no environment; run it without env`,
    );
  }
  return found.place;
}

export class Turn implements TurnHost {
  readonly command: "goal" | "loop" | undefined;
  readonly #session: SessionRecord;
  /** Held until the turn is over: a session whose view nothing references is closed. */
  #view: Session | undefined;
  readonly #place: Place;
  readonly #schema: z.ZodType | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #ledger: Ledger;
  readonly #cancellation = new Cancellation();
  readonly #startedAt = Date.now();
  readonly #number: number;
  readonly #output: Record<string, number> = {};
  readonly #spent: { [K in TokenKind]?: number } = {};
  #setup: TurnSetup | undefined;
  #cost: number | undefined;
  /** Seconds that the driver reported in place of the clock's. */
  #seconds: number | undefined;
  /** Steers to be sent: with the prompt, until the harness has it; as the next prompt after. */
  #steers: string[] = [];
  #driver: SessionDriver | undefined;
  #taking = false;
  /** Whether the turn takes no more prompts. */
  #over = false;
  #atRest = false;
  #rest: (() => void) | undefined;
  readonly #interruption: Interruption;

  constructor(
    session: SessionRecord,
    place: Place,
    { outputSchema, budget, signal }: TurnOptions,
    command: "goal" | "loop" | undefined,
  ) {
    const { call } = session.agent.family;
    this.#session = session;
    this.#view = session.view;
    this.#place = place;
    this.#schema = outputSchema;
    this.#signal = signal;
    this.command = command;
    this.#ledger = new Ledger(call.ledger, budget === undefined ? undefined : readBudget(budget), this.#startedAt);
    this.#number = call.run.nextTurn();
    this.#interruption = new Interruption(this.#cancellation, call.run.abandoned);
  }

  /** Resolves once the turn is over. */
  async comesToRest(): Promise<void> {
    if (!this.#atRest) await new Promise<void>((resolve) => (this.#rest = resolve));
  }

  /** Throws where the turn's own budget would cut it off before it has spent anything. */
  assertAffordable(): void {
    const limit = this.#ledger.spent(Date.now(), "hard");
    if (limit) throw exceeded(this.#session.agent.family.call.ref, limit);
  }

  /** Takes the turn, and everything that ends with it. */
  async run(prompt: string): Promise<unknown> {
    const session = this.#session;
    const { call, driver } = session.agent.family;
    const undo = this.#cancelledBy();
    session.under = this;
    call.turnBegins();
    this.#emit({ kind: "begins", text: prompt, conversation: session.conversation });
    try {
      const answer = await this.#converse(prompt);
      const result = this.#schema ? read(answer, this.#schema) : answer.text;
      await this.#done(prompt, answer);
      this.#emit({
        kind: "result",
        text: answer.text,
        tokens: this.#output,
        spent: this.#spent,
        ...(this.#cost === undefined ? {} : { cost: this.#cost }),
      });
      return result;
    } catch (error) {
      const failure = this.#failure(error);
      this.#emit({
        kind: "failed",
        text: failure instanceof Error ? failure.message : String(failure),
        error: failure instanceof Error ? failure.name : typeof failure,
      });
      throw failure;
    } finally {
      for (const step of undo) step();
      this.#interruption.end();
      const ms = this.#lasted();
      this.#ledger.lasted(ms);
      session.lasted(ms);
      this.#emit({ kind: "ends", text: driver.model, seconds: ms / 1_000 });
      session.under = undefined;
      this.#over = true;
      // A driver may keep hold of its last turn.
      this.#view = undefined;
      call.turnEnds();
      this.#atRest = true;
      this.#rest?.();
    }
  }

  /** What everything that is begun within the turn ends with. */
  get cancellation(): Cancellation {
    return this.#cancellation;
  }

  cancel(reason: unknown): void {
    this.#cancellation.cancel(reason);
  }

  async steer(text: string, queued: boolean): Promise<void> {
    if (this.#taking && this.#driver?.steer && (await this.#driver.steer(text, queued))) return;
    if (this.#over) {
      throw new SessionError(`${this.#session.agent.family.role}: no turn of this session is under way to steer`);
    }
    this.#steers.push(text);
  }

  /** Why the turn failed: what cancelled it, where it was, or what the harness said, as a leaf of the tree. */
  #failure(error: unknown): unknown {
    return this.#cancellation.cancelled ? this.#cancellation.reason : error;
  }

  #cancelledBy(): (() => void)[] {
    const { call } = this.#session.agent.family;
    const undo = [this.#cancellation.follow(cancellationOf(call))];
    if (this.#signal) undo.push(this.#cancellation.followSignal(this.#signal));
    const unlimited = this.#ledger.onHardLimit((limit) => this.cancel(exceeded(call.ref, limit)));
    if (unlimited) undo.push(unlimited);
    // Those above are their calls': an error of its own for each turn would make one deadline many failures.
    const deadline = this.#ledger.hardDeadline();
    if (deadline !== Infinity) undo.push(atInstant(deadline, () => this.cancel(exceeded(call.ref, "duration"))));
    return undo;
  }

  async #converse(prompt: string): Promise<Answer> {
    const session = this.#session;
    const driver = await this.#ready();
    const { call, hooks } = session.agent.family;
    let said = await this.#submitted(prompt);
    let again = 0;
    let same = 0;
    let last = "";
    for (;;) {
      const answer = await this.#taken(driver, said);
      if (this.#steers.length === 0) {
        const fn = hook(hooks, "stop");
        const { block = false, reason = "" } = fn ? await this.#ask("stop", fn, { said: answer.text, again }) : {};
        if (block && reason !== "") {
          same = last === `${answer.text}\0${reason}` ? same + 1 : 0;
          last = `${answer.text}\0${reason}`;
          if (same >= SAME_STOPS) {
            this.event({
              kind: "notice",
              text: `a stop hook said the same ${same} times to the same answer; the turn ends`,
            });
            return this.#last(answer);
          }
          if (this.#ledger.spent(Date.now())) {
            this.event({ kind: "notice", text: "a stop hook would go on, but the budget is spent; the turn ends" });
            return this.#last(answer);
          }
          again++;
          this.event({ kind: "notice", text: `kept going by a stop hook: ${reason}` });
          said = reason;
          continue;
        }
      }
      if (this.#steers.length === 0) return this.#last(answer);
      call.assertGoing();
      said = this.#steers.splice(0).join("\n\n");
      this.event({ kind: "took", text: said });
    }
  }

  /** The answer that the turn ends with: what is steered from here on would reach nobody. */
  #last(answer: Answer): Answer {
    this.#over = true;
    return answer;
  }

  /** Tells the role's callbacks that the turn is done, before the flow has its answer. */
  async #done(prompt: string, { text }: Answer): Promise<void> {
    const session = this.#session;
    const { call } = session.agent.family;
    const { afterRun } = session.agent.grant.callbacks;
    if (!afterRun?.length) return;
    const messages: RunDone["messages"] = this.#driver?.messages ?? [
      { role: "user", content: prompt },
      { role: "assistant", content: text },
    ];
    const usage: Usage = {
      duration: this.#lasted(),
      cost: this.#cost ?? 0,
      outputTokens: Object.values(this.#output).reduce((sum, tokens) => sum + tokens, 0),
    };
    const done: RunDone = { said: text, messages, usage, ctx: call.context, session: this.#view ?? session.view };
    for (const tell of afterRun) {
      await this.#interruption.unlessCancelled(asFlow(call, async () => tell(done), this.#cancellation));
    }
  }

  /** Ms that count as the turn's: what its driver says, or the clock. */
  #lasted(): number {
    return this.#seconds === undefined ? Date.now() - this.#startedAt : this.#seconds * 1_000;
  }

  /** The session's harness, started where the turn works, or carried there. */
  async #ready(): Promise<SessionDriver> {
    const session = this.#session;
    const place = this.#place;
    const moved = session.place?.machine !== place.machine || session.place.workdir !== place.workdir;
    if (moved && !(await this.#interruption.unlessCancelled(place.machine.isDirectory(place.workdir)))) {
      throw new SessionError(`${place.workdir} is not a directory to open a session in`);
    }
    const driver = session.opened(place);
    const { call } = session.agent.family;
    const { clis } = session.agent.grant;
    this.#driver = driver;
    this.#setup = {
      place,
      hung: session.agent.family.hung,
      tools: session.tools.length === 0 ? NONE : session.tools.map((tool) => offered(tool, call, this.#cancellation)),
      clis: clis.length === 0 ? NONE : clis.map((cli) => shelved(cli, call, this.#cancellation)),
      schema: this.#schema && jsonSchema(this.#schema),
      zod: this.#schema,
    };
    await this.#settled(driver.ready(this.#setup));
    const settling = call.run.settling(call);
    if (settling) await settling;
    session.place = place;
    return driver;
  }

  /** The prompt as it is sent: what the hooks add to it, and the steers that came before. */
  async #submitted(prompt: string): Promise<string> {
    const session = this.#session;
    const { hooks } = session.agent.family;
    let said = this.command === "goal" ? prompt.replace(/^\s*\/goal\s*/, "") : prompt;
    if (!session.begun) {
      session.begins();
      const starts = hook(hooks, "session_start");
      const { context = "" } = starts ? await this.#ask("session_start", starts, {}) : {};
      if (context !== "") said = `${context}\n\n${said}`;
    }
    const submits = hook(hooks, "user_prompt_submit");
    if (submits) {
      const { block = false, reason = "", context = "" } = await this.#ask("user_prompt_submit", submits, { prompt });
      if (block) throw new SessionError(reason === "" ? "a hook refused the prompt" : reason);
      if (context !== "") said = `${said}\n\n${context}`;
    }
    this.#cancellation.throwIfCancelled();
    return [said, ...this.#steers.splice(0)].join("\n\n");
  }

  async #taken(driver: SessionDriver, prompt: string): Promise<Answer> {
    this.#cancellation.throwIfCancelled();
    const { call, driver: account } = this.#session.agent.family;
    // Another turn may have been told that the account is spent while this one waited.
    call.run.quotas.assertLeft(account);
    this.#taking = true;
    try {
      const answer = await this.#settled(driver.take(prompt, this));
      this.#session.turns++;
      return answer;
    } catch (error) {
      // An interrupted turn left its prompt in the conversation: a fork of the session carries it on.
      if (this.#cancellation.cancelled && driver.id !== "") this.#session.turns++;
      throw error;
    } finally {
      this.#taking = false;
    }
  }

  /** What the driver's work comes to. */
  async #settled<T>(work: Promise<T>): Promise<T> {
    try {
      return await this.#interruption.comesToRest(work);
    } catch (error) {
      const { call, driver } = this.#session.agent.family;
      call.run.quotas.note(driver, error);
      throw dropped(error);
    }
  }

  // ── what the driver tells and asks ────────────────────────────────────────────────────────────────────────────────

  get setup(): TurnSetup {
    return this.#setup as TurnSetup;
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal;
  }

  named(id: string): void {
    this.#session.agent.family.call.run.opened(this.#session, id);
  }

  event(event: HarnessEvent): void {
    this.#emit(event);
  }

  spent(spend: Spend): void {
    const { call } = this.#session.agent.family;
    const { output = 0, reasoning = 0 } = spend.tokens;
    const cost = spend.cost ?? call.run.priced(spend);
    const written = output + reasoning;
    for (const kind of TOKEN_KINDS) {
      const count = spend.tokens[kind];
      if (count !== undefined) this.#spent[kind] = (this.#spent[kind] ?? 0) + count;
    }
    this.#output[spend.model] = (this.#output[spend.model] ?? 0) + written;
    if (cost !== undefined) this.#cost = (this.#cost ?? 0) + cost;
    if (spend.seconds !== undefined) this.#seconds = (this.#seconds ?? 0) + spend.seconds;
    this.#ledger.spend(cost ?? 0, written);
    this.#session.spent(cost ?? 0, written);
  }

  async preToolUse(tool: string, input: Readonly<Record<string, unknown>>): Promise<Verdict> {
    const answer = await this.#moment("pre_tool_use", { tool, input });
    if (answer === FAILED) return { allow: false, reason: "the flow's hook failed" };
    return answer.block ? { allow: false, reason: answer.reason || "refused by a hook" } : { allow: true };
  }

  async permissionRequest(tool: string, input: Readonly<Record<string, unknown>>): Promise<Verdict> {
    const answer = await this.#moment("permission_request", { tool, input });
    if (answer === FAILED) return { allow: false, reason: "the flow's hook failed" };
    return (answer.allow ?? true) ? { allow: true } : { allow: false, reason: answer.reason || "refused by a hook" };
  }

  async notification(message: string): Promise<void> {
    await this.#moment("notification", { message });
  }

  async subagentStart(subagent: string, task: string): Promise<void> {
    await this.#moment("subagent_start", { subagent, task });
  }

  async subagentStop(subagent: string, said: string): Promise<void> {
    await this.#moment("subagent_stop", { subagent, said });
  }

  async askUser(question: string, options: readonly string[]): Promise<string | undefined> {
    this.#emit({ kind: "asks", text: question });
    const answer = await this.#moment("ask_user", { question, options }, Infinity);
    return answer === FAILED ? undefined : answer.answer;
  }

  /** A moment from inside the harness. A hook that throws fails the turn, and not the harness that told of it. */
  async #moment<K extends HookKind>(
    kind: K,
    params: Omit<HookParamsOf[K], keyof HookParams>,
    limit = HOOK_TIMEOUT_MS,
  ): Promise<Partial<HookResultOf[K]> | typeof FAILED> {
    const fn = hook(this.#session.agent.family.hooks, kind);
    if (!fn) return {};
    try {
      const asked = this.#ask(kind, fn, params);
      return limit === Infinity ? await asked : await within(asked, limit, () => ({}));
    } catch (error) {
      this.cancel(error);
      return FAILED;
    }
  }

  /** Asks a hook, as the flow that its agent belongs to. */
  #ask<K extends HookKind>(
    kind: K,
    fn: HookFn<K>,
    params: Omit<HookParamsOf[K], keyof HookParams>,
  ): Promise<Partial<HookResultOf[K]>> {
    const session = this.#session;
    const { call } = session.agent.family;
    const whole = { ...params, ctx: call.context, session: this.#view ?? session.view } as unknown as HookParamsOf[K];
    return this.#interruption.unlessCancelled(asFlow(call, () => answerOf(kind, fn, whole)));
  }

  #emit(event: OfTurnEvent): void {
    const session = this.#session;
    const { call, driver, role } = session.agent.family;
    call.run.recorder.record({
      at: Date.now() / 1_000,
      agent: role,
      cli: driver.harness,
      model: driver.model,
      session: session.driver?.id ?? "",
      call: call.id,
      turn: this.#number,
      ...event,
    });
  }
}

/** What an event says beside whose turn it is of. */
type OfTurnEvent = TurnEvent extends infer E
  ? E extends TurnEvent
    ? Omit<E, "at" | "agent" | "cli" | "model" | "session" | "call" | "turn">
    : never
  : never;

const FAILED = Symbol("a hook failed");
const NONE: readonly never[] = [];

function read<S extends z.ZodType>(answer: Answer, schema: S): z.output<S> {
  if (answer.structured !== undefined) {
    const parsed = schema.safeParse(answer.structured);
    if (parsed.success) return parsed.data;
  }
  return readAnswer(answer.text, schema);
}

/** A failed system call of the driver's is the connection to the harness breaking; any other error is itself. */
function dropped(error: unknown): unknown {
  if (error instanceof Error && !(error instanceof FlowException) && "syscall" in error) {
    return new HarnessDropped(error.message, { cause: error });
  }
  return error;
}
