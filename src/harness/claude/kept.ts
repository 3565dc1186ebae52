/**
 * Conversations copied out of the CLI's home for a flow's state. The CLI forks one by the path of its copy, wherever
 * that lies: nothing is laid into the person's home, and what the conversation went on to there is not read.
 */

import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { KeptConversation } from "../../engine/ports.ts";
import { SessionError } from "../../flows/errors.ts";
import { projectsOf } from "./carry.ts";

export interface Keeping {
  readonly env: Readonly<Record<string, string>>;
  readonly id: string;
  /** What stands in the conversation's file once its last answer is written; `""` where that is not known. */
  readonly last: string;
}

/** How long an answer that was given may still be on its way into the conversation's file. */
const WRITTEN_MS = 2000;
const PAUSE_MS = 10;

/**
 * Copies a conversation's own files: `<id>.jsonl`, and what lies under `<id>/`, its sub-agents and what tools said at
 * length.
 *
 * @throws SessionError where the CLI's home has no such conversation.
 */
export function keepConversation({ env, id, last }: Keeping, into: string): void {
  const projects = projectsOf(env);
  const written = writtenDown(projects, id, last);
  writeDurably(join(into, `${id}.jsonl`), written);
  // A conversation that went on in another workdir may have left some under each.
  for (const folder of foldersOf(projects)) copyTree(join(projects, folder, id), join(into, id));
}

/** Copies what was kept once more, for a session that carries it on and has not gone on yet. */
export function keepAgain(kept: KeptConversation, id: string, into: string): void {
  writeDurably(join(into, `${id}.jsonl`), readFileSync(keptFile(kept)));
  copyTree(join(kept.at, kept.id), join(into, id));
}

/** What `--resume` is given of a kept conversation. @throws SessionError where the copy is gone. */
export function keptFile(kept: KeptConversation): string {
  const file = join(kept.at, `${kept.id}.jsonl`);
  if (!NAME.test(kept.id) || kindOf(file) !== "file") throw noConversation(kept);
  return file;
}

export function noConversation({ id, at }: KeptConversation, options?: ErrorOptions): SessionError {
  return new SessionError(`the session cannot be forked: claude: no conversation ${id} under ${at}`, options);
}

/** An id comes out of a journal: it names a file of the copy and none above it. */
const NAME = /^[\w-]+$/;

/** The whole lines of a conversation's file. Waits for its last answer: what is kept is read before `keep` returns. */
function writtenDown(projects: string, id: string, last: string): Buffer {
  const deadline = performance.now() + WRITTEN_MS;
  for (;;) {
    const files = filesOf(projects, id);
    if (files.length === 0) throw new SessionError(`claude: no conversation ${id} under ${projects}`);
    for (const file of files) {
      const bytes = wholeLines(readFileSync(file));
      if (bytes.includes(last)) return bytes;
    }
    if (performance.now() >= deadline) {
      throw new SessionError(`claude: the last answer of conversation ${id} was not written under ${projects}`);
    }
    Atomics.wait(SLEEP, 0, 0, PAUSE_MS);
  }
}

/** The newest first: a copy that was taken to another workdir stands still where the conversation goes on elsewhere. */
function filesOf(projects: string, id: string): readonly string[] {
  return foldersOf(projects)
    .map((folder) => join(projects, folder, `${id}.jsonl`))
    .filter((file) => kindOf(file) === "file")
    .map((file) => ({ file, at: lstatSync(file).mtimeMs }))
    .sort((one, other) => other.at - one.at)
    .map(({ file }) => file);
}

const SLEEP = new Int32Array(new SharedArrayBuffer(4));

/** Without the line that the CLI is writing. */
function wholeLines(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1);
}

/** Handed to the disk: a journal that names a copy which a power loss emptied could not be picked up. */
function writeDurably(file: string, bytes: Uint8Array): void {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    writeFileSync(descriptor, bytes);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Files alone: a link would take what it leads to along, which is none of the conversation's. */
function copyTree(from: string, to: string): void {
  if (kindOf(from) !== "directory") return;
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    const kind = kindOf(source);
    if (kind === "directory") copyTree(source, target);
    else if (kind === "file") copyFileSync(source, target, constants.COPYFILE_FICLONE);
  }
}

function foldersOf(projects: string): readonly string[] {
  try {
    return readdirSync(projects);
  } catch {
    return [];
  }
}

function kindOf(path: string): "file" | "directory" | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isFile()) return "file";
  return found?.isDirectory() ? "directory" : undefined;
}
