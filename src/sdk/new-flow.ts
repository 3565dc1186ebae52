/** Writing a flow of a workspace's own: a small one that works, and its test. */

import { randomBytes } from "node:crypto";
import { cpSync, lstatSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type FoundModule, modulesIn } from "../catalog/find.ts";
import { placesOf } from "../catalog/places.ts";
import { prepareProject, projectOf, Undoing } from "../home/project.ts";
import { reasonOf, UnusablePath } from "../home/unusable-path.ts";
import { Refused } from "./refused.ts";

export interface NewFlow {
  /** What `-f` takes. */
  readonly name: string;
  /** Relative to the workspace. */
  readonly flow: string;
  /** Relative to the workspace. */
  readonly test: string;
  /** What else was made, relative to the workspace. */
  readonly made: readonly string[];
  /** The flow that the name alone meant until now, and how it is named from now on. */
  readonly hides?: { readonly flowverse: string; readonly ref: string };
}

/** The directory of this copy of hmz, from its sources and from what is built of them. */
const COPY = fileURLToPath(new URL("../../", import.meta.url)).replace(/[\\/]$/, "");

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;

/**
 * Writes `.hmz/flows/<name>/` with a flow and its test.
 *
 * @param workspace Absolute.
 * @throws Refused where the name is none, or taken, or something cannot be written. Nothing was written then.
 */
export function writeNewFlow(workspace: string, name: string): NewFlow {
  if (!NAME.test(name)) {
    throw new Refused(`'${name}' is not a name for a flow: letters, digits, \`_\` and \`-\`, a letter or digit first`);
  }
  if (name === "node_modules") throw new Refused(`'${name}' is where packages lie: choose another name`);
  const project = projectOf(workspace);
  const directory = join(project.flows, name);
  return sayingWhy(workspace, () => {
    for (const path of [directory, ...EXTENSIONS.map((extension) => directory + extension)]) {
      if (isTaken(path)) throw new Refused(`${relative(workspace, path)} is there already: choose another name`);
    }
    const prepared = prepareProject(project, COPY);
    const undoing = new Undoing();
    const flow = join(directory, "index.ts");
    const test = join(directory, "index.test.ts");
    try {
      mkdirSync(directory);
      undoing.directories([directory]);
      undoing.write(flow, flowText(name));
      undoing.write(test, testText(name));
    } catch (error) {
      // Half a flow would be listed, and its name taken.
      undoing.undo();
      prepared.undo();
      throw error;
    }
    const hides = hidden(workspace, name);
    return {
      name,
      flow: relative(workspace, flow),
      test: relative(workspace, test),
      made: prepared.made,
      ...(hides ? { hides } : {}),
    };
  });
}

/**
 * Copies a flow, whole, to be changed: into `.hmz/flows/<name>`, in the shape that it has. Returns where it is now.
 *
 * @param workspace Absolute. @param into Instead: a directory for the copy, relative to the workspace or absolute.
 * @throws Refused where a flow of the name is there in either shape, or it cannot be copied. Nothing was then.
 */
export function copyFlow(workspace: string, found: FoundModule, into?: string): string {
  const project = projectOf(workspace);
  const place = into === undefined ? join(project.flows, found.name) : resolve(workspace, into);
  return sayingWhy(workspace, () => {
    for (const path of [place, ...EXTENSIONS.map((extension) => place + extension)]) {
      if (isTaken(path)) throw new Refused(`${shownIn(workspace, path)} is there already: choose another name`);
    }
    const prepared = into === undefined ? prepareProject(project, COPY) : undefined;
    const target = found.single ? place + extname(found.entry) : place;
    // Beside, then renamed: half a flow would be listed, and its name taken.
    const beside = join(dirname(target), `.${basename(target)}.${randomBytes(4).toString("hex")}`);
    try {
      mkdirSync(dirname(target), { recursive: true });
      cpSync(found.single ? found.entry : found.directory, beside, {
        recursive: true,
        verbatimSymlinks: true,
        filter: (source) => basename(source) !== ".installed.json",
      });
      renameSync(beside, target);
    } catch (error) {
      rmSync(beside, { recursive: true, force: true });
      prepared?.undo();
      throw error;
    }
    return target;
  });
}

function shownIn(workspace: string, path: string): string {
  const within = relative(workspace, path);
  return within.startsWith("..") ? path : within;
}

/**
 * Makes the links of a workspace's `.hmz` again, as after a fresh clone. Returns what was made.
 *
 * @throws Refused where they cannot be made. Nothing was then.
 */
export function linkProject(workspace: string): readonly string[] {
  return sayingWhy(workspace, () => prepareProject(projectOf(workspace), COPY).made);
}

const EXTENSIONS = [".ts", ".js", ".mts", ".mjs"];

/** A link that leads nowhere holds a name too. What cannot be looked at is refused as it is written. */
function isTaken(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

/** The nearest flow of another place that the same name meant until now. */
function hidden(workspace: string, name: string): NewFlow["hides"] {
  const own = projectOf(workspace).flows;
  const place = placesOf({ workspace }).find(
    // In one's home directory, the workspace's own flows and the user's are the same.
    (place) => place.directory !== own && modulesIn(place).some((module) => module.name === name),
  );
  return place && { flowverse: place.flowverse, ref: `@${place.flowverse}/${name}` };
}

/** What the system refuses is said in a sentence, its paths relative to the workspace. */
function sayingWhy<T>(workspace: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof UnusablePath) {
      throw new Refused(error.message.replaceAll(`${workspace}/`, ""), { cause: error });
    }
    if (!(error instanceof Error) || !("syscall" in error)) throw error;
    const { path = workspace } = error as NodeJS.ErrnoException;
    throw new Refused(`${relative(workspace, path) || workspace} cannot be written: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

function flowText(name: string): string {
  const identifier = identifierOf(name);
  return flowOf(identifier, identifier === name ? "" : `    name: ${JSON.stringify(name)},\n`);
}

function testText(name: string): string {
  return testOf(identifierOf(name));
}

function flowOf(identifier: string, named: string): string {
  return `/** Does the work, then reads it back and fixes what is wrong. */
import { agent, flow, localEnv, z } from "hmz/flows";

export const ${identifier} = flow(
  {
${named}    agents: { builder: agent() },
    envs: { workspace: localEnv() },
    params: z.object({
      reviews: z.number().int().min(0).max(5).default(1).describe("how often the work is read back"),
    }),
  },
  async (task, { agents: { builder }, envs: { workspace }, params: { reviews } }) => {
    const session = await builder.spawn();
    let said = await builder.run(task, { session, env: workspace });
    for (let review = 0; review < reviews; review += 1) {
      said = await builder.run("Read back what you did. Fix anything that is wrong.", { session, env: workspace });
    }
    return said;
  },
);
`;
}

function testOf(identifier: string): string {
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeAgent, runFake } from "hmz/fakes";
import { ${identifier} } from "./index.ts";

test("the work is done, then read back as often as asked", async () => {
  const builder = new FakeAgent({ reply: ["done", "read back", "read again"] });
  const said = await runFake(${identifier}, "add a --dry-run flag", { agents: { builder }, params: { reviews: 2 } });
  assert.equal(said, "read again");
  assert.equal(builder.prompts.length, 3);
  assert.match(builder.prompts[0] ?? "", /--dry-run/);
});
`;
}

/** What no variable of a module may be called, or not without a change of what the module means. */
const RESERVED = (
  "arguments async await break case catch class const continue debugger default delete do else enum eval export " +
  "exports extends false finally for function globalThis if implements import in instanceof interface let module new " +
  "null package private protected public require return static super switch this throw true try typeof undefined var " +
  // A module that exports `then` is called as a promise by whoever imports it.
  "void while with yield then Promise Object"
).split(" ");

let taken: ReadonlySet<string> | undefined;

/** The reserved words, and every name in the code of the templates: a flow of that name would hide it, or be hidden. */
function takenNames(): ReadonlySet<string> {
  if (taken) return taken;
  // A name of which nothing else in the templates is a part.
  const code = (flowOf("$", "") + testOf("$")).replace(/\/\*[^]*?\*\/|"(?:[^"\\\n]|\\.)*"/g, "");
  taken = new Set([...RESERVED, ...(code.match(/[A-Za-z_][\w]*/g) ?? [])]);
  return taken;
}

/** `two-passes` → `twoPasses`; a name that cannot stand alone gets `Flow`. */
function identifierOf(name: string): string {
  const camel = name.replace(/-+(.?)/g, (_, next: string) => next.toUpperCase());
  const safe = /^\d/.test(camel) ? `flow${camel}` : camel;
  return takenNames().has(safe) ? `${safe}Flow` : safe;
}
