// The package as users get it: packed, installed into an empty project, and used.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const place = mkdtempSync(join(tmpdir(), "hmz-package-"));
const env = { ...process.env, HUMANIZE_HOME: join(place, "home"), HUMANIZE_PRICES: "off" };
const run = (program, ...args) => {
  console.log(`$ ${program} ${args.join(" ")}`);
  execFileSync(program, args, { cwd: place, env, stdio: "inherit" });
};

try {
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", place], { cwd: root });
  const tarball = readdirSync(place).find((file) => file.endsWith(".tgz"));
  writeFileSync(join(place, "package.json"), '{ "private": true, "type": "module" }\n');
  run("npm", "install", "--no-audit", "--no-fund", "--silent", `./${tarball}`);
  const hmz = join(place, "node_modules", ".bin", "hmz");
  run(hmz, "--version");
  run(hmz, "demo");
  run(hmz, "new", "twice");
  run(process.execPath, "--disable-warning=ExperimentalWarning", "--test", ".hmz/flows/twice/index.test.ts");
  run(hmz, "flows", "show", "twice");
  writeFileSync(
    join(place, "sdk.js"),
    'import { Hmz } from "hmz";\nconsole.log((await new Hmz().flows.list()).map(({ name }) => name).join(" "));\n',
  );
  run(process.execPath, "sdk.js");
} finally {
  rmSync(place, { recursive: true, force: true });
}
