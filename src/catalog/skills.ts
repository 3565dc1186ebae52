/**
 * Skills: instructions for one kind of work, each a directory with a `SKILL.md`. A role names them: by a name, of those
 * beside its flow, or by the URL of a git repository.
 */

import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Skill, SkillResolver } from "../engine/ports.ts";
import type { FlowDefinition } from "../flows/definition.ts";
import { FlowDefinitionError } from "../flows/errors.ts";
import { isFetchable, namesRepository, partsOfUrl, withoutPassword } from "./git-url.ts";
import { moduleOf } from "./module.ts";
import { shownPath } from "./places.ts";

/** A repository that a role names, and which of its skills. */
export interface SkillUrl {
  /** What git is given. May hold a password: show `shown`. */
  readonly url: string;
  readonly shown: string;
  /** One skill of the repository; left out for every one. */
  readonly skill: string | undefined;
}

/** A skill of a repository. */
export interface FetchedSkill {
  readonly name: string;
  readonly directory: string;
}

/** The skills that a URL names. @throws Error where they cannot be fetched, or are not there: its message says why. */
export type SkillFetcher = (url: SkillUrl) => Promise<readonly FetchedSkill[]>;

/** Resolves what roles name: beside their flow, or with `fetch`. */
export function skillResolver(fetch: SkillFetcher): SkillResolver {
  return async (flow, name) => {
    const role = flow.agents.find((role) => role.name === name);
    if (role?.kind !== "agent") return [];
    const found = await Promise.all(role.skills.map((entry) => skillsOf(flow, name, entry, fetch)));
    const skills = new Map<string, Skill>();
    for (const [index, entry] of role.skills.entries()) {
      for (const { name, directory } of found[index] ?? []) {
        // Named twice, it is one skill: the first that holds the name stands.
        const known = skills.get(name);
        skills.set(name, {
          name,
          directory: known?.directory ?? directory,
          entries: [...(known?.entries ?? []), entry],
        });
      }
    }
    return [...skills.values()];
  };
}

async function skillsOf(
  flow: FlowDefinition,
  role: string,
  entry: string,
  fetch: SkillFetcher,
): Promise<readonly FetchedSkill[]> {
  const refuse = (why: string, options?: ErrorOptions): FlowDefinitionError =>
    new FlowDefinitionError(`${flow.identity.ref}: '${role}' names ${why}`, options);
  const home = homeOf(flow);
  if (!isUrl(entry)) {
    const directory = ownSkill(home, entry);
    if (directory !== undefined) return [{ name: entry, directory }];
    const where = home === undefined ? "a flow that is one file" : `${shownPath(home)}/skills`;
    throw refuse(`the skill '${entry}', and ${where} has none of it`);
  }
  try {
    const url = skillUrl(entry);
    const own = url.skill === undefined ? undefined : ownSkill(home, url.skill);
    if (url.skill !== undefined && own !== undefined) return [{ name: url.skill, directory: own }];
    const fetched = await fetch(url);
    return fetched.map(({ name, directory }) => ({ name, directory: ownSkill(home, name) ?? directory }));
  } catch (error) {
    const reason = withoutPassword(error instanceof Error ? error.message : String(error));
    throw refuse(`a skill that cannot be fetched: ${reason}`, { cause: error });
  }
}

function isUrl(entry: string): boolean {
  return entry.includes("#") || entry.includes("://");
}

/** `[<user>@]<host>:<path>`, as ssh's own tools write it. */
const SSH_SHORT = /^(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?![/-])[^\s:]+$/;

function skillUrl(entry: string): SkillUrl {
  const hash = entry.indexOf("#");
  const location = hash === -1 ? entry : entry.slice(0, hash);
  const skill = hash === -1 ? undefined : entry.slice(hash + 1);
  const shown = withoutPassword(location);
  if (skill !== undefined && !isSkillName(skill)) {
    throw new Error(`'${skill}' is not a skill's name: <url>#<skill> names one of the repository's skills`);
  }
  const parts = partsOfUrl(location);
  if (!parts) {
    if (SSH_SHORT.test(location)) return { url: location, shown, skill };
    throw new Error(`'${shown}' is not a URL git can fetch`);
  }
  if (!isFetchable(parts)) throw new Error(`'${shown}' is not a URL git can fetch`);
  if (!namesRepository(parts.path)) throw new Error(`'${shown}' names no repository`);
  const { scheme, authority, path } = parts;
  const url = `${scheme}://${authority}${path}`;
  return { url, shown: withoutPassword(url), skill };
}

/** Neither hidden, nor anything that a path could climb or be cut by. */
export function isSkillName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(name);
}

/** Whether a directory is a skill. */
export function isSkill(directory: string): boolean {
  try {
    return statSync(join(directory, "SKILL.md")).isFile();
  } catch {
    return false;
  }
}

function ownSkill(home: string | undefined, name: string): string | undefined {
  if (home === undefined || !isSkillName(name)) return undefined;
  const directory = join(home, "skills", name);
  return isSkill(directory) ? directory : undefined;
}

/** The flow's own directory; `undefined` for a flow that is one file. */
function homeOf({ identity, definedIn }: FlowDefinition): string | undefined {
  const module = moduleOf(identity);
  if (module) return module.found.single ? undefined : module.found.directory;
  // Imported by a program, and found by nobody: it is where it was defined.
  const file = definedIn.startsWith("file:") ? fileURLToPath(definedIn) : definedIn;
  return /^index\.m?[jt]s$/.test(basename(file)) ? dirname(file) : undefined;
}
