// Runs the benches: every figure beside its floor and a peer. `npm run bench -- NAME…` for some of them.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const NAMES = ["turn", "call", "state", "resume", "crowd", "start", "stream", "derive", "live-turn"];
const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : NAMES) {
  if (!existsSync(`bench/${name}.ts`)) {
    console.error(`there is no bench '${name}'; there are ${NAMES.join(", ")}`);
    process.exit(2);
  }
  const { status } = spawnSync(
    process.execPath,
    ["--conditions=hmz-source", "--disable-warning=ExperimentalWarning", `bench/${name}.ts`],
    { stdio: "inherit" },
  );
  if (status !== 0) process.exit(status ?? 1);
}
