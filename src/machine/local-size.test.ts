import assert from "node:assert/strict";
import { test } from "node:test";
import { localSize, sizeOf, type SizeReadings } from "./local-size.ts";

const GIB = 2 ** 30;

function readings(files: Readonly<Record<string, string>> = {}, gpus?: string): SizeReadings {
  return { cpus: 16, memory: 64 * GIB, file: (path) => files[path], gpus: () => gpus };
}

const size = (files: Readonly<Record<string, string>>): readonly [number, number] => {
  const { cpus, memory } = sizeOf(readings(files));
  return [cpus, memory / GIB];
};

const V1 = "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/docker/abc\n";

for (const [what, files, cpus, memory] of [
  ["no control group", {}, 16, 64],
  ["a group without limits", { "/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "max 100000\n" }, 16, 64],
  [
    "a group with both",
    {
      "/proc/self/cgroup": "0::/a\n",
      "/sys/fs/cgroup/a/cpu.max": "250000 100000\n",
      "/sys/fs/cgroup/a/memory.max": `${4 * GIB}\n`,
    },
    2,
    4,
  ],
  [
    "a group above, and the root of a container",
    {
      "/proc/self/cgroup": "0::/a/b\n",
      "/sys/fs/cgroup/a/cpu.max": "400000 100000\n",
      "/sys/fs/cgroup/memory.max": `${8 * GIB}\n`,
      "/sys/fs/cgroup/a/b/memory.max": "max\n",
    },
    4,
    8,
  ],
  ["a share below one CPU", { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n" }, 1, 64],
  [
    "version 1, a group as the host names it",
    {
      "/proc/self/cgroup": V1,
      "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n",
      "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": `${2 * GIB}\n`,
    },
    3,
    2,
  ],
  [
    "version 1 without limits",
    {
      "/proc/self/cgroup": V1,
      "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "-1\n",
      "/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000\n",
      "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "9223372036854771712\n",
    },
    16,
    64,
  ],
] as const) {
  test(`CPUs and memory: ${what}`, () => assert.deepEqual(size(files), [cpus, memory]));
}

for (const [what, said, gpus, gpuMemory] of [
  ["no program", undefined, 0, 0],
  ["none found", "", 0, 0],
  ["two, the smaller counts", "81559\n40960\n", 2, 40_960 * 2 ** 20],
  ["one that does not tell", "[N/A]\n", 1, 0],
] as const) {
  test(`GPUs: ${what}`, () => {
    const found = sizeOf(readings({}, said));
    assert.deepEqual([found.gpus, found.gpuMemory], [gpus, gpuMemory]);
  });
}

test("the GPUs' program is asked once, and only where they are", () => {
  let asked = 0;
  const found = sizeOf({
    ...readings(),
    gpus: () => {
      asked++;
      return "1\n";
    },
  });
  assert.ok(found.cpus > 0);
  assert.equal(asked, 0);
  assert.equal(found.gpus + found.gpuMemory, 1 + 2 ** 20);
  assert.equal(asked, 1);
});

test("this machine has a CPU and memory", () => {
  const { cpus, memory } = localSize();
  assert.ok(cpus >= 1 && memory > 2 ** 20);
});
