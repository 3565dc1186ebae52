/** A directory of this machine, for drivers that run their program here and use nothing else of the machine. */

import { stat } from "node:fs/promises";
import type { Machine, Place } from "../../src/engine/ports.ts";

const HERE: Machine = {
  backend: "local",
  provider: "",
  serves: new Set(),
  size: { cpus: 1, memory: 1024 ** 3, gpus: 0, gpuMemory: 0 },
  exec: () => Promise.reject(new Error("not used")),
  read: () => Promise.reject(new Error("not used")),
  write: () => Promise.reject(new Error("not used")),
  makeDirectory: () => Promise.reject(new Error("not used")),
  isDirectory: async (path) => (await stat(path).catch(() => undefined))?.isDirectory() ?? false,
  close: async () => {},
};

export function localPlace(workdir: string): Place {
  return { machine: HERE, workdir };
}
