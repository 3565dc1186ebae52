/** A model that replays a script: the loop around it and the tools under it are the real ones. */

import { setTimeout as wait } from "node:timers/promises";
import { APICallError } from "ai";
import type { Model, OpenedModel } from "./model.ts";
import { dueAnswer, readScript, type Line, type Script, type ScriptAnswer } from "./script.ts";

type ScriptedModel = Extract<Model, { readonly specificationVersion: "v4" }>;
type CallOptions = Parameters<ScriptedModel["doStream"]>[0];
type Part = Awaited<ReturnType<ScriptedModel["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

/** @throws HarnessUnrecoverable where the script cannot be read. */
export async function scriptedModel(
  name: string,
  scripts: ((name: string) => string | undefined) | undefined,
): Promise<OpenedModel> {
  const { script, file } = await readScript(name, scripts);
  const { price } = script;
  return {
    model: replay(script, file),
    name: script.model,
    ...(price === undefined
      ? {}
      : {
          price: {
            input: price.input ?? 0,
            output: price.output ?? 0,
            cache_read: price.cacheRead ?? 0,
            cache_write: price.cacheWrite ?? price.input ?? 0,
          },
        }),
    providerOptions: {},
    cacheMark: undefined,
    secrets: [],
  };
}

function replay(script: Script, file: string): ScriptedModel {
  return {
    specificationVersion: "v4",
    provider: "scripted",
    modelId: script.model,
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("a scripted model is only streamed")),
    doStream: (options) => {
      const lines = linesOf(options.prompt);
      const step = dueAnswer(script, lines, file);
      if (step.error !== undefined) throw refusal(script.model, step.error);
      const turn = lines.filter((line) => line.by === "assistant").length;
      return Promise.resolve({
        stream: ReadableStream.from(parts(step, turn, usageOf(step, lines), options.abortSignal)),
      });
    },
  };
}

async function* parts(
  step: ScriptAnswer,
  turn: number,
  usage: Extract<Part, { type: "finish" }>["usage"],
  signal: AbortSignal | undefined,
): AsyncGenerator<Part, void> {
  const pause = async (): Promise<void> => {
    if (step.delayMs > 0) await wait(step.delayMs, undefined, signal === undefined ? {} : { signal });
  };
  yield { type: "stream-start", warnings: [] };
  if (step.think !== undefined) {
    yield { type: "reasoning-start", id: "think" };
    yield { type: "reasoning-delta", id: "think", delta: step.think };
    yield { type: "reasoning-end", id: "think" };
  }
  if (step.say !== undefined && step.say !== "") {
    yield { type: "text-start", id: "say" };
    for (const delta of step.say.match(/\s*\S+|\s+$/g) ?? []) {
      await pause();
      yield { type: "text-delta", id: "say", delta };
    }
    yield { type: "text-end", id: "say" };
  }
  await pause();
  for (const [index, { tool, input }] of step.tools.entries()) {
    yield {
      type: "tool-call",
      toolCallId: `call-${turn + 1}-${index + 1}`,
      toolName: tool,
      input: JSON.stringify(input),
    };
  }
  yield {
    type: "finish",
    finishReason: { unified: step.tools.length > 0 ? "tool-calls" : "stop", raw: undefined },
    usage,
  };
}

function linesOf(prompt: CallOptions["prompt"]): readonly Line[] {
  return prompt.flatMap((message): readonly Line[] => {
    switch (message.role) {
      case "system":
        return [];
      case "user":
        return [
          {
            by: "user",
            text: message.content.map((part) => (part.type === "text" ? part.text : "")).join(""),
            steer: message.providerOptions?.["hmz"]?.["steer"] === true,
          },
        ];
      case "assistant":
        return [
          { by: "assistant", text: message.content.map((part) => (part.type === "text" ? part.text : "")).join("") },
        ];
      case "tool":
        return message.content.map((part) => ({
          by: "tool",
          text: part.type === "tool-result" ? shown(part.output) : "",
        }));
    }
  });
}

function shown(output: { readonly type: string; readonly value?: unknown }): string {
  return typeof output.value === "string" ? output.value : (JSON.stringify(output.value) ?? "");
}

/** What the script says was used, else about what a model would have: four characters a token. */
function usageOf(step: ScriptAnswer, lines: readonly Line[]): Extract<Part, { type: "finish" }>["usage"] {
  const about = (text: string): number => Math.ceil(text.length / 4);
  const { cacheRead = 0, cacheWrite = 0, reasoning = step.think === undefined ? 0 : about(step.think) } = step.usage;
  const input = step.usage.input ?? about(lines.map((line) => line.text).join("\n"));
  const output = step.usage.output ?? about(`${step.say ?? ""}${JSON.stringify(step.tools)}`) + reasoning;
  return {
    inputTokens: { total: input + cacheRead + cacheWrite, noCache: input, cacheRead, cacheWrite },
    outputTokens: { total: output, text: Math.max(0, output - reasoning), reasoning },
  };
}

function refusal(model: string, error: NonNullable<ScriptAnswer["error"]>): APICallError {
  return new APICallError({
    message: error.message,
    url: `scripted:${model}`,
    requestBodyValues: {},
    statusCode: error.status,
  });
}
