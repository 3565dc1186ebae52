/**
 * An epic as one file to hand on, without its secrets. The record is copied without them first; the trace and the
 * transcript are made of that copy, so that what cuts a text cuts no secret in half.
 */

import { constants, createReadStream, type Dirent } from "node:fs";
import { mkdir, mkdtemp, open, readdir, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createGzip } from "node:zlib";
import { type Epic, type EpicCall, readEpic } from "./epics.ts";
import { newFile } from "./new-file.ts";
import { copyLines, copyText } from "./redacted-file.ts";
import type { Redaction } from "./redaction.ts";
import { TarWriter } from "./tar.ts";
import { traceParts } from "./trace.ts";
import { transcriptParts } from "./transcript.ts";

/** A file of the epic that is not in the archive. */
export interface LeftOut {
  /** Inside the epic. */
  readonly path: string;
  readonly why: string;
}

/** What an export came to. */
export interface ExportedEpic {
  /** Absolute. */
  readonly file: string;
  /** Bytes of the archive. */
  readonly bytes: number;
  /** Paths inside the archive. */
  readonly files: readonly string[];
  readonly leftOut: readonly LeftOut[];
}

/** The files of an epic's own that are handed on; whatever else lies there is not. */
const OWN = /^(?:epic(?:\.[\w.-]+)?|events|resume|profile)\.jsonl$/;
/** How deep a harness's own directories are followed. */
const MOST_DEPTH = 32;

/**
 * Writes the archive of an epic.
 *
 * @param options.file Absolute. @param options.force Whether a file that is there is replaced.
 * @param options.about What the manifest says beside the run: the versions that made it.
 * @throws UnusablePath where the file cannot be made. @throws Error where the epic cannot be read.
 */
export async function exportEpic(options: {
  readonly directory: string;
  readonly file: string;
  readonly force: boolean;
  readonly redaction: Redaction;
  readonly about: Readonly<Record<string, unknown>>;
}): Promise<ExportedEpic> {
  const { directory, file, force, redaction, about } = options;
  return newFile(file, force, async (archive) => {
    const staging = await mkdtemp(join(tmpdir(), "hmz-export-"));
    try {
      const stage = new Stage(directory, staging, redaction);
      await stage.copyAll();
      const epic = readEpic(staging);
      // Where it lies and whether it goes is of the epic itself.
      const { state, name } = readEpic(directory);
      const known = redaction.value({ ...epic, state, name, directory }) as Epic;
      await stage.make("traces/export.trace.json", traceParts(staging));
      await stage.make("transcript.md", transcriptParts(known, staging));
      await stage.make("manifest.json", [manifest(known, stage, about)]);
      const bytes = await packed(stage, known, archive);
      return { file, bytes, files: stage.files.map(({ path }) => path), leftOut: stage.leftOut };
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  });
}

interface Staged {
  /** Inside the archive. */
  readonly path: string;
  readonly bytes: number;
}

class Stage {
  readonly #directory: string;
  readonly #staging: string;
  readonly #redaction: Redaction;
  readonly files: Staged[] = [];
  readonly leftOut: LeftOut[] = [];

  constructor(directory: string, staging: string, redaction: Redaction) {
    this.#directory = directory;
    this.#staging = staging;
    this.#redaction = redaction;
  }

  where(path: string): string {
    return join(this.#staging, path);
  }

  async copyAll(): Promise<void> {
    for (const entry of await sorted(this.#directory)) if (OWN.test(entry.name)) await this.#copy(entry, entry.name);
    for (const entry of await sorted(this.#directory)) {
      if (entry.name === "sessions") await this.#copyUnder(entry, "sessions", 0);
    }
  }

  async #copyUnder(entry: Dirent, path: string, depth: number): Promise<void> {
    if (!entry.isDirectory()) return this.#copy(entry, path);
    if (depth === MOST_DEPTH) {
      this.#leave(path, "it lies too deep");
      return undefined;
    }
    for (const inner of await sorted(join(this.#directory, path))) {
      await this.#copyUnder(inner, `${path}/${inner.name}`, depth + 1);
    }
    return undefined;
  }

  async #copy(entry: Dirent, path: string): Promise<void> {
    if (!entry.isFile()) {
      this.#leave(path, entry.isSymbolicLink() ? "it is a symbolic link" : "it is no plain file");
      return;
    }
    const shown = path
      .split("/")
      .map((part) => this.#redaction.text(part))
      .join("/");
    let from: FileHandle;
    try {
      // What was a file a moment ago may be a link, or a pipe that nobody writes to, by now.
      from = await open(join(this.#directory, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      this.#leave(path, `it cannot be read: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
      return;
    }
    try {
      await this.#write(shown, async (to) => {
        const copied = path.endsWith(".jsonl")
          ? await copyLines(from, to, this.#redaction)
          : await copyText(from, to, this.#redaction, path.endsWith(".json"));
        if ("left" in copied) this.#leave(path, copied.left);
        return "bytes" in copied ? copied.bytes : undefined;
      });
    } finally {
      await from.close();
    }
  }

  /** Writes what is made of the copy. */
  async make(path: string, parts: Iterable<string>): Promise<void> {
    await this.#write(path, async (to) => {
      let bytes = 0;
      for (const part of parts) {
        const written = Buffer.from(part);
        for (let at = 0; at < written.length;) at += (await to.write(written, at)).bytesWritten;
        bytes += written.length;
      }
      return bytes;
    });
  }

  async #write(path: string, write: (to: FileHandle) => Promise<number | undefined>): Promise<void> {
    if (this.files.some((file) => file.path === path)) {
      this.#leave(path, "another file has its name, without its secrets");
      return;
    }
    const to = this.where(path);
    await mkdir(dirname(to), { recursive: true });
    const file = await open(to, "wx", 0o600);
    try {
      const bytes = await write(file);
      if (bytes !== undefined) this.files.push({ path, bytes });
    } finally {
      await file.close();
    }
  }

  #leave(path: string, why: string): void {
    this.leftOut.push({ path: this.#redaction.text(path), why });
  }
}

async function sorted(directory: string): Promise<Dirent[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
}

function manifest(epic: Epic, stage: Stage, about: Readonly<Record<string, unknown>>): string {
  const { began, usage } = epic;
  const called = (call: EpicCall): unknown => ({
    flow: call.flow,
    task: call.task,
    how: call.how ?? null,
    at: iso(call.at),
    agents: call.agents,
    called: call.calls.map(called),
  });
  const said = {
    ...about,
    made: new Date().toISOString(),
    epic: epic.name,
    run: {
      flow: began.flow,
      ref: began.ref,
      task: began.task,
      began: iso(epic.at),
      ended: epic.endedAt === undefined ? null : iso(epic.endedAt),
      how: epic.state,
      error: epic.error ?? null,
      resumable: began.resumable,
      picked_up: began.picked_up ?? null,
    },
    workspace: began.workspace,
    agents: began.agents,
    envs: began.envs,
    usage: usage ?? null,
    spent: epic.agents,
    called: called(epic.top),
    sessions: epic.sessions,
    unreadable_lines: epic.badLines,
    files: stage.files,
    left_out: stage.leftOut,
  };
  return `${JSON.stringify(said, undefined, 2)}\n`;
}

function iso(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

async function packed(stage: Stage, epic: Epic, archive: FileHandle): Promise<number> {
  const gzip = createGzip();
  const tar = new TarWriter(gzip);
  const fill = async (): Promise<void> => {
    for (const { path, bytes } of stage.files) {
      const entry = { path: `${epic.name}/${path}`, size: bytes, modified: epic.endedAt ?? epic.at };
      await tar.add(entry, createReadStream(stage.where(path)));
    }
    await tar.end();
    gzip.end();
  };
  let written = 0;
  const drain = async (): Promise<void> => {
    for await (const chunk of gzip) {
      const bytes = chunk as Uint8Array;
      for (let at = 0; at < bytes.length;) at += (await archive.write(bytes, at)).bytesWritten;
      written += bytes.length;
    }
  };
  await Promise.all([
    drain(),
    fill().catch((error: unknown) => {
      gzip.destroy(error as Error);
      throw error;
    }),
  ]);
  return written;
}
