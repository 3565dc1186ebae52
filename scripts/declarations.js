// Reads the built declarations of an entry point: for the API report, and for the reference.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Extractor, ExtractorConfig, ExtractorLogLevel } from "@microsoft/api-extractor";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Runs the extractor over dist/<room>/index.d.ts.
 *
 * @param outputs What it writes: `apiReport`, `docModel`, as in its configuration.
 * @param localBuild Whether it may rewrite a report that says something else.
 */
export function readDeclarations(room, outputs, localBuild) {
  const declarations = join(root, "dist", room, "index.d.ts");
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: declarations,
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
          files: [declarations],
        },
      },
      apiReport: { enabled: false },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      newlineKind: "lf",
      messages: {
        extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
      },
      ...outputs,
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, "package.json"),
  });
  return Extractor.invoke(config, {
    localBuild,
    showVerboseMessages: false,
    // The compiler that the extractor brings is older than ours, which is no news.
    messageCallback: (message) => {
      message.handled = message.logLevel !== ExtractorLogLevel.Error;
    },
  });
}
