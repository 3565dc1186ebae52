/**
 * `stream`: what a CLI prints to parsed events. 100 MB of events like those of a coding CLI, and one line of 32 MB, both
 * in chunks of 64 KB. Floor: one buffer, split and parsed by hand. Peer: Node's own `readline` with `JSON.parse`.
 *
 *   node --conditions=hmz-source bench/stream.ts [rounds]
 */

import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { readJsonLines } from "../src/process/json-lines.ts";

const CHUNK = 64 * 1024;
const rounds = Number(process.argv[2] ?? 5);

/** Events as they come: mostly small deltas, some messages with a tool's output, a few large ones. */
function events(bytes: number): Buffer {
  const lines: Buffer[] = [];
  let size = 0;
  for (let turn = 0; size < bytes; turn += 1) {
    const deltas = Array.from({ length: 12 }, (_, index) => ({
      type: "stream_event",
      session_id: "0b9a6d0e-8d43-4c43-9d5a-5a0a5b9f1c11",
      event: { type: "content_block_delta", index, delta: { type: "text_delta", text: `word ${turn} ≤ "quoted"\n` } },
    }));
    const usage = { input_tokens: 12 + turn, output_tokens: 340, cache_read_input_tokens: 18_000 };
    const code = `const value${turn} = read("file-${turn}.ts");\n`;
    const message = [
      ...deltas,
      {
        type: "assistant",
        message: {
          role: "assistant",
          content: [{ type: "tool_use", id: `t${turn}`, name: "Bash", input: { command: "npm test" } }],
          usage,
        },
      },
      {
        type: "user",
        message: {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: `t${turn}`, content: code.repeat(turn % 50 === 0 ? 2000 : 60) },
          ],
        },
      },
    ];
    for (const event of message) {
      const line = Buffer.from(`${JSON.stringify(event)}\n`);
      lines.push(line);
      size += line.length;
    }
  }
  return Buffer.concat(lines);
}

function chunksOf(buffer: Buffer): readonly Buffer[] {
  return Array.from({ length: Math.ceil(buffer.length / CHUNK) }, (_, at) =>
    buffer.subarray(at * CHUNK, (at + 1) * CHUNK),
  );
}

async function ours(chunks: readonly Buffer[]): Promise<number> {
  let count = 0;
  async function* stream(): AsyncGenerator<Uint8Array> {
    yield* chunks;
  }
  for await (const line of readJsonLines(stream())) if (line.kind === "json") count += 1;
  return count;
}

async function floor(chunks: readonly Buffer[]): Promise<number> {
  let count = 0;
  for (const line of Buffer.concat(chunks).toString("utf8").split("\n")) {
    if (line === "") continue;
    JSON.parse(line);
    count += 1;
  }
  return count;
}

async function peer(chunks: readonly Buffer[]): Promise<number> {
  let count = 0;
  for await (const line of createInterface({ input: Readable.from(chunks), crlfDelay: Infinity })) {
    JSON.parse(line);
    count += 1;
  }
  return count;
}

function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

async function measure(name: string, buffer: Buffer): Promise<void> {
  const chunks = chunksOf(buffer);
  const ways = { ours, floor, peer };
  const times: Record<keyof typeof ways, number[]> = { ours: [], floor: [], peer: [] };
  const counts = new Set<number>();
  for (let round = 0; round <= rounds; round += 1) {
    for (const way of ["ours", "floor", "peer"] as const) {
      const start = performance.now();
      counts.add(await ways[way](chunks));
      // The first round warms up.
      if (round > 0) times[way].push(performance.now() - start);
    }
  }
  if (counts.size !== 1) throw new Error(`the ways disagree on how many events there are: ${[...counts].join(", ")}`);
  const [our, least, theirs] = [median(times.ours), median(times.floor), median(times.peer)];
  const rate = (ms: number): string => `${ms.toFixed(0)} ms (${(buffer.length / 1e3 / ms).toFixed(0)} MB/s)`;
  console.log(
    `${name.padEnd(24)} ours ${rate(our)}   floor ${rate(least)}   peer ${rate(theirs)}   ours/floor ${(our / least).toFixed(2)}   ours/peer ${(our / theirs).toFixed(2)}`,
  );
}

await measure("100 MB of events", events(100e6));
await measure("one line of 32 MB", Buffer.from(`${JSON.stringify({ type: "user", text: "x".repeat(32e6) })}\n`));
