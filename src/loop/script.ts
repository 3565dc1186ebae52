/**
 * A script that stands in for a model: what it says and which tools it calls, scene by scene.
 *
 * A scene answers one prompt, each of its steps one model call. Where the conversation stands in it is found by playing
 * it again from the start, so that a script keeps no state: it survives a fork, a retry and another process.
 */

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { z } from "zod";
import { HarnessUnrecoverable } from "../flows/errors.ts";

const tokens = z.number().int().nonnegative();
const usd = z.number().nonnegative();

/** On the text of the last step's tool results. */
const condition = z.union([
  z.strictObject({ contains: z.string() }),
  z.strictObject({ lacks: z.string() }),
  z.strictObject({ matches: z.string() }),
]);

const answer = z.strictObject({
  /** The step is left out where its condition does not hold. */
  if: condition.optional(),
  say: z.string().optional(),
  think: z.string().optional(),
  tools: z
    .array(z.strictObject({ tool: z.string().min(1), input: z.record(z.string(), z.unknown()).default({}) }))
    .default([]),
  usage: z
    .strictObject({
      input: tokens.optional(),
      output: tokens.optional(),
      cacheRead: tokens.optional(),
      cacheWrite: tokens.optional(),
      reasoning: tokens.optional(),
    })
    .default({}),
  /** Before each word of what is said, and before the answer ends. */
  delayMs: z.number().nonnegative().default(0),
  /** The provider's refusal in place of an answer. */
  error: z.strictObject({ status: z.number().int().min(400).max(599), message: z.string() }).optional(),
});

export type ScriptAnswer = z.output<typeof answer>;
type Condition = z.output<typeof condition>;

/** Steps of which the one list or the other is played. */
interface Branch {
  readonly if: Condition;
  readonly steps: readonly ScriptStep[];
  readonly else?: readonly ScriptStep[] | undefined;
}
type ScriptStep = ScriptAnswer | Branch;

const step: z.ZodType<ScriptStep> = z.lazy(() => z.union([branch, answer]));
const branch = z.strictObject({ if: condition, steps: z.array(step), else: z.array(step).optional() });

const scene = z.strictObject({
  /** A part of the prompt, or a regular expression that it matches; a scene without one is the next in order. */
  when: z.union([z.string().min(1), z.strictObject({ matches: z.string(), flags: z.string().optional() })]).optional(),
  steps: z.array(step).min(1),
});

const script = z.strictObject({
  /** For the reader of the file. */
  about: z.string().optional(),
  /** The name that its spending is reported under. */
  model: z.string().min(1).default("scripted"),
  /** USD a million tokens. */
  price: z
    .strictObject({
      input: usd.optional(),
      output: usd.optional(),
      cacheRead: usd.optional(),
      cacheWrite: usd.optional(),
    })
    .optional(),
  scenes: z.array(scene).min(1),
});

export type Script = z.output<typeof script>;
type Scene = Script["scenes"][number];

/** One message of a conversation, as far as a script minds it. */
export interface Line {
  readonly by: "user" | "assistant" | "tool";
  readonly text: string;
  /** Put into a turn under way. */
  readonly steer?: boolean;
}

/**
 * Reads a script file.
 *
 * @param name A path, absolute or relative to the working directory of this process, or a name that `scripts` knows.
 * @throws HarnessUnrecoverable with the file and what is wrong with it.
 */
export async function readScript(
  name: string,
  scripts: ((name: string) => string | undefined) | undefined,
): Promise<{ readonly script: Script; readonly file: string }> {
  const file = scripts?.(name) ?? resolve(name);
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : (error as Error).message;
    throw new HarnessUnrecoverable(`the script ${file} cannot be read: ${why}`, { cause: error });
  }
  return { script: parseScript(text, file), file };
}

/** @throws HarnessUnrecoverable naming `file`. */
export function parseScript(text: string, file: string): Script {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new HarnessUnrecoverable(`the script ${file} is not JSON, ${lineOf(text)}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const read = script.safeParse(value);
  if (!read.success) {
    throw new HarnessUnrecoverable(`the script ${file} is not a script:\n${z.prettifyError(read.error)}`, {
      cause: read.error,
    });
  }
  for (const pattern of patternsOf(read.data)) {
    const problem = problemOf(pattern);
    if (problem !== undefined) throw new HarnessUnrecoverable(`the script ${file} has a bad pattern: ${problem}`);
  }
  return read.data;
}

/** The first line that no JSON goes on from, in words; the engine's own message does not always name a place. */
function lineOf(text: string): string {
  const lines = text.split("\n");
  const bad = lines.findIndex((_, index) => !goesOn(`${lines.slice(0, index + 1).join("\n")}\n`));
  return `line ${bad === -1 ? lines.length : bad + 1}`;
}

/** Whether what follows could still make JSON of it. */
function goesOn(start: string): boolean {
  try {
    JSON.parse(start);
    return true;
  } catch (error) {
    const { message } = error as Error;
    const position = /at position (\d+)/.exec(message)?.[1];
    return position === undefined ? message.startsWith("Unexpected end") : Number(position) >= start.length;
  }
}

interface Pattern {
  readonly source: string;
  readonly flags?: string | undefined;
}

function problemOf({ source, flags }: Pattern): string | undefined {
  try {
    RegExp(source, flags);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function patternsOf({ scenes }: Script): readonly Pattern[] {
  const inSteps = (steps: readonly ScriptStep[]): readonly Pattern[] =>
    steps.flatMap((step) => [
      ...(step.if !== undefined && "matches" in step.if ? [{ source: step.if.matches }] : []),
      ...("steps" in step ? [...inSteps(step.steps), ...inSteps(step.else ?? [])] : []),
    ]);
  return scenes.flatMap(({ when, steps }) => [
    ...(typeof when === "object" ? [{ source: when.matches, flags: when.flags }] : []),
    ...inSteps(steps),
  ]);
}

/**
 * What the script answers to a conversation.
 *
 * A prompt plays the first scene that its matcher fits and that was not played yet (or, where all were, the last of
 * those), else the next scene without a matcher. A steer plays only a scene whose matcher fits it; the scene under way
 * goes on otherwise.
 *
 * @throws HarnessUnrecoverable where the script has no answer.
 */
export function dueAnswer(script: Script, conversation: readonly Line[], file: string): ScriptAnswer {
  const played = new Set<Scene>();
  let prompt = "";
  let steered = false;
  let scene: Scene | undefined;
  let results = "";
  let playing: Iterator<ScriptAnswer> | undefined;
  let due: ScriptAnswer | undefined;
  const advance = (): void => {
    const next = playing?.next();
    due = next === undefined || next.done === true ? undefined : next.value;
  };
  // Whether the step after the last answer must still be found, once the tools' results are in.
  let pending = false;
  for (const line of conversation) {
    switch (line.by) {
      case "user": {
        const next = sceneFor(script, line, played);
        steered = line.steer === true;
        if (next === undefined && steered) break;
        prompt = line.text;
        scene = next;
        results = "";
        if (scene !== undefined) {
          played.add(scene);
          playing = play(scene.steps, () => results);
          advance();
        }
        pending = false;
        break;
      }
      case "assistant":
        if (pending) advance();
        pending = true;
        results = "";
        break;
      case "tool":
        results += `${line.text}\n`;
        break;
    }
  }
  if (scene === undefined) {
    throw new HarnessUnrecoverable(
      `the script ${file} has no scene for this prompt: ${prompt.length > 200 ? `${prompt.slice(0, 200)}…` : prompt}`,
    );
  }
  if (pending) advance();
  // A person may steer whenever they like, and no script can have a step for that.
  if (due === undefined && steered) return answer.parse({ say: "I was told. This script has nothing more to say." });
  if (due === undefined) {
    throw new HarnessUnrecoverable(
      `the script ${file} has no step after the last one of scene ${script.scenes.indexOf(scene) + 1}: ` +
        "end it with a step that only says something",
    );
  }
  return due;
}

function sceneFor(script: Script, line: Line, played: ReadonlySet<Scene>): Scene | undefined {
  const fitting = script.scenes.filter((scene) => scene.when !== undefined && fits(scene.when, line.text));
  const matched = fitting.find((scene) => !played.has(scene)) ?? fitting.at(-1);
  if (matched !== undefined || line.steer === true) return matched;
  return script.scenes.find((scene) => scene.when === undefined && !played.has(scene));
}

function fits(when: NonNullable<Scene["when"]>, text: string): boolean {
  return typeof when === "string" ? text.includes(when) : new RegExp(when.matches, when.flags).test(text);
}

function* play(steps: readonly ScriptStep[], results: () => string): Generator<ScriptAnswer, undefined> {
  for (const step of steps) {
    if ("steps" in step) yield* play(holds(step.if, results()) ? step.steps : (step.else ?? []), results);
    else if (step.if === undefined || holds(step.if, results())) yield step;
  }
  return undefined;
}

function holds(condition: Condition, results: string): boolean {
  if ("contains" in condition) return results.includes(condition.contains);
  if ("lacks" in condition) return !results.includes(condition.lacks);
  return new RegExp(condition.matches).test(results);
}
