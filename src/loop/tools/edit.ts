import { z } from "zod";
import { decodeText } from "./text-file.ts";
import { loopTool } from "./tool.ts";

export const editTool = loopTool({
  name: "edit",
  about:
    "Replaces text in a file. `old` must be in the file exactly, blanks and indentation included, without the line " +
    "numbers that read puts before lines, and only once unless replaceAll is set.",
  takes: z.strictObject({
    path: z.string().min(1).describe("the file, relative to the working directory or absolute"),
    old: z.string().min(1).describe("the text to replace"),
    new: z.string().describe("the text to put in its place"),
    replaceAll: z.boolean().optional().describe("replace it everywhere"),
  }),
  needs: "all",
  subject: "path",
  async run({ path, old, new: fresh, replaceAll = false }, { place, reach }) {
    if (old === fresh) throw new Error("old and new are the same: nothing would change");
    const absolute = await reach.toWrite(path);
    if (await place.machine.isDirectory(absolute)) throw new Error(`${path} is a directory: name a file in it`);
    const text = decodeText(await place.machine.read(absolute), path);
    const edit = inManner(text, old, fresh);
    const parts = text.split(edit.old);
    const found = parts.length - 1;
    if (found === 0) throw new Error(notFound(path, text, old));
    if (found > 1 && !replaceAll) {
      throw new Error(
        `old is in ${path} ${found} times: add lines around it so that it is there once, or set replaceAll`,
      );
    }
    await place.machine.write(absolute, new TextEncoder().encode(parts.join(edit.fresh)));
    return `edited ${reach.shown(absolute)}: ${found === 1 ? "1 place" : `${found} places`}`;
  },
});

/** Models write LF; a file whose lines end in CRLF keeps them. */
function inManner(text: string, old: string, fresh: string): { readonly old: string; readonly fresh: string } {
  if (!text.includes("\r\n") || old.includes("\r") || text.includes(old)) return { old, fresh };
  const crlf = (part: string): string => part.replaceAll(/\r?\n/g, "\r\n");
  return { old: crlf(old), fresh: crlf(fresh) };
}

function notFound(path: string, text: string, old: string): string {
  const squeezed = (part: string): string => part.replaceAll(/\s+/g, " ").trim();
  const hint = squeezed(old) !== "" && squeezed(text).includes(squeezed(old));
  return hint
    ? `old is not in ${path} as it stands: its blanks or line breaks differ; read the file and copy them exactly`
    : `old is not in ${path}: read the file again, it may have changed`;
}
