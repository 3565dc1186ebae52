// The blocks of code in the documentation that are parts of examples: `<!-- examples/loops/index.ts#until-green -->`.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const MARKED = /^<!-- (examples\/[^ #]+)(?:#([\w-]+))? -->\n\n```(\w+)\n([\s\S]*?)```$/gm;

/** Every marked block of a page: what it names, and what it says. */
export function markedBlocks(page) {
  return [...page.matchAll(MARKED)].map(([, file, region, language, text]) => ({ file, region, language, text }));
}

/** A page with its marked blocks as the examples have them. */
export function filled(root, page) {
  return page.replace(MARKED, (_block, file, region, language) => {
    const marker = `<!-- ${file}${region === undefined ? "" : `#${region}`} -->`;
    return `${marker}\n\n\`\`\`${language}\n${regionOf(readFileSync(join(root, file), "utf8"), region)}\`\`\``;
  });
}

/** A region of a source, between `// #region NAME` and `// #endregion`, moved to the left; or all of it. */
export function regionOf(source, name) {
  const lines = source.split("\n");
  const isMarker = (line) => /^\s*\/\/ #(?:end)?region\b/.test(line);
  if (name === undefined)
    return `${lines
      .filter((line) => !isMarker(line))
      .join("\n")
      .trimEnd()}\n`;
  const from = lines.findIndex((line) => line.trim() === `// #region ${name}`);
  if (from < 0) throw new Error(`there is no region '${name}'`);
  const to = lines.findIndex((line, at) => at > from && line.trim() === "// #endregion");
  if (to < 0) throw new Error(`region '${name}' does not end`);
  const inside = lines.slice(from + 1, to);
  const margin = Math.min(...inside.filter((line) => line.trim() !== "").map((line) => line.search(/\S/)));
  return `${inside
    .map((line) => line.slice(margin))
    .join("\n")
    .trimEnd()}\n`;
}
