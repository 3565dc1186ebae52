/** The real Claude Code, against the scripted model server, in a home of its own. */

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tokens } from "../../src/engine/events.ts";
import type { AgentDriver, Opening, SessionDriver, TurnSetup } from "../../src/engine/ports.ts";
import { permission } from "../../src/flows/permission.ts";
import { claudeDriver, type ClaudeOptions } from "../../src/harness/claude/driver.ts";
import type { ScriptStep, Subject } from "../conformance/agent-driver.ts";
import { localPlace } from "../conformance/local-place.ts";
import { RecordingHost, type HostAnswers } from "../conformance/recording-host.ts";
import { scripted, type ServedTokens, type Step } from "../model-server/script.ts";
import { rememberedBy, startModelServer, type ModelServer } from "../model-server/server.ts";

/** Another release of it, where `HMZ_TEST_CLAUDE` names its program. */
export const PROGRAM = process.env["HMZ_TEST_CLAUDE"] ?? join(import.meta.dirname, "node_modules", ".bin", "claude");
export const MODEL = "scripted-model";

export { processesWith } from "../conformance/processes.ts";

export interface Bench {
  readonly server: ModelServer;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly setup: TurnSetup;
  driver(more?: Partial<ClaudeOptions>): AgentDriver;
  /** A session of a driver of its own. */
  session(more?: { options?: Partial<ClaudeOptions>; opening?: Partial<Opening> }): SessionDriver;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startBench(): Promise<Bench> {
  const server = await startModelServer();
  const home = await mkdtemp(join(tmpdir(), "hmz-real-claude-"));
  const workdir = join(home, "work");
  await mkdir(workdir);
  await mkdir(join(home, "elsewhere"));
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    CLAUDE_CONFIG_DIR: join(home, "config"),
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: "scripted",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    CLAUDE_CODE_MAX_RETRIES: "1",
  };
  const drivers: AgentDriver[] = [];
  const driver = (more: Partial<ClaudeOptions> = {}): AgentDriver => {
    const made = claudeDriver({ model: MODEL, effort: "", provider: "", env, program: PROGRAM, ...more });
    drivers.push(made);
    return made;
  };
  const close = async (): Promise<void> => {
    await Promise.all(drivers.map((driver) => driver.close()));
    await server.close();
    await rm(home, { recursive: true, force: true });
  };
  return {
    server,
    home,
    env,
    setup: { place: localPlace(workdir), hung: new Set(), tools: [], clis: [], schema: undefined },
    driver,
    session: ({ options = {}, opening = {} } = {}) =>
      driver(options).open({ role: "worker", permission: permission(), skills: [], callbacks: {}, ...opening }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A turn of a session whose model says the steps. */
export async function turn(
  bench: Bench,
  session: SessionDriver,
  steps: readonly Step[],
  {
    setup = bench.setup,
    answers = {},
    words = "do it",
  }: { setup?: TurnSetup; answers?: HostAnswers; words?: string } = {},
): Promise<{ text: string; structured?: unknown; host: RecordingHost }> {
  const host = new RecordingHost(setup, answers);
  await session.ready(setup);
  const answer = await session.take(`${words} ${scripted(steps)}`, host);
  return { ...answer, host };
}

/** The server's count in the words of a spend. */
export function served(server: ModelServer): Readonly<Record<string, Tokens>> {
  return Object.fromEntries(Object.entries(server.served()).map(([model, tokens]) => [model, tokensOf(tokens)]));
}

function tokensOf({ input, output, cacheRead, cacheWrite }: ServedTokens): Tokens {
  return { input, output, cache_read: cacheRead, cache_write: cacheWrite };
}

/** Claude Code as a subject of the conformance suite. */
export async function claudeSubject(): Promise<Subject> {
  const bench = await startBench();
  return {
    driver: bench.driver(),
    place: bench.setup.place,
    elsewhere: localPlace(join(bench.home, "elsewhere")),
    can: new Set(["say", "give", "shell", "write", "call", "hang", "spend"]),
    prompt: (steps, words = "do it") =>
      `${words} ${scripted(steps.map((step) => stepOf(step, bench.setup.place.workdir)))}`,
    again: () => bench.driver(),
    remembered: () => rememberedBy(bench.server),
    close: () => bench.close(),
  };
}

function stepOf(step: ScriptStep, workdir: string): Step {
  const { tokens } = step;
  const usage =
    tokens === undefined
      ? {}
      : {
          usage: {
            input: tokens.input ?? 0,
            output: tokens.output ?? 0,
            cacheRead: tokens.cache_read ?? 0,
            cacheWrite: tokens.cache_write ?? 0,
          },
        };
  if ("say" in step) return { text: step.say, ...usage };
  if ("give" in step) return { tool: "StructuredOutput", input: step.give, ...usage };
  if ("shell" in step) return { sh: step.shell, ...usage };
  if ("write" in step) return { write: [join(workdir, step.write), step.content], ...usage };
  if ("call" in step) return { offered: step.call, input: step.input, ...usage };
  return { hang: true };
}
