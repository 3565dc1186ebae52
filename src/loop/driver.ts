/** The `native` harness: an agent loop in this process. Light to import; the AI SDK comes with the first session's start. */

import type { AgentDriver, Answer, Opening, SessionDriver, TurnHost } from "../engine/ports.ts";
import type { Message } from "../flows/callbacks.ts";
import { HarnessUnrecoverable, SessionError, UnsupportedOperation } from "../flows/errors.ts";
import { HARNESSES, type AgentNeed } from "../flows/harness.ts";
import { Conversation } from "./conversation.ts";
import { keepConversation, keptMessages } from "./kept.ts";
import { openModel, parseModel, type Env, type OpenedModel } from "./model.ts";
import { type ToldSkill, toldSkills } from "./skills.ts";
import { Steering } from "./steering.ts";
import type { Reasoning, takeTurn } from "./turn.ts";

export interface NativeOptions {
  /** `<provider>/<model>`: `anthropic`, `openai`, `google`, `openai-compatible`, or `scripted/<file>`. */
  readonly model: string;
  /** `""`, or left out, for the model's own. */
  readonly effort?: string;
  /** The name of the account that `env` is of; `""` for none. */
  readonly provider?: string;
  /** Where keys and addresses are looked up; the process's own where left out. */
  readonly env?: Env;
  /** The file of a script that a spec names without being its path. */
  readonly scripts?: (name: string) => string | undefined;
  /** How often a model call that failed for a passing reason is tried again, with growing waits (2). */
  readonly retries?: number;
  /** How many model calls one turn may take (200): a model that goes round in circles costs money until it is stopped. */
  readonly mostSteps?: number;
}

/**
 * An agent that is a model and the loop here.
 *
 * @throws HarnessUnrecoverable where the model or the effort is none that `native` has. What can only be seen by looking
 * (a key, a script file) is said by the first session's `ready`.
 */
export function nativeDriver(options: NativeOptions): AgentDriver {
  return new NativeDriver(options);
}

/** What a turn needs of the modules that are loaded late. */
interface Engine {
  readonly model: OpenedModel;
  readonly takeTurn: typeof takeTurn;
}

class NativeDriver implements AgentDriver {
  readonly harness = "native";
  readonly model: string;
  readonly effort: string;
  readonly provider: string;
  readonly serves: ReadonlySet<AgentNeed> = new Set(HARNESSES.native.needs);
  readonly forks = HARNESSES.native.forks;
  readonly shelves = false;
  readonly reasoning: Reasoning;
  readonly retries: number;
  readonly mostSteps: number;
  readonly #start: () => Promise<Engine>;
  #engine: Promise<Engine> | undefined;

  constructor({
    model,
    effort = "",
    provider = "",
    env = process.env,
    scripts,
    retries = 2,
    mostSteps = 200,
  }: NativeOptions) {
    this.model = model;
    this.effort = effort;
    this.provider = provider;
    this.retries = retries;
    this.mostSteps = mostSteps;
    this.reasoning = reasoningOf(effort);
    const spec = parseModel(model);
    this.#start = async () => {
      const [opened, { takeTurn }] = await Promise.all([openModel(spec, { env, scripts }), import("./turn.ts")]);
      return { model: opened, takeTurn };
    };
  }

  async check(): Promise<void> {
    await this.engine();
  }

  open(opening: Opening): SessionDriver {
    const { forkOf } = opening;
    if (forkOf === undefined) return new NativeSession(this, opening, new Conversation());
    if (!(forkOf instanceof NativeSession)) {
      throw new UnsupportedOperation("native carries on from its own sessions only: spawn a new one");
    }
    return new NativeSession(this, opening, forkOf.forked());
  }

  async close(): Promise<void> {}

  engine(): Promise<Engine> {
    // A failure is not kept: a key that was set or a script that was mended since then counts.
    this.#engine ??= this.#start().catch((error: unknown) => {
      this.#engine = undefined;
      throw error;
    });
    return this.#engine;
  }
}

class NativeSession implements SessionDriver {
  readonly #driver: NativeDriver;
  readonly #opening: Opening;
  #conversation: Conversation;
  /** Whether the kept conversation that it carries on is still to be read. */
  #unread: boolean;
  #named = false;
  #closed = false;
  #skills: Promise<readonly ToldSkill[]> | undefined;
  /** The turn under way, and when it has come to rest. */
  #turn: { readonly steering: Steering; readonly stop: AbortController; readonly rest: Promise<unknown> } | undefined;

  constructor(driver: NativeDriver, opening: Opening, conversation: Conversation) {
    this.#driver = driver;
    this.#opening = opening;
    this.#conversation = conversation;
    this.#unread = opening.carries !== undefined;
  }

  get id(): string {
    return this.#named ? this.#conversation.id : "";
  }

  get messages(): readonly Message[] {
    return this.#conversation.messages;
  }

  forked(): Conversation {
    return this.#conversation.fork();
  }

  async ready(): Promise<void> {
    this.#mustBeOpen();
    const { carries } = this.#opening;
    if (carries !== undefined && this.#unread) {
      this.#conversation = new Conversation(await keptMessages(carries));
      this.#unread = false;
    }
    await this.#driver.engine();
  }

  async take(prompt: string, turn: TurnHost): Promise<Answer> {
    this.#mustBeOpen();
    if (this.#turn !== undefined) throw new SessionError("the session is taking a turn: wait for it, or steer it");
    const steering = new Steering();
    const stop = new AbortController();
    const signal = AbortSignal.any([turn.signal, stop.signal]);
    const taken = this.#take(prompt, { host: turn, signal, steering });
    const rest = taken.catch(() => {});
    this.#turn = { steering, stop, rest };
    try {
      return await taken;
    } finally {
      this.#turn = undefined;
    }
  }

  async #take(
    prompt: string,
    { host, signal, steering }: { readonly host: TurnHost; readonly signal: AbortSignal; readonly steering: Steering },
  ): Promise<Answer> {
    const [{ model, takeTurn }, told] = await Promise.all([this.#driver.engine(), this.#told()]);
    signal.throwIfAborted();
    this.#named = true;
    host.named(this.#conversation.id);
    return takeTurn({
      prompt,
      host,
      signal,
      conversation: this.#conversation,
      steering,
      model,
      spec: this.#driver.model,
      reasoning: this.#driver.reasoning,
      retries: this.#driver.retries,
      mostSteps: this.#driver.mostSteps,
      permission: this.#opening.permission,
      skills: this.#opening.skills,
      told,
      callbacks: this.#opening.callbacks,
    });
  }

  /** Read once: what is told before a conversation stays the same, so that a provider can cache it. */
  #told(): Promise<readonly ToldSkill[]> {
    return (this.#skills ??= toldSkills(this.#opening.skills));
  }

  steer(text: string, queued: boolean): Promise<boolean> {
    return Promise.resolve(this.#turn?.steering.steer(text, queued) ?? false);
  }

  keep(into: string): void {
    if (!this.#named) throw new SessionError("native: the session has taken no turn to carry on from");
    keepConversation(this.#conversation.id, this.#conversation.messages, into);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#turn?.stop.abort(new SessionError("the session was closed during its turn"));
    await this.#turn?.rest;
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new SessionError("the session is closed: spawn a new one, or fork this one");
  }
}

/** The words of the harness's row, as the SDK takes them. */
const EFFORTS = ["high", "medium", "low", "minimal", "none"] as const satisfies readonly Reasoning[];

function reasoningOf(effort: string): Reasoning {
  if (effort === "") return "provider-default";
  const known = EFFORTS.find((word) => word === effort);
  if (known === undefined) {
    throw new HarnessUnrecoverable(`native has no effort '${effort}': it is one of ${EFFORTS.join(", ")}, or left out`);
  }
  return known;
}
