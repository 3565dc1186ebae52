/** What this machine has, for whoever runs in it: the limits of a container count. */

import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { posix } from "node:path";
import type { MachineSize } from "../engine/ports.ts";

export function localSize(): MachineSize {
  const groups = controlGroups();
  return {
    cpus: Math.min(availableParallelism(), ...groups.map(cpuShare)),
    memory: Math.min(totalmem(), constrained(), ...groups.map(memoryLimit)),
    gpus: gpuCount(),
    // What a GPU's memory is only its driver's own program tells.
    gpuMemory: 0,
  };
}

/** The directories of this process's control group (version 2) and those above it: each may set a limit. */
function controlGroups(): readonly string[] {
  const own = /^0::(\/.*)$/m.exec(readText("/proc/self/cgroup") ?? "")?.[1];
  if (own === undefined) return [];
  const groups: string[] = [];
  for (
    let group = posix.join("/sys/fs/cgroup", own);
    group.startsWith("/sys/fs/cgroup");
    group = posix.dirname(group)
  ) {
    groups.push(group);
  }
  return groups;
}

/** `cpu.max` is `QUOTA PERIOD`, or `max PERIOD`. A share below one CPU is one. */
function cpuShare(group: string): number {
  const [quota, period] = (readText(posix.join(group, "cpu.max")) ?? "").trim().split(" ").map(Number);
  if (quota === undefined || period === undefined || !(quota > 0) || !(period > 0)) return Infinity;
  return Math.max(1, Math.floor(quota / period));
}

function memoryLimit(group: string): number {
  const limit = Number((readText(posix.join(group, "memory.max")) ?? "").trim() || Number.NaN);
  return limit > 0 ? limit : Infinity;
}

/** Node's own view, which knows the control groups of version 1. It is 0 where there is no limit. */
function constrained(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? limit : Infinity;
}

function gpuCount(): number {
  try {
    return readdirSync("/dev").filter((name) => /^nvidia\d+$/.test(name)).length;
  } catch {
    return 0;
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
