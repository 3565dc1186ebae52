/** What this machine has, for whoever runs in it: the limits of a container count. */

import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { posix } from "node:path";
import type { MachineSize } from "../engine/ports.ts";
import { answerOf } from "../process/answer.ts";

/** What the size is made of. */
export interface SizeReadings {
  /** CPUs that this process may run on. */
  readonly cpus: number;
  /** Bytes of the whole machine. */
  readonly memory: number;
  /** A file's text; `undefined` where there is none. */
  readonly file: (path: string) => string | undefined;
  /** What the GPUs' own program prints of their memory: MiB, a line for each. `undefined` where it is not there. */
  readonly gpus: () => string | undefined;
}

/** Longer than a GPU that slept takes to answer. */
const GPU_TIMEOUT_MS = 10_000;

export function localSize(): MachineSize {
  return sizeOf({
    cpus: availableParallelism(),
    memory: Math.min(totalmem(), constrained()),
    file: readText,
    gpus: () => answerOf(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"], GPU_TIMEOUT_MS),
  });
}

/** The GPUs are looked at once one asks for them: their program takes a second. */
export function sizeOf(readings: SizeReadings): MachineSize {
  const groups = controlGroups(readings);
  let gpus: readonly number[] | undefined;
  const gpuMemories = (): readonly number[] => (gpus ??= gpuMemoriesOf(readings.gpus() ?? ""));
  return {
    cpus: Math.max(1, Math.min(readings.cpus, ...groups.cpu.map((group) => cpuShare(readings, group)))),
    memory: Math.min(readings.memory, ...groups.memory.map((group) => memoryLimit(readings, group))),
    get gpus() {
      return gpuMemories().length;
    },
    /** The least of them: any of them may be the one that is used. */
    get gpuMemory() {
      return gpuMemories().length === 0 ? 0 : Math.min(...gpuMemories());
    },
  };
}

const ROOT = "/sys/fs/cgroup";

interface ControlGroups {
  readonly cpu: readonly string[];
  readonly memory: readonly string[];
}

/**
 * The directories of this process's control groups and of those above: each may set a limit. In a container, a group
 * may be named as the host names it, and lies at the root.
 */
function controlGroups({ file }: SizeReadings): ControlGroups {
  const cpu: string[] = [];
  const memory: string[] = [];
  for (const line of (file("/proc/self/cgroup") ?? "").split("\n")) {
    const [, names, own] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (names === undefined || own === undefined) continue;
    if (names === "") {
      const groups = upFrom(ROOT, own);
      cpu.push(...groups);
      memory.push(...groups);
    }
    if (names.split(",").includes("cpu")) cpu.push(...upFrom(`${ROOT}/cpu`, own), ...upFrom(`${ROOT}/${names}`, own));
    if (names.split(",").includes("memory")) memory.push(...upFrom(`${ROOT}/memory`, own));
  }
  return { cpu, memory };
}

function upFrom(root: string, own: string): readonly string[] {
  const groups: string[] = [];
  for (let group = posix.join(root, own).replace(/\/$/, ""); group.startsWith(root); group = posix.dirname(group)) {
    groups.push(group);
  }
  return groups;
}

/** Version 2: `cpu.max` is `QUOTA PERIOD`, or `max PERIOD`; version 1: a file each, -1 for none. */
function cpuShare({ file }: SizeReadings, group: string): number {
  const both =
    file(`${group}/cpu.max`) ??
    `${file(`${group}/cpu.cfs_quota_us`) ?? ""} ${file(`${group}/cpu.cfs_period_us`) ?? ""}`;
  const [quota, period] = both.trim().split(/\s+/).map(Number);
  if (quota === undefined || period === undefined || !(quota > 0) || !(period > 0)) return Infinity;
  // A share below one CPU is one.
  return Math.max(1, Math.floor(quota / period));
}

function memoryLimit({ file }: SizeReadings, group: string): number {
  const said = file(`${group}/memory.max`) ?? file(`${group}/memory.limit_in_bytes`) ?? "";
  const limit = Number(said.trim() || Number.NaN);
  return limit > 0 ? limit : Infinity;
}

/** A GPU whose memory is not told, `[N/A]`, shares the machine's: it counts, with none of its own. */
function gpuMemoriesOf(said: string): readonly number[] {
  const lines = said.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "").map((line) => (/^\d+$/.test(line) ? Number(line) * 2 ** 20 : 0));
}

/** Node's own view. It is 0 where there is no limit. */
function constrained(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? limit : Infinity;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
