/** What a run needs where nothing takes any time: an agent that answers at once, a machine that is never asked. */

import type { AgentDriver, Machine, RunSetup } from "../src/engine/ports.ts";

/** An agent whose every turn answers `done` at once, and costs next to nothing. */
export function instantAgent(): AgentDriver {
  let sessions = 0;
  return {
    harness: "claude",
    model: "instant",
    effort: "",
    provider: "",
    serves: new Set(),
    forks: "anywhere",
    shelves: false,
    open() {
      const id = `session-${++sessions}`;
      return {
        id,
        async ready() {},
        async take(_prompt, turn) {
          turn.named(id);
          turn.spent({ model: "instant", tokens: { input: 10, output: 5 }, cost: 0.000_01 });
          return { text: "done" };
        },
        async close() {},
      };
    },
    async close() {},
  };
}

const unused = async (): Promise<never> => {
  throw new Error("nothing is asked of this machine");
};

const machine: Machine = {
  backend: "local",
  provider: "",
  serves: new Set(),
  size: { cpus: 1, memory: 1, gpus: 0, gpuMemory: 0 },
  exec: unused,
  read: unused,
  write: unused,
  makeDirectory: unused,
  isDirectory: async () => true,
  async close() {},
};

/** A run's setup without its flow; events are counted and dropped. */
export function instantSetup(roles: readonly string[]): Omit<RunSetup, "flow" | "task" | "budget"> {
  return {
    agents: Object.fromEntries(roles.map((role) => [role, instantAgent()])),
    envs: {},
    workspace: { machine, workdir: "/" },
    outworlder: { away: () => true, ask: unused },
    params: {},
    prices: { cost: () => 0 },
    recorder: { record() {} },
    load: unused,
    keep: () => {
      throw new Error("nothing here is kept");
    },
    skills: async () => [],
  };
}
