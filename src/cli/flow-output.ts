/** What a flow prints while it runs, which would otherwise be written through the clock line, or among records. */

import { StringDecoder } from "node:string_decoder";
import type { Io, Out } from "./io.ts";

type Stream = "stdout" | "stderr";

/** The streams of a command, with what is not the command's own taken off them. */
export interface OwnOutput {
  readonly stdout: Out;
  readonly stderr: Out;
  /** Gives the process its streams back. */
  release(): void;
}

interface Heard {
  /** Somebody else wrote this. */
  readonly printed: (stream: Stream, text: string) => void;
  /** Something that was written is lost: who reads has left, or the disk is full. */
  readonly lost: (stream: Stream, error: NodeJS.ErrnoException) => void;
}

/**
 * Takes the process's streams for the command alone: what else writes to them is handed to `printed`. The streams of a
 * test are left as they are.
 */
export function ownOutput({ stdout, stderr }: Io, heard: Heard): OwnOutput {
  if (stdout !== process.stdout || stderr !== process.stderr) return { stdout, stderr, release: () => {} };
  const taken = (["stdout", "stderr"] as const).map((name) => takeStream(name, heard));
  return {
    stdout: taken[0]?.own ?? stdout,
    stderr: taken[1]?.own ?? stderr,
    release: () => {
      for (const { release } of taken) release();
    },
  };
}

function takeStream(name: Stream, { printed, lost }: Heard): { own: Out; release: () => void } {
  const stream = process[name];
  const write = stream.write.bind(stream);
  const decoder = new StringDecoder("utf8");
  const own: Out = {
    write: (text) => write(text),
    get isTTY() {
      return stream.isTTY;
    },
    get columns() {
      return stream.columns;
    },
  };
  // A reader that has left, a terminal that was hung up, a disk that is full: the run is no less a run for it. For good,
  // since the error of a last write comes after it.
  stream.removeAllListeners("error").on("error", (error: NodeJS.ErrnoException) => lost(name, error));
  stream.write = (
    chunk: Uint8Array | string,
    encoding?: BufferEncoding | ((error?: Error | null) => void),
    done?: (error?: Error | null) => void,
  ): boolean => {
    printed(name, typeof chunk === "string" ? chunk : decoder.write(Buffer.from(chunk)));
    const callback = typeof encoding === "function" ? encoding : done;
    if (callback) process.nextTick(callback);
    return true;
  };
  return {
    own,
    release: () => {
      stream.write = write;
    },
  };
}
