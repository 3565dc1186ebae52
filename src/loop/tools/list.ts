import { z } from "zod";
import { listSkillFiles } from "../skills.ts";
import { boundedOutput } from "./bounded-output.ts";
import { globPattern } from "./glob.ts";
import { lookingAt, lookUp, words } from "./lookup.ts";
import { loopTool } from "./tool.ts";

const MOST_ENTRIES = 1000;
const MOST_CHARACTERS = 40_000;

export const listTool = loopTool({
  name: "list",
  about:
    "Lists a directory, directories with a slash after their names. With glob: the files anywhere below it that fit, " +
    "ignored ones (.gitignore) left out.",
  takes: z.strictObject({
    path: z.string().min(1).optional().describe("the directory; the working directory where left out"),
    glob: z.string().min(1).optional().describe("such as *.ts, or src/**/*.{ts,tsx} from the directory"),
  }),
  needs: "read",
  readsSkills: true,
  subject: "path",
  async run({ path = ".", glob }, { place, reach, skills, signal }) {
    const skill = glob === undefined ? await skills.find(reach.resolve(path)) : undefined;
    if (skill) {
      if (!skill.directory) throw new Error(`${path} is not a directory`);
      return bounded(await listSkillFiles(skill));
    }
    const absolute = await reach.toRead(path);
    if (!(await place.machine.isDirectory(absolute))) throw new Error(`${path} is not a directory`);
    if (glob === undefined) {
      const { status, stdout, stderr } = await place.machine.exec(["ls", "-1Ap", "--", absolute], {
        cwd: place.workdir,
        timeout: 60_000,
        signal,
      });
      if (status !== 0 && stdout === "") throw new Error(boundedOutput(stderr.trim(), 2000));
      const entries = stdout.split("\n").filter((entry) => entry !== "");
      return entries.length === 0 ? "(the directory is empty)" : bounded(entries);
    }
    const { cwd, target, note } = await lookingAt(path, absolute, { place, shown: (path) => reach.shown(path) });
    const { stdout, stderr } = await lookUp(place, {
      cwd,
      signal,
      roads: {
        ripgrep: [...words("rg --no-config --files --hidden --glob=!.git --"), target],
        git: [
          ...words("git -c core.quotePath=off ls-files --cached --others --exclude-standard --deduplicate --"),
          `:(literal)${target}`,
        ],
        plain: ["find", target, ...words("-name .git -prune -o -type f -print")],
      },
    });
    if (stdout === "" && stderr.trim() !== "") throw new Error(boundedOutput(stderr.trim(), 2000));
    const pattern = globPattern(glob);
    const top = target === "." ? "" : `${target.replace(/^\.\//, "")}/`;
    const files = stdout
      .split("\n")
      .map((file) => file.replace(/^\.\//, ""))
      .filter((file) => file !== "" && pattern.test(file.startsWith(top) ? file.slice(top.length) : file));
    return files.length === 0 ? "(nothing found)" : `${note}${bounded(files.sort())}`;
  },
});

function bounded(entries: readonly string[]): string {
  const rest = entries.length - MOST_ENTRIES;
  const text = boundedOutput(entries.slice(0, MOST_ENTRIES).join("\n"), MOST_CHARACTERS);
  return rest > 0 ? `${text}\n(${rest} more)` : text;
}
