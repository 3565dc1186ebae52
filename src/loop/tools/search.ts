import { z } from "zod";
import { boundedOutput } from "./bounded-output.ts";
import { expandBraces } from "./glob.ts";
import { lookingAt, lookUp, words } from "./lookup.ts";
import { extendedRegex } from "./regex.ts";
import { loopTool } from "./tool.ts";

const USUAL_LINES = 200;
const MOST_LINES = 2000;
const LONGEST_LINE = 400;
const MOST_CHARACTERS = 40_000;

export const searchTool = loopTool({
  name: "search",
  about:
    "Searches the contents of files for a regular expression, line by line, hidden files included and ignored ones " +
    "(.gitignore) left out. Answers path:line:text, or only the paths with filesOnly.",
  takes: z.strictObject({
    pattern: z.string().min(1).describe("a regular expression"),
    path: z.string().min(1).optional().describe("a directory or a file; the working directory where left out"),
    glob: z.string().min(1).optional().describe("only files that fit, such as *.ts or src/**/*.{ts,tsx}"),
    ignoreCase: z.boolean().optional(),
    filesOnly: z.boolean().optional(),
    limit: z
      .int()
      .min(1)
      .max(MOST_LINES)
      .optional()
      .describe(`how many lines come back, ${USUAL_LINES} where left out`),
  }),
  needs: "read",
  subject: "pattern",
  async run({ pattern, path = ".", glob, ignoreCase, filesOnly, limit = USUAL_LINES }, { place, reach, signal }) {
    const absolute = await reach.toRead(path);
    const { cwd, target, note } = await lookingAt(path, absolute, { place, shown: (path) => reach.shown(path) });
    const globs = glob === undefined ? [] : expandBraces(glob);
    const inTarget = target === "." ? "" : `${target}/`;
    const extended = extendedRegex(pattern);
    const { stdout, stderr } = await lookUp(place, {
      cwd,
      signal,
      roads: {
        ripgrep: [
          ...words("rg --no-config --no-heading --with-filename --line-number --color=never --hidden --sort=path"),
          ...words(`--glob=!.git --max-columns=${LONGEST_LINE} --max-columns-preview`),
          ...(ignoreCase === true ? ["--ignore-case"] : []),
          ...(filesOnly === true ? ["--files-with-matches"] : []),
          ...(glob === undefined ? [] : [`--glob=${glob}`]),
          "-e",
          pattern,
          "--",
          target,
        ],
        git: [
          ...words("git -c core.quotePath=off grep -n -I -E --untracked --no-color"),
          ...(ignoreCase === true ? ["-i"] : []),
          ...(filesOnly === true ? ["-l"] : []),
          "-e",
          extended,
          "--",
          ...(globs.length === 0
            ? [`:(literal)${target}`]
            : globs.map((glob) => `:(glob)${glob.includes("/") ? glob : `${inTarget}**/${glob}`}`)),
        ],
        plain: [
          "find",
          target,
          ...words("-name .git -prune -o -type f"),
          ...(globs.length === 0
            ? []
            : ["(", ...globs.flatMap((glob, at) => [...(at === 0 ? [] : ["-o"]), "-name", lastPart(glob)]), ")"]),
          // With /dev/null, grep has two files at least and always says which one.
          ...words(`-exec grep ${filesOnly === true ? "-lE" : "-nE"}`),
          ...(ignoreCase === true ? ["-i"] : []),
          "-e",
          extended,
          ...words("/dev/null {} +"),
        ],
      },
    });
    if (stdout === "" && stderr.trim() !== "") throw new Error(boundedOutput(stderr.trim(), 2000));
    const lines = stdout.split("\n").filter((line) => line !== "" && !/^Binary file .* matches$/.test(line));
    if (lines.length === 0) return "(nothing found)";
    const shown = lines.slice(0, limit).map((line) => {
      const plain = line.replace(/^\.\//, "");
      return plain.length > LONGEST_LINE * 2 ? `${plain.slice(0, LONGEST_LINE * 2)}…` : plain;
    });
    const rest = lines.length - shown.length;
    const text = boundedOutput(shown.join("\n"), MOST_CHARACTERS);
    return `${note}${text}${rest > 0 ? `\n(${rest} more: narrow the search, or raise limit)` : ""}`;
  },
});

function lastPart(glob: string): string {
  return glob.slice(glob.lastIndexOf("/") + 1);
}
