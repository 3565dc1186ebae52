/**
 * Records what the real Claude Code says, as the fixtures of the driver's unit tests:
 * `node --conditions=hmz-source test/real/record.ts`, after `npm ci --prefix test/real`.
 */

import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RecordingHost, type HostAnswers } from "../conformance/recording-host.ts";
import { scripted, type Step } from "../model-server/script.ts";
import { PROGRAM, startBench, turn } from "./claude.ts";

const FIXTURES = join(import.meta.dirname, "..", "fixtures", "claude");

interface Scene {
  readonly turns: readonly (readonly Step[])[];
  readonly answers?: HostAnswers;
  /** Aborts the turn once it has told of a tool. */
  readonly abort?: boolean;
  readonly tools?: boolean;
}

const subagent: Step = {
  tool: "Agent",
  input: {
    description: "look around",
    prompt: `the task ${scripted([{ sh: "echo in" }, { text: "found it" }])}`,
    subagent_type: "general-purpose",
  },
};

const SCENES: Readonly<Record<string, Scene>> = {
  turns: { turns: [[{ think: "hm", text: "Working.", sh: "echo hi" }, { text: "one" }], [{ text: "two" }]] },
  subagent: { turns: [[subagent, { text: "parent done" }]] },
  interrupt: { turns: [[{ sh: "echo a; sleep 5" }, { text: "never" }]], abort: true },
  "flow-tool": { turns: [[{ offered: "echo", input: { word: "one" } }, { text: "called" }]], tools: true },
  "ask-user": {
    turns: [
      [
        {
          tool: "AskUserQuestion",
          input: {
            questions: [
              {
                question: "Which colour?",
                header: "Colour",
                multiSelect: false,
                options: [
                  { label: "Red", description: "r" },
                  { label: "Blue", description: "b" },
                ],
              },
            ],
          },
        },
        { text: "asked" },
      ],
    ],
    answers: { askUser: async () => "Blue" },
  },
  "http-401": { turns: [[{ status: 401 }], [{ text: "now" }]] },
  "http-404": { turns: [[{ status: 404 }]] },
  "http-429": { turns: [[{ status: 429, retryAfter: 0 }]] },
  "http-429-passing": { turns: [[{ status: 429, retryAfter: 0, times: 1 }, { text: "through" }]] },
  "http-500": { turns: [[{ status: 500 }]] },
  "drop-before": { turns: [[{ drop: "before" }]] },
};

for (const [name, scene] of Object.entries(SCENES)) {
  const bench = await startBench();
  const folder = await mkdtemp(join(tmpdir(), "hmz-record-"));
  const file = join(folder, "raw.jsonl");
  const program = join(folder, "claude");
  const words = [process.execPath, join(import.meta.dirname, "tee.mjs"), PROGRAM, file];
  await writeFile(program, `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`);
  await chmod(program, 0o755);
  const session = bench.session({ options: { program } });
  const echo = {
    name: "echo",
    about: "says what it is told",
    schema: { type: "object" },
    call: async () => ({ text: "heard", failed: false }),
  };
  const setup = scene.tools === true ? { ...bench.setup, tools: [echo] } : bench.setup;
  for (const steps of scene.turns) {
    if (scene.abort === true) {
      const host = new RecordingHost(setup);
      await session.ready(setup);
      const taken = session.take(`do it ${scripted(steps)}`, host);
      await host.heard("tool");
      setTimeout(() => host.abort(new Error("recorded")), 500);
      await taken.catch(() => {});
    } else await turn(bench, session, steps, { setup, answers: scene.answers ?? {} }).catch(() => {});
  }
  await session.close();
  const raw = await readFile(file, "utf8");
  const lines = raw
    .trim()
    .split("\n")
    .flatMap((line) => trimmed(JSON.parse(line)));
  const text = lines
    .map(
      (line) =>
        `${JSON.stringify(line)
          .replaceAll(/"output_file":"[^"]*"/g, '"output_file":""')
          .replaceAll(bench.home, "/home/person")}\n`,
    )
    .join("");
  await writeFile(join(FIXTURES, `${name}.jsonl`), text);
  console.log(`${name}: ${lines.length} lines`);
  await rm(folder, { recursive: true });
  await bench.close();
}

type Loose = Record<string, unknown>;

/** A line without what no reader of it looks at. */
function trimmed(act: { in?: Loose; out?: Loose }): Loose[] {
  const line = act.in ?? act.out ?? {};
  if (JSON.stringify(line).includes('"initialize"') && line["type"] === "control_request" && act.in !== undefined)
    return [];
  if (act.out === undefined) return [{ in: line }];
  const response = line["response"] as Loose | undefined;
  if ((response?.["response"] as Loose | undefined)?.["commands"] !== undefined) return [];
  if (line["type"] === "system" && line["subtype"] === "init") {
    const { type, subtype, session_id, model, permissionMode, claude_code_version } = line;
    return [{ out: { type, subtype, session_id, model, permissionMode, claude_code_version } }];
  }
  if (line["type"] === "stream_event" && (line["event"] as Loose)["type"] === "content_block_delta") return [];
  return [{ out: line }];
}
