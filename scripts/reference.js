// The reference under docs/reference/, from the docstrings of the three entry points, and the blocks of code in docs/,
// from the examples that they name. `node scripts/reference.js` writes them; `--check` fails where they are stale.
// It reads the built declarations: `node scripts/build.js` first.
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { readDeclarations } from "./declarations.js";
import { filled } from "./examples.js";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const check = process.argv.includes("--check");
const temp = mkdtempSync(join(tmpdir(), "hmz-reference-"));

const PAGES = [
  {
    room: "flows",
    module: "hmz/flows",
    about: "What a flow imports. The [guide](../index.md) says how it is used.",
    errors: true,
  },
  { room: "sdk", module: "hmz", about: "hmz from a program: runs, the flows that can be run, the record of runs." },
  { room: "fakes", module: "hmz/fakes", about: "Running a flow over fakes: [Testing a flow](../guide/testing.md)." },
];

/** What a page before has: the types that every room uses are told of once. */
const told = new Set();
let stale = false;
try {
  mkdirSync(join(root, "docs", "reference"), { recursive: true });
  for (const page of PAGES) {
    settle(join("docs", "reference", `${page.room}.md`), formatted(await reference(page)));
  }
  for (const path of globSync("docs/{*,guide/*}.md", { cwd: root })) {
    settle(path, filled(root, readFileSync(join(root, path), "utf8")));
  }
} finally {
  rmSync(temp, { recursive: true, force: true });
}
process.exit(stale ? 1 : 0);

/** Writes a file, or finds it stale. */
function settle(path, text) {
  const file = join(root, path);
  let there;
  try {
    there = readFileSync(file, "utf8");
  } catch {
    there = undefined;
  }
  if (there === text) return;
  if (check) {
    stale = true;
    console.error(`${path} does not say what the sources do: npm run docs`);
  } else {
    writeFileSync(file, text);
    console.log(`wrote ${path}`);
  }
}

/** As the repository's formatter has it, so that its check and this one agree. */
function formatted(text) {
  const ran = spawnSync(join(root, "node_modules", ".bin", "oxfmt"), ["--stdin-filepath", "reference.md"], {
    cwd: root,
    input: text,
    encoding: "utf8",
  });
  if (ran.status !== 0) throw new Error(`oxfmt: ${ran.stderr}`);
  return ran.stdout;
}

async function reference({ room, module, about, errors = false }) {
  const entry = modelOf(room).members[0];
  const named = entry.members.filter((member) => member.kind !== "Namespace");
  const exported = named.filter((member) => isExported(member));
  const others = named.filter((member) => !isExported(member) && !told.has(member.name));
  const thrown = errors ? exported.filter(isError) : [];
  const shown = exported.filter((member) => !thrown.includes(member));
  const out = [
    `# ${module}`,
    "<!-- Written by `npm run docs` from the docstrings of the sources: change those. -->",
    about,
    ...groups(shown).flatMap(([title, members]) => [`## ${title}`, ...members.flatMap((member) => item(member))]),
  ];
  if (thrown.length > 0) out.push(...(await errorTree(room, thrown)));
  if (others.length > 0) {
    out.push(
      "## Not exported",
      "Types that the above are made of, where no page before has them. They are reached through those.",
      ...others.flatMap((member) => item(member)),
    );
  }
  for (const { name } of named) told.add(name);
  return `${out.join("\n\n")}\n`;
}

function modelOf(room) {
  const json = join(temp, `${room}.api.json`);
  const docModel = { enabled: true, apiJsonFilePath: json, includeForgottenExports: true };
  const result = readDeclarations(room, { docModel }, true);
  if (!result.succeeded) throw new Error(`the declarations of ${room} cannot be read: node scripts/build.js`);
  return JSON.parse(readFileSync(json, "utf8"));
}

function groups(members) {
  const kinds = [
    ["Functions", ["Function"]],
    ["Classes", ["Class"]],
    ["Values", ["Variable"]],
    ["Types", ["Interface", "TypeAlias"]],
  ];
  return kinds
    .map(([title, of]) => [title, members.filter((member) => of.includes(member.kind)).sort(byName)])
    .filter(([, of]) => of.length > 0);
}

/** A declaration that is only named by others is written `hmz!~Name` by the extractor. */
function isExported({ canonicalReference }) {
  return !canonicalReference.includes("!~");
}

function byName(one, other) {
  return one.name.localeCompare(other.name, "en", { sensitivity: "base" }) || (one.name < other.name ? -1 : 1);
}

function item(member) {
  // A function of two overloads is one name.
  const title = member.overloadIndex > 1 ? [] : [`### ${member.name}`];
  const body = member.kind === "Variable" || member.kind === "TypeAlias" || member.kind === "Function";
  const signature = excerpt(member);
  const parts = [...title, code(signature), prose(member.docComment)];
  if (!body) parts.push(...members(member));
  return parts.filter((part) => part !== "");
}

function members(of) {
  return of.members
    .filter((member) => !member.isProtected)
    .map((member) => {
      const text = prose(member.docComment).replace(/\n/g, "\n  ");
      const signature = excerpt(member).replace(/\s+/g, " ");
      return `- \`${signature}\`${text === "" ? "" : `  \n  ${text}`}`;
    })
    .reduce((lines, line) => (lines === "" ? [line] : [`${lines}\n${line}`]), "");
}

function excerpt({ excerptTokens, kind }) {
  const text = excerptTokens
    .map(({ text }) => text)
    .join("")
    .trim();
  const said = text.replace(/^export (declare )?/, "").replace(/;$/, "");
  // Comments within a type are kept; the class's own body is listed beside.
  return kind === "Class" || kind === "Interface" ? said.replace(/\s*\{$/, "") : said;
}

function code(text) {
  return `\`\`\`typescript\n${text}\n\`\`\``;
}

/** A docstring as prose: its first words, then what it says of parameters and errors. */
function prose(comment) {
  if (!comment || /^\/\*\*\s*\*?\s*Constructs a new instance of the/.test(comment)) return "";
  const lines = comment
    .replace(/^\/\*\*\s?/, "")
    .replace(/\s*\*\/\s*$/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\*\s?/, ""));
  const text = lines.join("\n").trim();
  const [said = "", ...tags] = text.split(/(?:^|\s)(?=@(?:throws|param|returns)\b)/);
  const notes = tags.map((tag) =>
    tag
      .trim()
      .replace(/^@throws\s+(\S+)/, "Throws `$1`")
      .replace(/^@param\s+(?:-\s+)?(\S+)/, "`$1`:")
      .replace(/^@returns\s+/, "Returns "),
  );
  const linked = said.trim().replace(/\{@link ([^}]+)\}/g, "`$1`");
  return [linked, notes.map((line) => `- ${line.replace(/\n/g, "\n  ")}`).join("\n")]
    .filter((part) => part !== "")
    .join("\n\n");
}

// ── the errors ──────────────────────────────────────────────────────────────────────────────────────────────────────

function parentOf(member) {
  return /\bextends (\w+)/.exec(excerpt(member))?.[1];
}

function isError(member) {
  return member.kind === "Class" && (parentOf(member) !== undefined || member.name === "FlowException");
}

async function errorTree(room, errors) {
  const classes = await import(pathToFileURL(join(root, "dist", room, "index.js")).href);
  const rows = [];
  const visit = (member, depth) => {
    const { name } = member;
    const says = prose(member.docComment).replace(/\s+/g, " ").replaceAll("|", "\\|");
    rows.push(`| ${"· ".repeat(depth)}\`${name}\` | \`${new classes[name]("").code}\` | ${says} |`);
    for (const child of errors.filter((error) => parentOf(error) === name)) visit(child, depth + 1);
  };
  const top = errors.find(({ name }) => name === "FlowException");
  visit(top, 0);
  return [
    "## Errors",
    "Each is a class under the one that stands less far in. `code` stays the same from release to release.",
    ["| class | code | says |", "| --- | --- | --- |", ...rows].join("\n"),
    ...item(top),
  ];
}
