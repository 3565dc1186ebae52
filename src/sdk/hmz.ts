/** hmz from a program: runs, the flows that can be run, and the record of the runs that were. */

import { join, resolve } from "node:path";
import type { Catalog, ListedFlow } from "../catalog/index.ts";
import { withoutPassword } from "../catalog/git-url.ts";
import type { LiveCall } from "../engine/run.ts";
import type { AnyFlow, Flow } from "../flows/flow.ts";
import type { Home } from "../home/paths.ts";
import { type EpicShelf, epicShelf } from "./epic-shelf.ts";
import { gitRunner } from "./git.ts";
import type { RunOptions } from "./prepare.ts";
import { Run, runningCalls } from "./run.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** The flows that can be named from the workspace. */
export interface Flows {
  /** As lists show them; one whose module cannot be imported is listed with why. */
  list(): Promise<readonly ListedFlow[]>;
  /** The flow that a ref names. @throws FlowNotFound @throws FlowRefError @throws FlowDefinitionError */
  load(ref: string): Promise<Flow>;
  /** Every flow call that is going in this process, oldest first. */
  running(): readonly LiveCall[];
  /**
   * Copies a flow, whole, into `.hmz/flows/`, to be changed. Resolves to where it is.
   *
   * @param name As lists show it. @param into Another place for it, relative to the workspace or absolute.
   * @throws Refused where one of the name is there. @throws FlowNotFound
   */
  fork(name: string, into?: string): Promise<string>;
}

/** One workspace. Loads nothing until it is asked for something. */
export class Hmz {
  readonly #workspace: string | undefined;
  readonly #home: string | undefined;
  readonly #env: Env;
  readonly flows: Flows;
  readonly epics: EpicShelf;

  /**
   * @param options.workspace Default: the current directory, read anew on each use.
   * @param options.home Default: HUMANIZE_HOME, else `~/.hmz`.
   * @param options.env Where keys, addresses and HUMANIZE_HOME are looked up. Default: the process's own.
   */
  constructor(
    options: {
      readonly workspace?: string | undefined;
      readonly home?: string | undefined;
      readonly env?: Env | undefined;
    } = {},
  ) {
    this.#workspace = options.workspace;
    this.#home = options.home;
    this.#env = options.env ?? process.env;
    this.flows = {
      list: async () => (await this.#catalog()).list(),
      load: async (ref) => (await this.#catalog()).load(ref),
      running: () => runningCalls(),
      fork: async (name, into) => {
        const [catalog, { copyFlow }] = await Promise.all([this.#catalog(), import("./new-flow.ts")]);
        return copyFlow(this.workspace, catalog.find(name), into);
      },
    };
    this.epics = epicShelf({
      home: () => this.#openHome(),
      workspace: () => this.workspace,
      env: () => this.#env,
    });
  }

  /** Absolute. */
  get workspace(): string {
    return resolve(this.#workspace ?? ".");
  }

  /**
   * A run of a flow. Nothing has started yet: `start` and `wait` do, and reject with `Refused` where it is refused.
   *
   * @param flow A ref, as in `-f`, or what `flow()` returned.
   */
  run(flow: string | AnyFlow, task: string, options: RunOptions = {}): Run {
    // A password in a ref is for git: the run, its record and its messages have the ref without it.
    const shown = typeof flow === "string" ? withoutPassword(flow) : flow;
    return new Run({
      flow: shown,
      task,
      options,
      workspace: this.workspace,
      env: this.#env,
      home: () => this.#openHome(),
      catalog: async () => {
        const catalog = await this.#catalog();
        if (shown === flow || typeof flow !== "string") return catalog;
        return { ...catalog, load: (ref, asking) => catalog.load(ref === shown ? flow : ref, asking) };
      },
    });
  }

  async #openHome(): Promise<Home> {
    const { Home } = await import("../home/paths.ts");
    return this.#home === undefined ? Home.of(this.#env) : new Home(this.#home);
  }

  async #catalog(): Promise<Catalog> {
    const [{ createCatalog }, { machineDir }] = await Promise.all([
      import("../catalog/index.ts"),
      import("../home/paths.ts"),
    ]);
    return createCatalog({
      workspace: this.workspace,
      cache: strippedCache(() => machineDir(this.#env)),
      repositories: { git: gitRunner(this.#env), directory: () => join(machineDir(this.#env), "skills") },
      checkouts: { git: gitRunner(this.#env), directory: () => join(machineDir(this.#env), "pinned") },
    });
  }
}

/** Where stripped TypeScript is kept; `undefined` where this machine's directory is not safe to keep code in. */
function strippedCache(machineDir: () => string): string | undefined {
  try {
    return join(machineDir(), "stripped");
  } catch {
    return undefined;
  }
}
