// Installs the real CLIs, apart from the project's own dependencies, and runs the tests that drive them.
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const place = join(root, "test", "real");
const installed = join(place, "node_modules", ".package-lock.json");

if (!existsSync(installed) || !holdsTheLock()) {
  const npm = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--prefix", place], { stdio: "inherit" });
  if (npm.status !== 0) process.exit(npm.status ?? 1);
}
const asked = process.argv.slice(2);
const tests = asked.length > 0 ? asked : globSync("test/real/*.test.ts", { cwd: root });
// No test asks the public list of prices.
const ran = spawnSync(
  process.execPath,
  [
    "--conditions=hmz-source",
    "--disable-warning=ExperimentalWarning",
    "--test",
    "--test-concurrency=1",
    "--test-timeout=300000",
    ...tests,
  ],
  { cwd: root, stdio: "inherit", env: { ...process.env, HUMANIZE_PRICES: "off" } },
);
process.exit(ran.status ?? 1);

/** Whether what is installed is what the lock file asks for. */
function holdsTheLock() {
  const { packages: have } = JSON.parse(readFileSync(installed, "utf8"));
  const { packages: want } = JSON.parse(readFileSync(join(place, "package-lock.json"), "utf8"));
  return Object.entries(have).every(([name, { version }]) => want[name]?.version === version);
}
