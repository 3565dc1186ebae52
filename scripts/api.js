// The API report of the three entry points: what they export, as files under api/ that are reviewed.
// `node scripts/api.js` fails where the built declarations say something else; `--update` writes them anew.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readDeclarations } from "./declarations.js";

const reportFolder = join(dirname(dirname(fileURLToPath(import.meta.url))), "api");
const update = process.argv.includes("--update");
const temp = mkdtempSync(join(tmpdir(), "hmz-api-"));
const entries = { hmz: "sdk", flows: "flows", fakes: "fakes" };
let failed = false;

mkdirSync(reportFolder, { recursive: true });
for (const [name, room] of Object.entries(entries)) {
  const apiReport = { enabled: true, reportFileName: `${name}.api.md`, reportFolder, reportTempFolder: temp };
  const { succeeded, apiReportChanged } = readDeclarations(room, { apiReport }, update);
  if (!succeeded || (apiReportChanged && !update)) {
    failed = true;
    console.error(`api/${name}.api.md does not say what dist/${room}/index.d.ts exports: npm run api`);
  }
}
rmSync(temp, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
