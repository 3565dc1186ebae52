/**
 * The `claude` harness: an agent is Claude Code at a model, an effort and an account; a session is one conversation of
 * it, held by one live process that takes turn after turn. The process is started anew, on the same conversation, where
 * it died or something that it reads at its start has changed.
 */

import { randomUUID } from "node:crypto";
import type {
  AgentDriver,
  Answer,
  Opening,
  Place,
  SessionDriver,
  Spend,
  TurnHost,
  TurnSetup,
} from "../../engine/ports.ts";
import {
  EnvUnavailable,
  HarnessError,
  HarnessMissing,
  HarnessUnrecoverable,
  SessionError,
  UnsupportedOperation,
} from "../../flows/errors.ts";
import { HARNESSES } from "../../flows/harness.ts";
import type { Permission } from "../../flows/permission.ts";
import { startChild, type Child, type ChildOptions } from "../../process/child.ts";
import { carry } from "./carry.ts";
import { ClaudeClient, type Listener } from "./client.ts";
import { claudeEnvironment } from "./environment.ts";
import { diedAtStart, isLost } from "./failure.ts";
import type { Fields } from "./fields.ts";
import { keepAgain, keepConversation, keptFile, noConversation } from "./kept.ts";
import { launchOf, type Conversation, type Launch } from "./launch.ts";
import { findClaude, notInstalled } from "./program.ts";
import { lodged, type Lodging } from "./skills.ts";
import { answerMcp } from "./tools.ts";
import { Turn, type Limits } from "./turn.ts";
import { Meter } from "./usage.ts";

export interface ClaudeOptions {
  /** Passed as it is. */
  readonly model: string;
  readonly effort: string;
  readonly provider: string;
  /** What the child's environment is taken from. This process's where not given. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The program's path. Looked for where not given. */
  readonly program?: string;
  /** Starts a session's process: a fence puts itself in between. */
  readonly start?: (
    options: ChildOptions,
    session: { readonly permission: Permission; readonly place: Place },
  ) => Promise<Child>;
  readonly limits?: Partial<Limits>;
}

/** How long the CLI may take from its start to its first answer: it starts the person's own MCP servers. */
const START_MS = 120_000;
const WATCHDOG_SECONDS = 900;

export function claudeDriver(options: ClaudeOptions): AgentDriver {
  const sessions = new Set<ClaudeSession>();
  return {
    harness: "claude",
    model: options.model,
    effort: options.effort,
    provider: options.provider,
    serves: new Set(HARNESSES.claude.needs),
    forks: HARNESSES.claude.forks,
    shelves: false,
    async check() {
      if (options.program === undefined)
        await findClaude(claudeEnvironment(options.env ?? process.env, { root: false }));
    },
    open(opening) {
      const session = new ClaudeSession(options, opening, () => sessions.delete(session));
      sessions.add(session);
      return session;
    },
    async close() {
      await Promise.all([...sessions].map((session) => session.close()));
    },
  };
}

class ClaudeSession implements SessionDriver {
  readonly #options: ClaudeOptions;
  readonly #opening: Opening;
  readonly #limits: Limits;
  readonly #closed: () => void;
  readonly #meter = new Meter();
  #id = "";
  /** The workdir of the last process. */
  #ran = "";
  /** Whether the model has answered: only then does the CLI know the conversation. */
  #landed = false;
  /** The uuid of the agent's last answer; `""` where the CLI told none. */
  #last = "";
  #client: ClaudeClient | undefined;
  #launch: Launch | undefined;
  #setup: TurnSetup | undefined;
  #turn: Turn | undefined;
  #bypassRefused = false;
  /** What the process spent between turns, where it woke by itself: told with the next turn. */
  #owed: Spend[] = [];
  #lodging: Promise<Lodging> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ClaudeOptions, opening: Opening, closed: () => void) {
    this.#options = options;
    this.#opening = opening;
    this.#limits = limitsOf(options);
    this.#closed = closed;
    if (opening.forkOf !== undefined || opening.carries !== undefined) this.#meter.carriesOn();
  }

  get id(): string {
    return this.#id;
  }

  async ready(setup: TurnSetup): Promise<void> {
    this.#refuseClosed();
    this.#setup = setup;
    await this.#start(setup, false);
  }

  async take(prompt: string, host: TurnHost): Promise<Answer> {
    this.#refuseClosed();
    if (this.#turn !== undefined) throw new SessionError("the session is busy: it is taking another turn");
    host.signal.throwIfAborted();
    const goal = host.command === "goal";
    // Where it died since it was made ready, and for what only a goal needs.
    if (goal || this.#client?.over !== undefined) await this.#start(this.#setup ?? host.setup, goal);
    host.signal.throwIfAborted();
    const client = this.#client;
    const launch = this.#launch;
    if (client === undefined || launch === undefined)
      throw new SessionError("the session was not made ready for a turn");
    const turn = new Turn({
      client,
      host,
      meter: this.#meter,
      mode: launch.mode,
      model: this.#options.model,
      limits: this.#limits,
      named: (id) => {
        if (id === "") return;
        // What was said under another id is not in this one's file: `/clear` begins one.
        if (id !== this.#id) this.#last = "";
        this.#id = id;
        host.named(id);
      },
      landed: (last) => {
        this.#landed = true;
        if (last !== "") this.#last = last;
      },
      bypassRefused: () => !this.#bypassRefused && (this.#bypassRefused = true),
    });
    this.#turn = turn;
    for (const spend of this.#owed.splice(0)) host.spent(spend);
    try {
      await turn.begin(goal ? `/goal ${prompt}` : prompt);
      return await turn.outcome;
    } finally {
      this.#turn = undefined;
      if (client.over === undefined) client.listener = this.#between(client);
    }
  }

  async steer(text: string, queued: boolean): Promise<boolean> {
    return (await this.#turn?.steer(text, queued)) ?? false;
  }

  keep(into: string): void {
    const { carries } = this.#opening;
    const id = this.#id;
    if (this.#landed) keepConversation({ env: this.#environment(), id, last: this.#last }, into);
    else if (carries !== undefined && id !== "") keepAgain(carries, id, into);
    else throw new SessionError("claude: the session was never answered: there is nothing to carry on from");
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#closed();
    const turn = this.#turn;
    if (turn !== undefined) {
      turn.cut(new SessionError("the session was closed in the middle of a turn"));
      await turn.outcome.catch(() => {});
    }
    await client?.leave(this.#limits.leave);
    const lodging = await this.#lodging?.catch(() => undefined);
    await lodging?.remove();
  }

  /** Where the session's skills are; made by its first turn. */
  async #skills(): Promise<string | undefined> {
    const { skills } = this.#opening;
    if (skills.length === 0) return undefined;
    this.#lodging ??= lodged(skills).catch((error: unknown) => {
      this.#lodging = undefined;
      const said = error instanceof Error ? error.message : String(error);
      throw new HarnessUnrecoverable(`claude: its skills cannot be lodged: ${said}`, { cause: error });
    });
    return (await this.#lodging).directory;
  }

  /** Starts the process, unless one that can take the turn as it is already runs. */
  async #start(setup: TurnSetup, goal: boolean): Promise<void> {
    const { model, effort } = this.#options;
    const skills = await this.#skills();
    this.#refuseClosed();
    const launch = launchOf({ model, effort, permission: this.#opening.permission, setup, skills, goal });
    const running = this.#client;
    if (running !== undefined && running.over === undefined && this.#launch?.key === launch.key) return;
    this.#client = undefined;
    await running?.leave(this.#limits.leave);
    const client = await this.#spawn(setup, launch);
    if (this.#closing !== undefined) {
      await client.stop(0);
      this.#refuseClosed();
    }
    this.#client = client;
    this.#launch = launch;
  }

  async #spawn(setup: TurnSetup, launch: Launch): Promise<ClaudeClient> {
    const { machine, workdir } = setup.place;
    if (machine.backend !== "local") {
      throw new UnsupportedOperation(
        `claude runs on this machine and cannot work on ${machine.backend}: give its role a local environment`,
      );
    }
    if (!(await machine.isDirectory(workdir))) throw new EnvUnavailable(`the workdir ${workdir} does not exist`);
    const env = this.#environment();
    const program = this.#options.program ?? (await findClaude(env));
    const conversation = this.#conversation();
    if (conversation.kind === "resume") this.#meter.restarted();
    const options: ChildOptions = { argv: launch.argv(program, conversation), cwd: workdir, env, stdin: "open" };
    try {
      return await this.#initialized(await this.#spawned(options, setup.place), launch);
    } catch (error) {
      if (!isLost(error) || conversation.kind === "new") throw error;
      const { carries } = this.#opening;
      if (conversation.kind === "fork" && carries !== undefined) throw noConversation(carries, { cause: error });
      // Kept under the directory that it ran in, where this release does not look for it.
      const [id, ran] =
        conversation.kind === "fork" ? [conversation.parent, this.#parentRan()] : [conversation.id, this.#ran];
      if (!(await carry(env, id, ran, workdir))) throw error;
      return this.#initialized(await this.#spawned(options, setup.place), launch);
    } finally {
      this.#ran = workdir;
    }
  }

  /** Where the session that this one was forked from ran last. */
  #parentRan(): string {
    const parent = this.#opening.forkOf;
    return parent instanceof ClaudeSession ? parent.#ran : this.#ran;
  }

  async #spawned(options: ChildOptions, place: Place): Promise<ClaudeClient> {
    const { start = startChild } = this.#options;
    try {
      return new ClaudeClient(await start(options, { permission: this.#opening.permission, place }));
    } catch (error) {
      if (error instanceof HarnessError) throw error;
      const said = error instanceof Error ? error.message : String(error);
      if (codeOf(error) === "ENOENT") throw notInstalled({ cause: error });
      throw new HarnessMissing(`claude: the program would not start: ${said}`, { cause: error });
    }
  }

  async #initialized(client: ClaudeClient, launch: Launch): Promise<ClaudeClient> {
    const timer = setTimeout(() => void client.stop(1000).catch(() => {}), START_MS);
    client.listener = this.#between(client);
    let said = "";
    try {
      if ((await client.request(launch.initialize)) !== undefined) return client;
    } catch (error) {
      said = error instanceof Error ? error.message : String(error);
    } finally {
      clearTimeout(timer);
    }
    await client.stop(1000);
    throw diedAtStart(await client.gone, said || client.notes.join(" "));
  }

  /** Answers what the process asks between turns, so that it does not wait for ever: about the flow's tools, mostly. */
  #between(client: ClaudeClient): Listener {
    return {
      message: (message) => {
        if (message.type === "result") this.#owed.push(...this.#meter.settle(message));
        if (message.type !== "control_request") return;
        const { request_id, request } = message;
        const answer: Promise<Fields> =
          request.subtype === "mcp_message"
            ? answerMcp(request.message, this.#setup?.tools ?? []).then((mcp_response) => ({ mcp_response }))
            : Promise.resolve(
                request.subtype === "can_use_tool" ? { behavior: "deny", message: "the turn is over" } : {},
              );
        void answer.then((answer) => client.respond(request_id, answer));
      },
      note: () => {},
      ended: () => {},
    };
  }

  #environment(): Record<string, string> {
    return claudeEnvironment(this.#options.env ?? process.env, { root: process.getuid?.() === 0 });
  }

  /** A fresh id for each attempt to open: the CLI refuses one that a failed attempt has used. */
  #conversation(): Conversation {
    if (this.#landed) return { kind: "resume", id: this.#id };
    const { forkOf: parent, carries } = this.#opening;
    if (carries !== undefined) return { kind: "fork", parent: keptFile(carries), id: randomUUID() };
    if (parent === undefined) return { kind: "new", id: randomUUID() };
    if (parent.id === "") throw new SessionError("the session has taken no turn yet: there is nothing to fork");
    return { kind: "fork", parent: parent.id, id: randomUUID() };
  }

  #refuseClosed(): void {
    if (this.#closing !== undefined) throw new SessionError("the session is closed");
  }
}

function limitsOf({ env, limits }: ClaudeOptions): Limits {
  const told = Number((env ?? process.env)["HUMANIZE_WATCHDOG"]);
  const idle = (Number.isFinite(told) && told > 0 ? told : WATCHDOG_SECONDS) * 1000;
  return { idle, tool: idle * 4, interrupt: 5000, background: idle, settle: 3000, leave: 3000, ...limits };
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
