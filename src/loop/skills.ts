/** The skills of a session: the model is told what there is, and reads what it needs with its own tools. */

import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";
import type { Skill } from "../engine/ports.ts";

/** Characters of a description that are told: it comes from a repository, and every model call pays for it. */
const LONGEST = 1_000;

/** A skill as the model is told of it. */
export interface ToldSkill {
  readonly name: string;
  readonly about: string;
  /** Its `SKILL.md`, absolute. */
  readonly file: string;
}

/** Reads what each skill says of itself. One that cannot be read is told by its name alone. */
export async function toldSkills(skills: readonly Skill[]): Promise<readonly ToldSkill[]> {
  return Promise.all(
    skills.map(async ({ name, directory }) => {
      const file = join(directory, "SKILL.md");
      const text = await readFile(file, "utf8").catch(() => "");
      return { name, about: descriptionOf(text), file };
    }),
  );
}

/**
 * Files of the session's skills, on this machine whichever one the turn works on. They are read whatever the permission
 * says of where they lie: the flow granted them.
 */
export class SkillFiles {
  readonly #skills: readonly Skill[];

  constructor(skills: readonly Skill[]) {
    this.#skills = skills;
  }

  get none(): boolean {
    return this.#skills.length === 0;
  }

  /** The file or directory of a skill that a path is; `undefined` for any other, a link out of the skill included. */
  async find(path: string): Promise<SkillFile | undefined> {
    for (const { directory } of this.#skills) {
      if (!isUnder(directory, path)) continue;
      try {
        const [root, real] = await Promise.all([realpath(directory), realpath(path)]);
        if (!isUnder(root, real)) continue;
        return { directory: (await stat(real)).isDirectory(), path: real };
      } catch {
        // Not there: said by whoever asked.
      }
    }
    return undefined;
  }
}

export interface SkillFile {
  readonly path: string;
  readonly directory: boolean;
}

export function readSkillFile({ path }: SkillFile): Promise<Uint8Array> {
  return readFile(path);
}

/** Names, a directory's with a slash after it. */
export async function listSkillFiles({ path }: SkillFile): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
}

function isUnder(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return directory !== "" && way !== ".." && !way.startsWith("../") && !isAbsolute(way);
}

/**
 * The `description` of a `SKILL.md`'s front matter, on one line: plain, quoted, or a block (`>`, `|`) of indented lines.
 * `""` where there is none.
 */
export function descriptionOf(text: string): string {
  const [, front = ""] = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text) ?? [];
  const lines = front.split(/\r?\n/);
  const at = lines.findIndex((line) => line.startsWith("description:"));
  if (at === -1) return "";
  const first = (lines[at] ?? "").slice("description:".length).trim();
  const rest = lines.slice(at + 1);
  const end = rest.findIndex((line) => /^\S/.test(line));
  const more = (end === -1 ? rest : rest.slice(0, end)).map((line) => line.trim());
  const value = [/^[>|][+-]?\d?$/.test(first) ? "" : first, ...more].join(" ").trim();
  const quoted = /^"(.*)"$|^'(.*)'$/s.exec(value);
  const said = quoted ? (quoted[1]?.replaceAll('\\"', '"') ?? quoted[2]?.replaceAll("''", "'") ?? "") : value;
  // oxlint-disable-next-line no-control-regex -- control characters are what is taken out
  const line = said.replaceAll(/[\u0000-\u001f\u007f]|\s+/g, " ").trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1)}…` : line;
}
