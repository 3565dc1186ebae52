// Runs the unit tests, from the sources as they are: `npm test [-- files…]`.
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";

const asked = process.argv.slice(2);
const options = asked.filter((word) => word.startsWith("--"));
const files = asked.filter((word) => !word.startsWith("--"));
const tests =
  files.length > 0 ? files : globSync(["src/**/*.test.ts", "test/unit/**/*.test.ts", "examples/**/*.test.ts"]);
// No test asks the public list of prices.
const ran = spawnSync(
  process.execPath,
  [
    "--conditions=hmz-source",
    "--disable-warning=ExperimentalWarning",
    "--test",
    "--test-timeout=60000",
    `--test-concurrency=${Math.max(2, availableParallelism())}`,
    ...options,
    ...tests,
  ],
  { stdio: "inherit", env: { ...process.env, HUMANIZE_PRICES: "off" } },
);
process.exit(ran.status ?? 1);
