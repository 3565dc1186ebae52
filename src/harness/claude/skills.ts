/**
 * Skills, lodged where Claude Code finds them: a directory of the session's own that the program is told of beside its
 * workdir. Neither the workspace nor the person's configuration is written to.
 */

import { constants } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Skill } from "../../engine/ports.ts";

export interface Lodging {
  /** What `--add-dir` is given. */
  readonly directory: string;
  readonly remove: () => Promise<void>;
}

/**
 * Copies skills for a session: its agent may change its own, and a repository that is fetched again under it does not.
 */
export async function lodged(skills: readonly Skill[]): Promise<Lodging> {
  const made = await mkdtemp(join(tmpdir(), "hmz-skills-"));
  const remove = (): Promise<void> => rm(made, { recursive: true, force: true });
  // Its name stands before a skill's where the person has one of that name: `flow:review`.
  const directory = join(made, "flow");
  try {
    for (const skill of skills) {
      const target = join(directory, ".claude", "skills", skill.name);
      await mkdir(dirname(target), { recursive: true });
      await copyTree(skill.directory, target, []);
    }
  } catch (error) {
    await remove();
    throw error;
  }
  return { directory, remove };
}

/** What links lead to is copied; a link to what it lies in would have no end, and is left out. */
async function copyTree(from: string, to: string, above: readonly string[]): Promise<void> {
  const real = await realpath(from);
  if (above.includes(real)) return;
  await mkdir(to);
  for (const name of await readdir(real)) {
    const source = join(real, name);
    const kind = await stat(source).catch(() => undefined);
    if (kind?.isDirectory()) await copyTree(source, join(to, name), [...above, real]);
    else if (kind?.isFile()) await copyFile(source, join(to, name), constants.COPYFILE_FICLONE);
  }
}
