import { z } from "zod";
import { readSkillFile } from "../skills.ts";
import { decodeText } from "./text-file.ts";
import { loopTool } from "./tool.ts";

const MOST_LINES = 2000;
const LONGEST_LINE = 2000;
const MOST_CHARACTERS = 60_000;

export const readTool = loopTool({
  name: "read",
  about:
    "Reads a text file. Each line comes with its number and a tab, which are not part of the file. " +
    `At most ${MOST_LINES} lines at once: read on with offset.`,
  takes: z.strictObject({
    path: z.string().min(1).describe("the file, relative to the working directory or absolute"),
    offset: z.int().min(1).optional().describe("the first line to read, counted from 1"),
    limit: z.int().min(1).max(MOST_LINES).optional().describe("how many lines to read"),
  }),
  needs: "read",
  readsSkills: true,
  subject: "path",
  async run({ path, offset = 1, limit = MOST_LINES }, { place, reach, skills }) {
    const skill = await skills.find(reach.resolve(path));
    const absolute = skill?.path ?? (await reach.toRead(path));
    if (skill?.directory ?? (await place.machine.isDirectory(absolute))) {
      throw new Error(`${path} is a directory: look into it with list`);
    }
    const bytes = await (skill ? readSkillFile(skill) : place.machine.read(absolute));
    const text = decodeText(bytes, path).replace(/^\uFEFF/, "");
    if (text === "") return "(the file is empty)";
    const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
    if (offset > lines.length) {
      throw new Error(
        `${path} has ${lines.length} line${lines.length === 1 ? "" : "s"}: line ${offset} is past its end`,
      );
    }
    const shown: string[] = [];
    let characters = 0;
    for (const [index, line] of lines.slice(offset - 1, offset - 1 + limit).entries()) {
      const cut =
        line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}… (the line has ${line.length} characters)` : line;
      characters += cut.length + 8;
      if (shown.length > 0 && characters > MOST_CHARACTERS) break;
      shown.push(`${String(offset + index).padStart(6)}\t${cut}`);
    }
    const next = offset + shown.length;
    const rest = lines.length - next + 1;
    if (rest > 0) shown.push(`(${rest} more line${rest === 1 ? "" : "s"}: read on with offset ${next})`);
    return shown.join("\n");
  },
});
