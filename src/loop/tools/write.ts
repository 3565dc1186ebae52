import { z } from "zod";
import { loopTool } from "./tool.ts";

export const writeTool = loopTool({
  name: "write",
  about: "Writes a whole text file, replacing it where it is there and making its directories where they are not.",
  takes: z.strictObject({
    path: z.string().min(1).describe("the file, relative to the working directory or absolute"),
    content: z.string().describe("everything that the file is to hold"),
  }),
  needs: "all",
  subject: "path",
  async run({ path, content }, { place, reach }) {
    const absolute = await reach.toWrite(path);
    if (await place.machine.isDirectory(absolute)) throw new Error(`${path} is a directory: name a file in it`);
    const data = new TextEncoder().encode(content);
    await place.machine.write(absolute, data);
    return `wrote ${reach.shown(absolute)} (${data.length} bytes)`;
  },
});
