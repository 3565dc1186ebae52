/** The files under a workspace's `.hmz/`: its own flows, and what lets an editor and `node --test` find hmz for them. */

import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { makeDirectory } from "./make-directory.ts";
import { reasonOf, UnusablePath } from "./unusable-path.ts";
import { writeWhole } from "./write-whole.ts";

export interface Project {
  /** `<workspace>/.hmz`. */
  readonly directory: string;
  /** Where the workspace's own flows are. */
  readonly flows: string;
}

/** @param workspace Absolute. */
export function projectOf(workspace: string): Project {
  const directory = join(workspace, ".hmz");
  return { directory, flows: join(directory, "flows") };
}

/** What exported epics are called, for git. */
const EXPORTS = "*.epic.tar.gz";

const FILES: Readonly<Record<string, string>> = {
  // Without it, the project's own package.json would decide how a flow is read.
  "package.json": `${JSON.stringify({ private: true, type: "module" }, undefined, 2)}\n`,
  "tsconfig.json": `${JSON.stringify(
    {
      compilerOptions: {
        target: "es2023",
        module: "nodenext",
        strict: true,
        noEmit: true,
        allowImportingTsExtensions: true,
        erasableSyntaxOnly: true,
        verbatimModuleSyntax: true,
        skipLibCheck: true,
        types: ["node"],
      },
      include: ["flows"],
    },
    undefined,
    2,
  )}\n`,
  ".gitignore": `# Of this machine alone; \`hmz new --link\` makes the links again.\nnode_modules/\n${EXPORTS}\n`,
};

/**
 * Makes a workspace's `.hmz/` ready to hold exported epics: git is told to leave them alone. Returns the directory.
 *
 * @throws UnusablePath where it cannot be made or written.
 */
export function prepareExports(workspace: string): string {
  const { directory } = projectOf(workspace);
  makeDirectory(directory);
  const file = join(directory, ".gitignore");
  try {
    const content = existsSync(file) ? readFileSync(file, "utf8") : "";
    if (content.split(/\r?\n/).includes(EXPORTS)) return directory;
    const gap = content === "" || content.endsWith("\n") ? "" : "\n";
    writeWhole(file, content === "" ? (FILES[".gitignore"] ?? "") : `${content}${gap}${EXPORTS}\n`, 0o644);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    throw new UnusablePath(`${file} cannot be written: ${reasonOf(error)}`, code, { cause: error });
  }
  return directory;
}

export interface PreparedProject {
  /** What was made, relative to the workspace. */
  readonly made: readonly string[];
  /** Takes all of it away again. */
  undo(): void;
}

/**
 * Makes what a flow in a workspace needs beside itself, leaving every file that is there.
 *
 * `.hmz/node_modules/hmz` is a link to the running copy of hmz, by which an editor finds the types and `node --test`
 * the fakes: neither knows that a run gives its own copy to a flow.
 *
 * @param copy The directory of the running copy of hmz.
 * @throws Error where it cannot be made. Nothing of it is left then.
 */
export function prepareProject({ directory, flows }: Project, copy: string): PreparedProject {
  const made: string[] = [];
  const undoing = new Undoing();
  try {
    undoing.directories(makeDirectory(flows));
    for (const [name, content] of Object.entries(FILES)) {
      const file = join(directory, name);
      if (existsSync(file)) continue;
      undoing.write(file, content);
      made.push(join(".hmz", name));
    }
    const modules = join(directory, "node_modules");
    if (linked(join(modules, "hmz"), copy, undoing)) made.push(join(".hmz", "node_modules", "hmz"));
    const nodeTypes = typesOfNode(copy);
    if (nodeTypes !== undefined && linked(join(modules, "@types", "node"), nodeTypes, undoing)) {
      made.push(join(".hmz", "node_modules", "@types", "node"));
    }
  } catch (error) {
    undoing.undo();
    throw error;
  }
  return { made, undo: () => undoing.undo() };
}

/** What was done, so that it can be undone where a later step fails. */
export class Undoing {
  readonly #steps: (() => void)[] = [];

  add(step: () => void): void {
    this.#steps.push(step);
  }

  /** Directories that were made, the uppermost first. */
  directories(made: readonly string[]): void {
    // Not with what is in them: that is somebody else's by now.
    for (const directory of made) this.add(() => rmdirSync(directory));
  }

  /** Writes a new file. */
  write(file: string, content: string): void {
    const handle = openSync(file, "wx");
    // A disk that fills up leaves an empty file.
    this.add(() => rmSync(file, { force: true }));
    try {
      writeFileSync(handle, content);
    } finally {
      closeSync(handle);
    }
  }

  undo(): void {
    for (const step of this.#steps.splice(0).toReversed()) {
      try {
        step();
      } catch {
        // The error that led here is the one to tell.
      }
    }
  }
}

/**
 * Makes a link, or turns one round. An installed package is left.
 *
 * @throws UnusablePath where something is there that is neither: nothing could be found through it.
 */
function linked(path: string, target: string, undoing: Undoing): boolean {
  undoing.directories(makeDirectory(dirname(path)));
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there?.isSymbolicLink()) {
    const old = readlinkSync(path);
    if (old === target) return false;
    rmSync(path);
    undoing.add(() => symlinkSync(old, path, "junction"));
  } else if (there) {
    if (existsSync(join(path, "package.json"))) return false;
    if (!there.isDirectory() || readdirSync(path).length > 0) {
      throw new UnusablePath(`${path} is no package: remove it, then run hmz new --link`, "EEXIST");
    }
    rmdirSync(path);
    undoing.add(() => mkdirSync(path));
  }
  symlinkSync(target, path, "junction");
  undoing.add(() => rmSync(path));
  return true;
}

/** The types of Node, where they lie within reach of this copy: an installed copy of hmz brings none. */
function typesOfNode(copy: string): string | undefined {
  try {
    return dirname(createRequire(join(copy, "package.json")).resolve("@types/node/package.json"));
  } catch {
    return undefined;
  }
}
