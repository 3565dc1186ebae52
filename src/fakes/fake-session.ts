/** One conversation of a fake agent, which a reply function acts through as the agent would. */

import type { z } from "zod";
import type { Usage } from "../flows/budget.ts";
import type { Message } from "../flows/callbacks.ts";
import type { CliResult } from "../flows/command-line.ts";
import { SessionError, UnsupportedOperation } from "../flows/errors.ts";
import { type AgentNeed, type Forks, type Harness, HARNESSES } from "../flows/harness.ts";
import type { Permission } from "../flows/permission.ts";
import { aroundModel, aroundTool } from "../engine/around.ts";
import type { BoundCallbacks } from "../engine/callbacks.ts";
import type {
  Answer,
  KeptConversation,
  OfferedTool,
  Opening,
  SessionDriver,
  ShelvedCli,
  Spend,
  TurnHost,
  TurnSetup,
} from "../engine/ports.ts";
import { keepConversation, keptConversation } from "./kept.ts";
import { type Replies, shaped } from "./reply.ts";

/** What a fake agent's sessions share. */
export interface FakeTurns {
  readonly harness: Harness;
  readonly serves: ReadonlySet<AgentNeed>;
  readonly forks: Forks;
  /** The sessions whose conversations were kept, by the directories of the copies. */
  readonly kept: Map<string, FakeSession>;
  readonly spend: Spend & { readonly cost: number; readonly seconds: number };
  readonly namesLate: boolean;
  readonly replies: Replies<FakeSession>;
  prompted(prompt: string): void;
  closed(): void;
}

/** A prompt that a session was sent, and what came with it. */
export interface FakeRequest {
  readonly prompt: string;
  /** The directory that the turn works in. */
  readonly workdir: string;
  readonly outputSchema: z.ZodType | undefined;
  /** The prompt's own command, its word already taken off the prompt for `goal`. */
  readonly command: "goal" | "loop" | undefined;
}

/** A tool that the agent reached for, and whether it ran. */
export interface FakeToolUse {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly ran: boolean;
}

/** A steer that reached the session. */
export interface FakeSteer {
  readonly prompt: string;
  readonly queued: boolean;
}

/** A turn under way. */
interface Under {
  readonly host: TurnHost;
  /** Rejects once the turn is interrupted: nothing that it waits for outlasts it. */
  readonly interrupted: Promise<never>;
  readonly interrupt: (error: unknown) => void;
  /** Steers that nothing has read yet. */
  readonly unread: string[];
  /** Woken by a steer: whoever waits in `untilSteered`, else the answer that a steer cuts short. */
  reader: (() => void) | undefined;
  cutShort: () => void;
}

/** Turns of all fakes after which the event loop goes round once. */
const LOOP_EVERY = 256;
let taken = 0;

/** A session of a `FakeAgent`: what it was sent, and, for a reply function, what the agent can do in its turn. */
export class FakeSession implements SessionDriver {
  readonly permission: Permission;
  /** The names of its skills. */
  readonly skills: readonly string[];
  /** The session that this one carries on from: its parent, or the one of this agent whose kept conversation it is. */
  readonly forkedFrom: FakeSession | undefined;
  /** Every prompt that it was sent. */
  readonly prompts: string[] = [];
  readonly requests: FakeRequest[] = [];
  readonly steered: FakeSteer[] = [];
  readonly tools: FakeToolUse[] = [];
  readonly #messages: Message[] = [];
  readonly #callbacks: BoundCallbacks;
  readonly #turns: FakeTurns;
  readonly #role: string;
  readonly #id: string;
  /** The kept conversation that it carries on. */
  readonly #carries: KeptConversation | undefined;
  /** Whether the messages that it carries on from stand in it. */
  #carried = false;
  #named: boolean;
  #closed = false;
  #taken = 0;
  #uses = 0;
  #lastHost: TurnHost | undefined;
  #under: Under | undefined;
  #setup: TurnSetup | undefined;
  #usage: Usage = { duration: 0, cost: 0, outputTokens: 0 };

  constructor(turns: FakeTurns, opening: Opening, id: string) {
    const { role, permission, skills, callbacks, forkOf, carries } = opening;
    this.#turns = turns;
    this.#role = role;
    this.#id = id;
    this.#named = !turns.namesLate;
    this.#callbacks = callbacks;
    this.permission = permission;
    this.skills = skills.map(({ name }) => name);
    this.#carries = carries;
    const kept = carries && turns.kept.get(carries.at);
    this.forkedFrom = forkOf instanceof FakeSession ? forkOf : kept;
  }

  /** The id of the conversation, `""` until it is named. */
  get id(): string {
    return this.#named ? this.#id : "";
  }

  /** Whether it has its id. */
  get named(): boolean {
    return this.#named;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Turns that it took; a turn that a stop hook kept going is one. */
  get turns(): number {
    return this.#taken;
  }

  /** What its answers reported. */
  get usage(): Usage {
    return this.#usage;
  }

  /** The flow's own tools that the last turn offers. */
  get offered(): readonly OfferedTool[] {
    return this.#setup?.tools ?? [];
  }

  /** The flow's command lines on its PATH in the last turn. */
  get shelved(): readonly ShelvedCli[] {
    return this.#setup?.clis ?? [];
  }

  /** What was said so far: every prompt and what was answered to it, in the conversation that it carries on too. */
  get messages(): readonly Message[] {
    return [...this.#messages];
  }

  // ── what the engine asks of it ──────────────────────────────────────────────────────────────────────────────────

  async ready(setup: TurnSetup): Promise<void> {
    if (this.#closed) throw new SessionError(`${this.#role}: the session is over`);
    this.#carryOn(setup);
    this.#setup = setup;
  }

  /** Takes in what it carries on, before its first turn. */
  #carryOn({ place }: TurnSetup): void {
    if (this.#carried) return;
    const { harness, forks } = this.#turns;
    if (this.#carries) {
      if (forks === "never") throw new UnsupportedOperation(`${harness} cannot fork a session`);
      const { messages, workdir } = keptConversation(harness, this.#carries);
      if (forks === "in-place" && workdir !== place.workdir) {
        throw new UnsupportedOperation(`${harness} cannot fork a session into another workdir`);
      }
      this.#messages.push(...messages);
    } else if (this.forkedFrom) this.#messages.push(...this.forkedFrom.messages);
    this.#carried = true;
  }

  async take(prompt: string, turn: TurnHost): Promise<Answer> {
    if (this.#closed) throw new SessionError(`${this.#role}: the session is over`);
    if (this.#under) throw new SessionError(`${this.#role}: a turn of this session is under way`);
    turn.signal.throwIfAborted();
    // Nothing waits in a fake: a loop of turns without end would let no timer of its test be heard.
    if (++taken % LOOP_EVERY === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    this.#carryOn(turn.setup);
    this.#setup = turn.setup;
    this.#named = true;
    turn.named(this.#id);
    if (turn !== this.#lastHost) this.#taken++;
    this.#lastHost = turn;

    const under = underWay(turn);
    const aborted = (): void => under.interrupt(turn.signal.reason);
    turn.signal.addEventListener("abort", aborted, { once: true });
    this.#under = under;
    try {
      return await this.#answers(prompt, under);
    } finally {
      this.#under = undefined;
      turn.signal.removeEventListener("abort", aborted);
    }
  }

  /** Answers a prompt, and then every steer that nothing has read. */
  async #answers(prompt: string, under: Under): Promise<Answer> {
    for (let next = prompt; ;) {
      const answer = await Promise.race([this.#answer(next, under), under.interrupted]);
      // What an interruption cuts off is never returned, even where it came with the answer's own spending.
      under.host.signal.throwIfAborted();
      if (answer && under.unread.length === 0) return answer;
      next = under.unread.splice(0).join("\n\n");
      under.host.event({ kind: "took", text: next });
    }
  }

  /** The answer to one prompt, or `undefined` where a steer cut it short. */
  async #answer(prompt: string, under: Under): Promise<Answer | undefined> {
    const { host } = under;
    const outputSchema = host.setup.zod;
    const { command, setup } = host;
    this.prompts.push(prompt);
    this.requests.push({ prompt, workdir: setup.place.workdir, outputSchema, command });
    this.#turns.prompted(prompt);
    const cutShort = new Promise<typeof CUT>((resolve) => {
      under.cutShort = () => resolve(CUT);
    });
    const reply = this.#reply(prompt, outputSchema, host.signal);
    const answered = await Promise.race([reply, cutShort]);
    if (answered === CUT) {
      // The answer given up goes on by itself; what it comes to is nobody's.
      reply.catch(() => {});
      return undefined;
    }
    const { answer, paid } = answered;
    if (this.#under !== under || host.signal.aborted) return undefined;
    this.#messages.push({ role: "assistant", content: answer.text });
    host.event({ kind: "text", text: answer.text });
    if (paid) this.#spends(host);
    return answer;
  }

  /** What the agent answers, between the callbacks around its model where it serves them. */
  async #reply(
    prompt: string,
    outputSchema: z.ZodType | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly answer: Answer; readonly paid: boolean }> {
    const { replies, serves } = this.#turns;
    const said: Message = { role: "user", content: prompt };
    this.#messages.push(said);
    let paid = false;
    const ask = async (text: string): Promise<Answer> => {
      paid = true;
      return shaped(await replies.next(text, { outputSchema, session: this }), outputSchema);
    };
    if (!serves.has("model_callbacks")) return { answer: await ask(prompt), paid };
    const modelled = await aroundModel({
      callbacks: this.#callbacks,
      request: { messages: this.messages, tools: this.offered.map(({ name }) => name), settings: {} },
      call: async ({ messages }) => {
        const last = messages.findLast(({ role }) => role === "user")?.content;
        return ask(typeof last === "string" ? last : prompt);
      },
      view: ({ text }) => ({ text, toolCalls: [] }),
      signal,
    });
    return { answer: modelled.by === "model" ? modelled.answer : { text: modelled.response.text }, paid };
  }

  #spends(host: TurnHost): void {
    const { spend } = this.#turns;
    const { duration, cost, outputTokens } = this.#usage;
    this.#usage = {
      duration: duration + spend.seconds * 1_000,
      cost: cost + spend.cost,
      outputTokens: outputTokens + (spend.tokens.output ?? 0),
    };
    host.spent(spend);
  }

  async steer(text: string, queued: boolean): Promise<boolean> {
    const under = this.#under;
    if (!under || !this.#turns.serves.has("steering")) return false;
    this.steered.push({ prompt: text, queued });
    under.unread.push(text);
    if (under.reader) under.reader();
    else if (!queued) under.cutShort();
    return true;
  }

  keep(into: string): void {
    const { harness, forks, kept } = this.#turns;
    if (forks === "never") throw new UnsupportedOperation(`${harness} cannot fork a session`);
    if (IN_ROWS.has(harness)) {
      throw new UnsupportedOperation(
        `${harness} keeps its sessions as rows of a database: the conversation cannot be found as files`,
      );
    }
    const workdir = this.#setup?.place.workdir;
    if (workdir === undefined || this.#taken === 0) {
      throw new SessionError(`${this.#role}: the session to keep has taken no turn to carry on from`);
    }
    keepConversation({ id: this.#id, workdir, messages: this.#messages }, into);
    kept.set(into, this);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#under?.interrupt(new SessionError(`${this.#role}: the session was closed in the middle of a turn`));
    this.#turns.closed();
  }

  // ── what an agent does in its turn ──────────────────────────────────────────────────────────────────────────────

  /**
   * Reaches for a tool. Whether it would run. A hook refuses it only where the harness lets hooks gate tools; a
   * callback that gives its result keeps it from running, where the agent serves `tool_callbacks`.
   */
  async tool(name: string, input: Readonly<Record<string, unknown>> = {}): Promise<boolean> {
    const { host } = this.#acting();
    host.event({ kind: "tool", text: `${name} ${JSON.stringify(input)}`, tool: name, input });
    const verdict = await this.#unlessInterrupted(host.preToolUse(name, input));
    let ran = verdict.allow || !HARNESSES[this.#turns.harness].gatesTools;
    if (ran && this.#turns.serves.has("permission_request")) {
      ran = (await this.#unlessInterrupted(host.permissionRequest(name, input))).allow;
    }
    if (ran && this.#turns.serves.has("tool_callbacks")) {
      // A callback's result stands in place of the tool's: it does not run then.
      let reached = false;
      const run = async () => ((reached = true), { text: "done", failed: false });
      const use = { id: `use-${++this.#uses}`, tool: name, input, messages: this.messages };
      await this.#unlessInterrupted(aroundTool({ callbacks: this.#callbacks, use, run, signal: host.signal }));
      ran = reached;
    }
    this.tools.push({ name, input, ran });
    return ran;
  }

  /** Asks the user. The answer, or `undefined` where nobody gives one. */
  async ask(question: string, options: readonly string[] = []): Promise<string | undefined> {
    const { host } = this.#acting();
    if (!this.#turns.serves.has("ask_user")) {
      throw new UnsupportedOperation(`${this.#role}: ${this.#turns.harness} asks its user nothing in a turn`);
    }
    return this.#unlessInterrupted(host.askUser(question, options));
  }

  /** Tells the user something. */
  async notify(message: string): Promise<void> {
    await this.#unlessInterrupted(this.#acting().host.notification(message));
  }

  /** Has a sub-agent do a task, as far as its harness tells of sub-agents. What the sub-agent said. */
  async subagent(name: string, task = "", said = ""): Promise<string> {
    const { host } = this.#acting();
    const { serves } = this.#turns;
    host.event({ kind: "subagent", text: task ? `${name}: ${task}` : name, whose: name });
    if (serves.has("subagent_start")) await this.#unlessInterrupted(host.subagentStart(name, task));
    if (serves.has("subagent_stop")) await this.#unlessInterrupted(host.subagentStop(name, said));
    host.event({ kind: "subagent-ends", text: said ? `${name}: ${said}` : name, whose: name });
    return said;
  }

  /** Waits for a steer, and returns it. It waits for ever: give such a test a hard deadline. */
  async untilSteered(): Promise<string> {
    const under = this.#acting();
    if (under.unread.length === 0) {
      const steered = new Promise<void>((resolve) => {
        under.reader = resolve;
      });
      await this.#unlessInterrupted(steered);
      under.reader = undefined;
    }
    const text = under.unread.shift() as string;
    under.host.event({ kind: "took", text });
    return text;
  }

  /** Calls one of the flow's own tools. What the agent would read. */
  async use(name: string, input: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const { host } = this.#acting();
    const tool = this.offered.find((offered) => offered.name === name);
    if (!tool) throw new SessionError(`${this.#role}: the session offers no tool '${name}'${listed(this.offered)}`);
    host.event({ kind: "tool", text: `${name} ${JSON.stringify(input)}`, tool: name, input });
    const called = this.#turns.serves.has("tool_callbacks")
      ? aroundTool({
          callbacks: this.#callbacks,
          use: { id: `use-${++this.#uses}`, tool: name, input, messages: this.messages },
          run: () => tool.call(input),
          signal: host.signal,
        })
      : tool.call(input);
    const { text, failed } = await this.#unlessInterrupted(called);
    this.tools.push({ name, input, ran: !failed });
    return text;
  }

  /** Runs one of the flow's command lines, `argv` starting with its name, as the agent's shell would. */
  async runCli(argv: readonly string[]): Promise<CliResult> {
    const { host } = this.#acting();
    const [name = "", ...words] = argv;
    const cli = this.shelved.find((shelved) => shelved.name === name);
    if (!cli)
      throw new SessionError(`${this.#role}: the session shelves no command line '${name}'${shelves(this.shelved)}`);
    const command = argv.join(" ");
    host.event({ kind: "tool", text: command, tool: name, input: { command } });
    return this.#unlessInterrupted(cli.run(words));
  }

  #acting(): Under {
    if (!this.#under) {
      throw new SessionError(`${this.#role}: no turn of this session is under way: an agent acts within its turn`);
    }
    return this.#under;
  }

  /** Work that ends with the turn, so that a reply function never outlives it waiting. */
  #unlessInterrupted<T>(work: Promise<T>): Promise<T> {
    const { interrupted } = this.#acting();
    return Promise.race([work, interrupted]);
  }
}

const CUT = Symbol("cut short");

/** The harnesses whose conversations are no files that could be copied. */
const IN_ROWS: ReadonlySet<Harness> = new Set<Harness>(["opencode", "mimo"]);

function underWay(host: TurnHost): Under {
  let interrupt: (error: unknown) => void = () => {};
  const interrupted = new Promise<never>((_resolve, reject) => {
    interrupt = reject;
  });
  // A turn that nothing interrupts, or whose reply waits for nothing, leaves this to nobody.
  interrupted.catch(() => {});
  return { host, interrupted, interrupt, unread: [], reader: undefined, cutShort: () => {} };
}

function shelves(clis: readonly ShelvedCli[]): string {
  return clis.length === 0 ? "" : `; it shelves ${clis.map(({ name }) => name).join(", ")}`;
}

function listed(tools: readonly OfferedTool[]): string {
  return tools.length === 0 ? "" : `; it offers ${tools.map(({ name }) => name).join(", ")}`;
}
