/**
 * What the engine needs of the world, and its only way out. A harness, a machine, a fake is whatever satisfies its
 * port; each port has a conformance suite under test/conformance/ that every implementation runs.
 */

import type { z } from "zod";
import type { EnvBackend, EnvNeed } from "../flows/env.ts";
import type { AgentNeed, Forks, Harness } from "../flows/harness.ts";
import type { AnyFlow, Flow } from "../flows/flow.ts";
import type { HookKind } from "../flows/hooks.ts";
import type { Permission } from "../flows/permission.ts";
import type { FlowDefinition, FlowIdentity } from "../flows/definition.ts";
import type { Message } from "../flows/callbacks.ts";
import type { CliResult } from "../flows/command-line.ts";
import type { BoundCallbacks } from "./callbacks.ts";
import type { HarnessEvent, RunEvent, Tokens } from "./events.ts";

// ── agents ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One agent: a harness at a model, an effort and an account. Opens sessions; shared by every call that is handed it. */
export interface AgentDriver {
  readonly harness: Harness;
  readonly model: string;
  /** `""` where none was given. */
  readonly effort: string;
  /** `""` for the account that this machine is signed into. */
  readonly provider: string;
  /** The needs that this driver really serves. */
  readonly serves: ReadonlySet<AgentNeed>;
  readonly forks: Forks;
  /** Whether its sessions put the flow's command lines (`TurnSetup.clis`) on their agent's PATH. */
  readonly shelves: boolean;
  /**
   * Looks at what can be known before a run: whether the program is there, the key set, the script one. Starts nothing.
   *
   * @throws HarnessError, of the leaf that the first turn would fail with.
   */
  check?(): Promise<void>;
  /** Opens a session. Starts nothing: the session's first `ready` does. */
  open(opening: Opening): SessionDriver;
  /** Ends whatever its sessions share. Called once, after each of them was closed. */
  close(): Promise<void>;
}

export interface Opening {
  readonly role: string;
  readonly permission: Permission;
  readonly skills: readonly Skill[];
  /** The role's, each called as the flow. */
  readonly callbacks: BoundCallbacks;
  /** The session that this one carries on from. It stands still until this one's first turn was taken. */
  readonly forkOf?: SessionDriver;
  /** The kept conversation that this one carries on, as a fork that its first turn cuts. The copy stays as it is. */
  readonly carries?: KeptConversation;
}

/** A conversation as `SessionDriver.keep` copied it. */
export interface KeptConversation {
  /** The harness's own id of it. */
  readonly id: string;
  /** The directory that holds the copy. Absolute. */
  readonly at: string;
}

/** Instructions for one kind of work: a directory on this machine that holds a `SKILL.md`. */
export interface Skill {
  /** The directory's name. No two skills of a role share one. */
  readonly name: string;
  /** Absolute; `""` for one that a fake stands in for. */
  readonly directory: string;
  /** What the role wrote to be given it: its name, or the URLs of repositories that hold it. */
  readonly entries: readonly string[];
}

/** One conversation. Its methods are never called while a turn is under way, but `steer` and `close`. */
export interface SessionDriver {
  /** The harness's own id of the conversation, `""` until it named one. */
  readonly id: string;
  /**
   * Makes the harness ready to take a turn at a place: starts it, restarts it where something that it reads at its
   * start has changed, carries the conversation to another workdir. Resolves at once where it is ready already.
   *
   * @throws HarnessError, of the leaf that says why it could not be started.
   */
  ready(setup: TurnSetup): Promise<void>;
  /**
   * Sends a prompt and resolves once the harness has come to rest, everything that it started included.
   *
   * When `turn.signal` is aborted, interrupts the harness, keeps the conversation, and rejects with the signal's
   * reason once it has come to rest.
   *
   * @throws HarnessError, of the leaf that says why the turn failed.
   */
  take(prompt: string, turn: TurnHost): Promise<Answer>;
  /**
   * Puts text into the turn under way: at the harness's next opportunity, or at once where not `queued`. Resolves to
   * whether the harness took it; what it did not take is sent as the next prompt of the same turn.
   */
  steer?(text: string, queued: boolean): Promise<boolean>;
  /**
   * Copies the conversation as it stands, and nothing else of the harness's home, into a directory that is there and
   * empty. Never called during a turn. Returns once it is written: what a state holds is kept before its `set` returns.
   *
   * @throws UnsupportedOperation where the harness keeps no conversation that could be carried on from a copy.
   */
  keep?(into: string): void;
  /** Ends the conversation's processes; interrupts a turn under way. The conversation itself is kept. */
  close(): Promise<void>;
  /** The conversation, where the driver holds it: what a turn's `afterRun` is given. */
  readonly messages?: readonly Message[];
}

/** Where a turn works, and what the harness must know before it starts. */
export interface TurnSetup {
  readonly place: Place;
  /** The hooks that hang when the turn starts: some change how a CLI is started. */
  readonly hung: ReadonlySet<HookKind>;
  readonly tools: readonly OfferedTool[];
  /** The flow's command lines; empty for a driver that does not shelve them. */
  readonly clis: readonly ShelvedCli[];
  /** The JSON Schema that the answer must have. */
  readonly schema: JsonSchema | undefined;
  /** The schema itself, for a driver in this process. */
  readonly zod?: z.ZodType | undefined;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Answer {
  /** The agent's last message. */
  readonly text: string;
  /** The object that the harness's own way of structured output gave, where it has one. */
  readonly structured?: unknown;
}

/** A directory on a machine. */
export interface Place {
  readonly machine: Machine;
  /** Absolute. */
  readonly workdir: string;
}

/** A tool of the flow's own, ready to be called by the harness. */
export interface OfferedTool {
  readonly name: string;
  readonly about: string;
  readonly schema: JsonSchema;
  /** Runs it as the flow. Never rejects: what was thrown is the text, with `failed`. */
  call(input: unknown): Promise<{ readonly text: string; readonly failed: boolean }>;
}

/** A command line of the flow's own, ready to be run by whatever stands on the agent's PATH under its name. */
export interface ShelvedCli {
  readonly name: string;
  readonly about: string;
  /** Runs it as the flow, the program's own name left out of `argv`. Never rejects. */
  run(argv: readonly string[]): Promise<CliResult>;
}

/** A step of what has been spent: the difference from what was last reported, never a running total. */
export interface Spend {
  readonly model: string;
  readonly tokens: Tokens;
  /** USD, where whoever reports it knows better than a price table: a fake, or a scripted model. */
  readonly cost?: number;
  /** Seconds that count in place of the clock's: a fake's turns take none. */
  readonly seconds?: number;
}

/** What a turn's harness tells the engine, and asks of it. */
export interface TurnHost {
  readonly setup: TurnSetup;
  /** The prompt's own command, its word already taken off the prompt for `goal`. */
  readonly command: "goal" | "loop" | undefined;
  readonly signal: AbortSignal;
  /** The harness named its conversation. May be told more than once; the last one holds. */
  named(id: string): void;
  event(event: HarnessEvent): void;
  spent(spend: Spend): void;
  /** Whether a tool may run, and, where not, what the agent is told. */
  preToolUse(tool: string, input: Readonly<Record<string, unknown>>): Promise<Verdict>;
  permissionRequest(tool: string, input: Readonly<Record<string, unknown>>): Promise<Verdict>;
  notification(message: string): Promise<void>;
  subagentStart(subagent: string, task: string): Promise<void>;
  subagentStop(subagent: string, said: string): Promise<void>;
  /** The answer, or `undefined` where nobody gives one. */
  askUser(question: string, options: readonly string[]): Promise<string | undefined>;
}

export type Verdict = { readonly allow: true } | { readonly allow: false; readonly reason: string };

// ── machines ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a machine has. Memory in bytes. */
export interface MachineSize {
  readonly cpus: number;
  readonly memory: number;
  readonly gpus: number;
  readonly gpuMemory: number;
}

/** A machine that environments are on. Paths are absolute. */
export interface Machine {
  readonly backend: EnvBackend;
  readonly provider: string;
  readonly serves: ReadonlySet<EnvNeed>;
  readonly size: MachineSize;
  /**
   * Runs one program, no shell, with its standard input closed.
   *
   * @throws EnvCommandTimeout past the timeout, its whole tree ended. @throws EnvError where it cannot start.
   */
  exec(argv: readonly string[], options: ExecRequest): Promise<ExecOutcome>;
  /** @throws EnvFileNotFound @throws EnvPermissionDenied */
  read(path: string): Promise<Uint8Array>;
  /** Replaces the file whole, creating its parent directories. @throws EnvPermissionDenied */
  write(path: string, data: Uint8Array): Promise<void>;
  /** Makes a directory and its parents; nothing where it is there. @throws EnvError */
  makeDirectory(path: string): Promise<void>;
  isDirectory(path: string): Promise<boolean>;
  /** What it makes of a workdir; absent where it serves none of `worktree`, `temp_clone`, `scratch` and `git`. */
  readonly derive?: Derive;
  /** Why it does not serve a need, for a refusal: `git needs git on the machine's PATH, and it has none`. */
  lacks?(need: EnvNeed): string | undefined;
  /** Lets go of whatever it holds. Copies and scratch directories that were not destroyed stay. */
  close(): Promise<void>;
}

/**
 * The directories and snapshots that a machine makes of a workdir. Paths are absolute. Copies and scratch directories
 * lie where a later run finds them again: their place follows from the workdir and the id.
 */
export interface Derive {
  /**
   * Adds a git worktree, detached, and returns its directory. It is never removed.
   *
   * @param options.ref Default: what the workdir has checked out. @param options.dir Absolute; default: a fresh one.
   * @throws WorktreeError
   */
  worktree(workdir: string, options: { readonly ref?: string; readonly dir?: string }): Promise<string>;
  /**
   * The copy of a workdir that an id names: made where `holder` does not have it yet, and held from then on.
   *
   * @throws TempCloneBusy where somebody else holds it, in this process or another. @throws EnvError
   */
  tempClone(workdir: string, id: string, holding: Holding): Promise<string>;
  /** Removes a copy and lets go of it; nothing where the holder has none. @throws EnvError */
  destroyTempClone(workdir: string, id: string, holder: object): Promise<void>;
  /** An empty directory for an id, held as a copy is; one that another run holds is passed over. @throws ScratchError */
  scratch(workdir: string, id: string, holding: Holding): Promise<string>;
  /** @throws ScratchError */
  destroyScratch(workdir: string, id: string, holder: object): Promise<void>;
  /** Lets go of what a holder has, and leaves it there: a later run picks it up. */
  release(holder: object): Promise<void>;
  /** Records the git worktree that holds the workdir under `refs/hmz/snapshots/`; returns the ref. @throws RewindError */
  snapshot(workdir: string, name: string | undefined): Promise<string>;
  /** Restores it. @throws RewindError */
  rewind(workdir: string, ref: string): Promise<void>;
  /** The refs of its snapshots, oldest first. @throws RewindError */
  snapshots(workdir: string): Promise<string[]>;
}

/** Who holds a copy or a scratch directory, and what becomes of what is there already. */
export interface Holding {
  /** The environment, by identity: the same one is given the same directory again. */
  readonly holder: object;
  /** Where an earlier run that this one picked up had it: it is taken as it stands. Left out: it is made anew. */
  readonly earlier?: string;
  /** Whether it outlives its run: one that does not is removed by whoever next starts a run, where this one was killed. */
  readonly outlives: boolean;
}

export interface ExecRequest {
  readonly cwd: string;
  /** Milliseconds; 0 for none. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

export interface ExecOutcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

// ── the person, prices, flows, the record ───────────────────────────────────────────────────────────────────────────

/** Whoever is outside the run. */
export interface OutworlderDriver {
  /** Whether nobody is there to answer for a role. */
  away(role: string): boolean;
  /** Text, or a value of the schema. Called only while somebody is there. */
  ask(question: {
    readonly role: string;
    readonly prompt: string;
    readonly schema: z.ZodType | undefined;
    readonly signal: AbortSignal;
  }): Promise<unknown>;
}

export interface Prices {
  /** USD; `undefined` for a model with no price. */
  cost(model: string, tokens: Tokens): number | undefined;
}

export interface Recorder {
  /** Never throws, never waits. */
  record(event: RunEvent): void;
}

/** Finds the flow that a ref names, relative to the flow asking. */
export type FlowLoader = (ref: string, asking: FlowIdentity) => Promise<Flow>;

/**
 * Finds the skills that a role of a flow names, fetching what lies in a repository.
 *
 * @throws FlowDefinitionError where one of them is not there, or cannot be fetched.
 */
export type SkillResolver = (flow: FlowDefinition, role: string) => Promise<readonly Skill[]>;

/** Where a resumable run writes what it could be picked up from: a file of lines, each a JSON object. */
export interface JournalStore {
  /** What the run that is picked up left, in order, bad lines left out; `undefined` for a run from the beginning. */
  readonly earlier: readonly unknown[] | undefined;
  /** Whether the run asked that every write be on disk before anything leaves the process. */
  readonly durable: boolean;
  /** Writes what the journal begins with, whole. Called once, before any other write. @throws Error */
  begin(lines: Iterable<string>): void;
  /**
   * Appends a line. A flushed one is with the kernel when this returns, with every line before it; another is within a
   * tenth of a second.
   *
   * @throws Error where a flushed line could not be written. What was written before stays readable.
   */
  append(line: string, flushed: boolean): void;
  /** Resolves once everything that was appended is on disk; those who wait at once share one sync. @throws Error */
  synced(): Promise<void>;
  /** Writes what is held back, syncs, lets go. Never throws; once. */
  close(): Promise<void>;
}

export interface KeptDirectory {
  /** Absolute. */
  readonly directory: string;
  /** Takes it away again: the conversation could not be copied. Never throws. */
  discard(): void;
}

export interface RunSetup {
  readonly flow: AnyFlow;
  readonly task: string;
  /** One driver for each agent role that is given. */
  readonly agents: Readonly<Record<string, AgentDriver>>;
  readonly envs: Readonly<Record<string, Place>>;
  /** The workspace that the run was started in. */
  readonly workspace: Place;
  readonly outworlder: OutworlderDriver;
  readonly params: unknown;
  readonly budget: unknown;
  readonly prices: Prices;
  readonly recorder: Recorder;
  readonly load: FlowLoader;
  /** Makes an empty directory for a conversation that a state keeps. It outlives the run where there is a journal. */
  readonly keep: (harness: Harness) => KeptDirectory;
  /** Asked once a run for each role of each flow that names skills, before the flow's function runs. */
  readonly skills: SkillResolver;
  /** Grant each agent role every need that its driver serves, whatever it declares. */
  readonly fullView?: boolean;
}
