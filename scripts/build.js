// Builds dist/ from src/, and what is native. Runs by `npm ci` (as `prepare`), so it is plain JavaScript.
import { spawnSync } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const fresh = join(root, "dist.building");

/** What is reached by name: the launcher's, the package's entry points, and the zod that flows are given. */
const ENTRIES = {
  "cli/main": "src/cli/main.ts",
  "sdk/index": "src/sdk/index.ts",
  "flows/index": "src/flows/index.ts",
  "fakes/index": "src/fakes/index.ts",
  "vendor/zod": "scripts/zod.js",
};

await build();

async function build() {
  rmSync(fresh, { recursive: true, force: true });
  declare();
  await bundle();
  // A process that runs from dist/ while it is built anew finds the old one or the new one, never half of it.
  const dist = join(root, "dist");
  const old = join(root, "dist.old");
  rmSync(old, { recursive: true, force: true });
  try {
    renameSync(dist, old);
  } catch {
    // The first build has none.
  }
  renameSync(fresh, dist);
  rmSync(old, { recursive: true, force: true });
  spawnSync(process.execPath, [join(root, "scripts", "build-native.js")], { stdio: "inherit" });
}

/** The declarations, and the types checked on the way. */
function declare() {
  const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
  const tsc = join(typescript, "bin", "tsc");
  const project = join(root, "tsconfig.build.json");
  const { status } = spawnSync(process.execPath, [tsc, "-p", project, "--outDir", fresh], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

/**
 * The code, in a few files: hmz is two hundred modules and zod a hundred, and a start that reads each by itself takes
 * three times as long. Every file lies two directories deep, as the sources do: what a room looks up beside itself is
 * where it was.
 */
async function bundle() {
  const bundled = await rolldown({
    input: Object.fromEntries(Object.entries(ENTRIES).map(([name, file]) => [name, join(root, file)])),
    platform: "node",
    logLevel: "warn",
    external: [/^node:/, /^ai$/, /^@ai-sdk\//, "semver"],
    resolve: { conditionNames: ["hmz-source", "import", "default"] },
    transform: { target: "node22.18" },
  });
  await bundled.write({
    dir: fresh,
    format: "esm",
    sourcemap: true,
    entryFileNames: "[name].js",
    chunkFileNames: "lib/[name]-[hash].js",
    codeSplitting: { groups: [{ name: "zod", test: /node_modules[\\/]zod[\\/]/ }] },
  });
  await bundled.close();
}
