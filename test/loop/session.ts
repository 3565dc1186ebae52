/** A session of `native` at work in a directory of its own, and what it told its host. */

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BoundCallbacks } from "../../src/engine/callbacks.ts";
import type { HarnessEvent } from "../../src/engine/events.ts";
import type {
  AgentDriver,
  Answer,
  JsonSchema,
  KeptConversation,
  Machine,
  OfferedTool,
  SessionDriver,
  Spend,
  TurnHost,
  Verdict,
} from "../../src/engine/ports.ts";
import { permission, type PermissionLike } from "../../src/flows/permission.ts";
import { nativeDriver, type NativeOptions } from "../../src/loop/driver.ts";
import { localMachine } from "../../src/machine/local.ts";

export interface TurnAsk {
  readonly signal?: AbortSignal;
  readonly tools?: readonly OfferedTool[];
  readonly schema?: JsonSchema;
  readonly preToolUse?: (tool: string, input: Readonly<Record<string, unknown>>) => Promise<Verdict>;
  readonly heard?: (event: HarnessEvent) => void;
}

/** A directory and a machine, removed with the test. */
export class Workplace implements Disposable {
  readonly workdir = realpathSync(mkdtempSync(join(tmpdir(), "hmz-loop-")));
  readonly machine: Machine;

  constructor(machine: Machine = localMachine()) {
    this.machine = machine;
  }

  /** Writes a script beside the workdir's files and returns its path. */
  script(script: unknown): string {
    const file = join(this.workdir, ".script.json");
    writeFileSync(file, typeof script === "string" ? script : JSON.stringify(script));
    return file;
  }

  [Symbol.dispose](): void {
    rmSync(this.workdir, { recursive: true, force: true });
  }
}

/** This machine, but that its commands find programs in one directory only. */
export function machineWithPrograms(directory: string): Machine {
  const machine = localMachine();
  return {
    backend: machine.backend,
    provider: machine.provider,
    serves: machine.serves,
    size: machine.size,
    exec: (argv, request) => machine.exec(["/usr/bin/env", `PATH=${directory}`, ...argv], request),
    read: (path) => machine.read(path),
    write: (path, data) => machine.write(path, data),
    makeDirectory: (path) => machine.makeDirectory(path),
    isDirectory: (path) => machine.isDirectory(path),
    close: () => machine.close(),
  };
}

export interface OpenOptions extends Partial<NativeOptions> {
  /** Replayed in place of a model. */
  readonly script?: unknown;
  readonly permission?: PermissionLike;
  readonly callbacks?: BoundCallbacks;
  readonly carries?: KeptConversation;
}

export class Worker {
  readonly driver: AgentDriver;
  readonly session: SessionDriver;
  readonly events: HarnessEvent[] = [];
  readonly spends: Spend[] = [];
  readonly ids: string[] = [];
  readonly #at: Workplace;
  readonly #options: OpenOptions;

  constructor(at: Workplace, options: OpenOptions, forkOf?: Worker) {
    const { script, permission: scopes, callbacks = {}, carries, ...native } = options;
    this.#at = at;
    this.#options = options;
    this.driver =
      forkOf?.driver ??
      nativeDriver({
        model: script === undefined ? "scripted/none" : `scripted/${at.script(script)}`,
        env: {},
        retries: 0,
        ...native,
      });
    this.session = this.driver.open({
      role: "builder",
      permission: permission(scopes),
      skills: [],
      callbacks,
      ...(forkOf !== undefined ? { forkOf: forkOf.session } : carries !== undefined ? { carries } : {}),
    });
  }

  fork(): Worker {
    return new Worker(this.#at, this.#options, this);
  }

  async take(prompt: string, ask: TurnAsk = {}): Promise<Answer> {
    const { machine, workdir } = this.#at;
    const setup = {
      place: { machine, workdir },
      hung: new Set<never>(),
      tools: ask.tools ?? [],
      clis: [],
      schema: ask.schema,
    };
    const host: TurnHost = {
      setup,
      command: undefined,
      signal: ask.signal ?? new AbortController().signal,
      named: (id) => this.ids.push(id),
      event: (event) => {
        this.events.push(event);
        ask.heard?.(event);
      },
      spent: (spend) => this.spends.push(spend),
      preToolUse: ask.preToolUse ?? (() => Promise.resolve({ allow: true })),
      permissionRequest: () => Promise.resolve({ allow: true }),
      notification: () => Promise.resolve(),
      subagentStart: () => Promise.resolve(),
      subagentStop: () => Promise.resolve(),
      askUser: () => Promise.resolve(undefined),
    };
    await this.session.ready(setup);
    return this.session.take(prompt, host);
  }

  said(kind: HarnessEvent["kind"]): readonly string[] {
    return this.events.filter((event) => event.kind === kind).map((event) => event.text);
  }
}
