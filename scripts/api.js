// The API report of the three entry points: what they export, as files under api/ that are reviewed.
// `node scripts/api.js` fails where the built declarations say something else; `--update` writes them anew.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Extractor, ExtractorConfig, ExtractorLogLevel } from "@microsoft/api-extractor";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const update = process.argv.includes("--update");
const temp = mkdtempSync(join(tmpdir(), "hmz-api-"));
const entries = { hmz: "sdk", flows: "flows", fakes: "fakes" };
let failed = false;

mkdirSync(join(root, "api"), { recursive: true });
for (const [name, room] of Object.entries(entries)) {
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: join(root, "dist", room, "index.d.ts"),
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            module: "nodenext",
            moduleResolution: "nodenext",
            target: "es2023",
            lib: ["es2023", "esnext.disposable"],
            types: ["node"],
            strict: true,
            skipLibCheck: true,
          },
          files: [join(root, "dist", room, "index.d.ts")],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName: `${name}.api.md`,
        reportFolder: join(root, "api"),
        reportTempFolder: temp,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: "lf",
      messages: {
        extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, "package.json"),
  });
  const result = Extractor.invoke(config, {
    localBuild: update,
    showVerboseMessages: false,
    // The compiler that the extractor brings is older than ours, which is no news.
    messageCallback: (message) => {
      message.handled = message.logLevel !== ExtractorLogLevel.Error;
    },
  });
  if (!result.succeeded || (result.apiReportChanged && !update)) {
    failed = true;
    console.error(`api/${name}.api.md does not say what dist/${room}/index.d.ts exports: npm run api`);
  }
}
rmSync(temp, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
