// Builds the native programs under native/ for this machine: `node scripts/build-native.js`. Without a C compiler, or
// away from Linux, it says so and succeeds: hmz does without them.
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const programs = ["leash"];

if (process.platform === "linux") for (const name of programs) build(name);

function build(name) {
  const source = join(root, "native", name, `${name}.c`);
  const target = join(root, "native", name, "bin", `${process.platform}-${process.arch}`, name);
  const compiling = `${target}.${process.pid}`;
  mkdirSync(dirname(target), { recursive: true });
  // Static where the C library can be: a program without a loader starts sooner, and starts under any libc.
  const faults = [];
  for (const flags of [["-static"], []]) {
    const cc = spawnSync(
      process.env.CC ?? "cc",
      ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-s", ...flags, "-o", compiling, source],
      {
        encoding: "utf8",
      },
    );
    if (cc.status === 0) {
      // In one step: a run that starts in this moment finds the old one or the new one.
      renameSync(compiling, target);
      return;
    }
    faults.push(cc.error?.message ?? cc.stderr.trim());
  }
  rmSync(compiling, { force: true });
  console.error(`hmz: native/${name} was not built, hmz does without it: ${faults.at(-1)}`);
}
