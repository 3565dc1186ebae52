/** The files under a workspace's `.hmz/`: its own flows, and what lets an editor and `node --test` find hmz for them. */

import { existsSync, lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

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
  ".gitignore": "# Of this machine alone; `hmz new --link` makes the links again.\nnode_modules/\n*.epic.tar.gz\n",
};

/**
 * Makes what a flow in a workspace needs beside itself, leaving every file that is there.
 *
 * `.hmz/node_modules/hmz` is a link to the running copy of hmz, by which an editor finds the types and `node --test`
 * the fakes: neither knows that a run gives its own copy to a flow.
 *
 * @param copy The directory of the running copy of hmz.
 * @returns What was made, relative to the workspace.
 */
export function prepareProject({ directory, flows }: Project, copy: string): readonly string[] {
  const made: string[] = [];
  mkdirSync(flows, { recursive: true });
  for (const [name, content] of Object.entries(FILES)) {
    if (existsSync(join(directory, name))) continue;
    writeFileSync(join(directory, name), content, { flag: "wx" });
    made.push(join(".hmz", name));
  }
  const modules = join(directory, "node_modules");
  if (linked(join(modules, "hmz"), copy)) made.push(join(".hmz", "node_modules", "hmz"));
  const nodeTypes = typesOfNode(copy);
  if (nodeTypes !== undefined && linked(join(modules, "@types", "node"), nodeTypes)) {
    made.push(join(".hmz", "node_modules", "@types", "node"));
  }
  return made;
}

/** Makes a link, or turns one round. Something else that is there, as an installed package, is left. */
function linked(path: string, target: string): boolean {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there && (!there.isSymbolicLink() || readlinkSync(path) === target)) return false;
  if (there) rmSync(path);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path, "junction");
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
