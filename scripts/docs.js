// What docs/ says of data in the sources, between `<!-- <name>:begin -->` and `<!-- <name>:end -->`.
// `node scripts/docs.js` writes it anew; `--check` fails where a page says something else.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AGENT_NEEDS, HARNESSES, HARNESS_NAMES } from "../src/flows/harness.ts";
import { DRIVEN } from "../src/sdk/drivers.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const check = process.argv.includes("--check");

const NEEDS = {
  goal: "`goal`",
  loop: "`loop`",
  steering: "`steering`",
  permission_request: "`permission_request`",
  subagent_start: "`subagent_start`",
  subagent_stop: "`subagent_stop`",
  ask_user: "`ask_user`",
  tools: "`tools`",
  tool_callbacks: "`tool_callbacks`",
  model_callbacks: "`model_callbacks`",
};
const FORKS = { anywhere: "any workdir", "in-place": "same workdir", never: "no" };

function harnesses() {
  const needs = AGENT_NEEDS.filter((need) => HARNESS_NAMES.some((name) => HARNESSES[name].needs.includes(need)));
  return table([
    ["`-a`", "program", "driven", ...needs.map((need) => NEEDS[need]), "refuses tools", "fork", "rungs"],
    ...HARNESS_NAMES.map((name) => {
      const row = HARNESSES[name];
      return [
        `\`${name}\``,
        row.title,
        DRIVEN.includes(name) ? "✓" : "",
        ...needs.map((need) => (row.needs.includes(need) ? "✓" : "")),
        row.gatesTools ? "✓" : "",
        FORKS[row.forks],
        row.rungs.join(", ") || "set by the CLI",
      ];
    }),
  ]);
}

/** Aligned as the formatter aligns it. */
function table([head, ...rows]) {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => row[column].length)));
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

const PAGES = { "docs/harnesses.md": { harnesses } };

let stale = false;
for (const [page, parts] of Object.entries(PAGES)) {
  const path = join(root, page);
  const before = readFileSync(path, "utf8");
  let after = before;
  for (const [name, make] of Object.entries(parts)) {
    const place = new RegExp(`(<!-- ${name}:begin[^\\n]*-->\\n)[\\s\\S]*?(<!-- ${name}:end -->)`);
    if (!place.test(after)) throw new Error(`${page} has no place for ${name}`);
    after = after.replace(place, (_, begin, end) => `${begin}\n${make()}\n\n${end}`);
  }
  if (after === before) continue;
  if (check) {
    stale = true;
    console.error(`${page} does not say what the sources do: npm run docs`);
  } else writeFileSync(path, after);
}
process.exitCode = stale ? 1 : 0;
