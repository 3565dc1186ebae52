/** A flow calls a flow, without a journal and with one. Floor: a plain sketch of the bookkeeping; peer: AI SDK 7, an agent as another one's tool. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateText, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";
import { agent, flow } from "hmz/flows";
import { startRun } from "../src/engine/run.ts";
import { openJournal } from "../src/home/journal.ts";
import { instantSetup } from "./instant.ts";
import { answering, usage } from "./mock-model.ts";
import { paired, report } from "./measure.ts";

const callee = flow({ agents: { worker: agent() } }, async (task) => task);

/** The run's, journaled or not: the caller tells which. */
const caller = flow({ agents: { builder: agent() }, resumable: true }, async (name, { agents: { builder } }) => {
  const agents = { worker: builder };
  const figures = await paired([
    {
      name: "hmz: a flow calls a flow, an agent handed on",
      count: 20_000,
      run: async (count) => {
        for (let call = 0; call < count; call++) await callee("go", { agents });
      },
    },
    { name: "floor: a plain sketch of the same", count: 20_000, run: sketch },
    {
      name: "peer: AI SDK 7, an agent as a tool, mock models",
      count: 200,
      run: async (count) => {
        for (let call = 0; call < count; call++)
          await generateText({ model: calling, tools: { worker }, prompt: "go" });
      },
    },
  ]);
  report(name, figures);
});

interface Call {
  readonly above: Call | undefined;
  readonly depth: number;
  spent: number;
}

/** The least: a context in a tree, the caller known to what it calls, two records. */
async function sketch(count: number): Promise<void> {
  const records: unknown[] = [];
  const top: Call = { above: undefined, depth: 0, spent: 0 };
  const body = async (task: string, call: Call): Promise<string> => (call.depth > 64 ? "" : task);
  for (let index = 0; index < count; index++) {
    const call: Call = { above: top, depth: top.depth + 1, spent: 0 };
    records.push({ kind: "called", at: Date.now(), task: "go" });
    await body("go", call);
    records.push({ kind: "returned", at: Date.now() });
    records.length = 0;
  }
}

const worker = tool({
  inputSchema: z.object({ task: z.string() }),
  execute: async ({ task }) => (await generateText({ model: answering, prompt: task })).text,
});

const calling = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) =>
    prompt.some(({ role }) => role === "tool")
      ? {
          content: [{ type: "text", text: "done" }],
          finishReason: { unified: "stop", raw: undefined },
          usage,
          warnings: [],
        }
      : {
          content: [{ type: "tool-call", toolCallId: "1", toolName: "worker", input: '{"task":"go"}' }],
          finishReason: { unified: "tool-calls", raw: undefined },
          usage,
          warnings: [],
        },
});

const setup = { ...instantSetup(["builder"]), flow: caller, budget: undefined };
await startRun({ ...setup, task: "call, not journaled" }).result;
const directory = mkdtempSync(join(tmpdir(), "hmz-bench-"));
const journal = openJournal({ path: join(directory, "resume.jsonl"), trouble: console.error });
await startRun({ ...setup, task: "call, journaled" }, journal).result;
rmSync(directory, { recursive: true });
