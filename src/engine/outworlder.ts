/** The person outside the run, and those that a flow answers for itself. */

import type { z } from "zod";
import type { Agent, Outworlder, RunOptions, Session } from "../flows/agent.ts";
import type { Usage } from "../flows/budget.ts";
import { CapabilityNotGranted, OutworlderAway, SessionError, UnsupportedOperation } from "../flows/errors.ts";
import type { HookFn, HookKind } from "../flows/hooks.ts";
import { permission as validated, type PermissionLike } from "../flows/permission.ts";
import type { Tool } from "../flows/tool.ts";
import { asFlow, type Call, cancellationOf } from "./call.ts";
import { Cancellation } from "./cancellation.ts";
import { envOf } from "./environment.ts";
import type { OutworlderDriver } from "./ports.ts";
import { schemaName } from "./schema.ts";

export interface OutworlderRecord {
  readonly kind: "outworlder";
  readonly call: Call;
  /** The role that the view fills. */
  readonly role: string;
  /** Who answers: the run's person, asked as a role of the run, or the flow that made it. */
  readonly answers:
    | { readonly by: "run"; readonly driver: OutworlderDriver; readonly as: string }
    | { readonly by: "flow"; readonly made: Call; hook: HookFn<"outworlder_run"> | undefined };
}

type Options = RunOptions & { readonly outputSchema?: z.ZodType };

let recordOf: (view: unknown) => OutworlderRecord | undefined;

let isSessionOf: (view: unknown, outworlder: OutworlderRecord) => boolean;

/** Whether a value is a session of somebody outside the run. */
export let isOutworlderSession: (value: unknown) => boolean;

class OutworlderView {
  readonly #outworlder: OutworlderRecord;

  constructor(outworlder: OutworlderRecord) {
    this.#outworlder = outworlder;
    Object.freeze(this);
  }

  static {
    recordOf = (view) =>
      typeof view === "object" && view !== null && #outworlder in view ? view.#outworlder : undefined;
  }

  get role(): string {
    return this.#outworlder.role;
  }

  get harness(): string {
    return "outworlder";
  }

  get model(): string {
    return "";
  }

  get effort(): string {
    return "";
  }

  get provider(): string {
    return "";
  }

  get away(): boolean {
    const { answers } = this.#outworlder;
    return answers.by === "run" ? answers.driver.away(answers.as) : answers.hook === undefined;
  }

  async spawn(): Promise<Session> {
    this.#outworlder.call.assertGoing();
    return new OutworlderSession(this.#outworlder);
  }

  async run(prompt: string, options: Options = {}): Promise<unknown> {
    const { call, role } = this.#outworlder;
    const { session, env, outputSchema: schema, signal } = options;
    call.assertGoing();
    cancellationOf(call).throwIfCancelled();
    signal?.throwIfAborted();
    if (typeof prompt !== "string") throw new TypeError(`${role}: a prompt is a string`);
    if (session !== undefined && !isSessionOf(session, this.#outworlder)) {
      const said = typeof session === "object" ? "this object" : String(session);
      throw new SessionError(`${role}: ${said} is not one of this agent's`);
    }
    if (env !== undefined && env !== null && envOf(env)?.call.run !== call.run) {
      const said = typeof env === "object" ? "this object" : String(env);
      throw new TypeError(`${said} is not an environment this run handed out`);
    }
    if (this.away) return awayAnswer(schema);
    const cancellation = new Cancellation();
    const undo = [cancellation.follow(cancellationOf(call))];
    if (signal) undo.push(cancellation.followSignal(signal));
    try {
      return typed(
        await unlessCancelled(this.#asked(prompt, options, cancellation.signal), cancellation),
        schema,
        role,
      );
    } finally {
      for (const step of undo) step();
    }
  }

  /** What they answer, before it is checked. Whoever thinks it over is not waited for once the question is taken back. */
  async #asked(prompt: string, { session, outputSchema: schema }: Options, signal: AbortSignal): Promise<unknown> {
    const { role, answers } = this.#outworlder;
    if (answers.by === "run") return answers.driver.ask({ role: answers.as, prompt, schema, signal });
    const hook = answers.hook as HookFn<"outworlder_run">;
    const asked = session ?? (await this.spawn());
    const params = { ctx: answers.made.context, session: asked, prompt, ...(schema ? { outputSchema: schema } : {}) };
    const result: unknown = await asFlow(answers.made, async () => hook(params));
    if (typeof result !== "object" || result === null || !("output" in result)) {
      throw new TypeError(`${role}: an outworlder_run hook returns { output }`);
    }
    return result.output;
  }

  async fork(): Promise<Session> {
    throw new UnsupportedOperation("an outworlder's session cannot be forked");
  }

  async steer(): Promise<void> {
    throw new UnsupportedOperation("an outworlder cannot be steered");
  }

  derive({ permission, skills }: { permission?: PermissionLike; skills?: readonly string[] } = {}): Agent {
    if (permission !== undefined && (typeof permission !== "object" || permission === null)) {
      throw new TypeError(`permission=${String(permission)} is not a Permission`);
    }
    if (permission) validated(permission);
    if (skills && skills.length > 0) {
      throw new CapabilityNotGranted(`${this.role}: an outworlder has no skills`);
    }
    return this as unknown as Agent;
  }

  onOutworlderRun(fn: HookFn<"outworlder_run"> | null): void {
    const { answers, role } = this.#outworlder;
    if (answers.by === "run") {
      throw new CapabilityNotGranted(`${role}: only an outworlder made with Outworlder.new() is answered by a hook`);
    }
    answers.hook = fn ?? undefined;
  }

  // A person's turns have none of these moments: the hooks hang, and are never heard.
  onSessionStart(): void {}
  onUserPromptSubmit(): void {}
  onPreToolUse(): void {}
  onNotification(): void {}
  onStop(): void {}
  onSessionEnd(): void {}

  onPermissionRequest(): void {
    this.#ungranted("permission_request");
  }

  onSubagentStart(): void {
    this.#ungranted("subagent_start");
  }

  onSubagentStop(): void {
    this.#ungranted("subagent_stop");
  }

  onAskUser(): void {
    this.#ungranted("ask_user");
  }

  #ungranted(kind: HookKind): never {
    throw new CapabilityNotGranted(`${this.role}: a ${kind} hook needs ${kind} on the role`);
  }
}

export function outworlderView(outworlder: OutworlderRecord): Outworlder {
  return new OutworlderView(outworlder) as unknown as Outworlder;
}

/** The outworlder behind a view; `undefined` for a value that is none. */
export function outworlderOf(view: unknown): OutworlderRecord | undefined {
  return recordOf(view);
}

/** One that the flow of a call answers for; away until its hook hangs. */
export function newOutworlder(call: Call): Outworlder {
  return outworlderView({
    kind: "outworlder",
    call,
    role: "outworlder",
    answers: { by: "flow", made: call, hook: undefined },
  });
}

class OutworlderSession {
  readonly #outworlder: OutworlderRecord;
  #over = false;

  constructor(outworlder: OutworlderRecord) {
    this.#outworlder = outworlder;
  }

  static {
    isOutworlderSession = (value) => typeof value === "object" && value !== null && #outworlder in value;
    isSessionOf = (view, { answers }) =>
      typeof view === "object" &&
      view !== null &&
      #outworlder in view &&
      view.#outworlder.answers === answers &&
      !view.#over;
  }

  get agent(): Outworlder {
    return outworlderView(this.#outworlder);
  }

  get usage(): Usage {
    return { duration: 0, cost: 0, outputTokens: 0 };
  }

  get takesTools(): boolean {
    return false;
  }

  offers(_tools: readonly Tool[] | null): void {
    throw new UnsupportedOperation(`${this.#outworlder.role}: an outworlder takes no tools`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true;
  }
}

/** What is waited for; why the cancellation came, where it comes first. */
function unlessCancelled<T>(work: Promise<T>, cancellation: Cancellation): Promise<T> {
  return new Promise((resolve, reject) => {
    cancellation.on(() => reject(cancellation.reason));
    work.then(resolve, reject);
  });
}

/** What somebody who is away answers: nothing, or the schema's defaults where every field has one. */
function awayAnswer(schema: z.ZodType | undefined): unknown {
  if (!schema) return "";
  const defaults = schema.safeParse({});
  if (defaults.success) return defaults.data;
  const bare = schema.safeParse(undefined);
  if (bare.success) return bare.data;
  throw new OutworlderAway(`nobody is there to answer with a ${schemaName(schema)}, and it has fields with no default`);
}

function typed(answer: unknown, schema: z.ZodType | undefined, role: string): unknown {
  if (!schema) {
    if (typeof answer !== "string") throw new TypeError(`${role}: an outworlder answers with text`);
    return answer;
  }
  return schema.parse(answer);
}
