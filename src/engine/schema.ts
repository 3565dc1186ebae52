/** Output schemas: what a harness is told, and how an answer is read. */

import { z } from "zod";
import { OutputSchemaError } from "../flows/errors.ts";
import type { JsonSchema } from "./ports.ts";

const jsonSchemas = new WeakMap<z.ZodType, JsonSchema>();

/** A schema's JSON Schema, made once. */
export function jsonSchema(schema: z.ZodType): JsonSchema {
  let made = jsonSchemas.get(schema);
  if (!made) {
    made = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
    jsonSchemas.set(schema, made);
  }
  return made;
}

/** What messages call a schema: its title or id, where it was given one. */
export function schemaName(schema: z.ZodType): string {
  const meta = z.globalRegistry.get(schema);
  const named = meta?.title ?? meta?.id;
  return typeof named === "string" && named !== "" ? named : "value of its schema";
}

/**
 * The first of these that is JSON of the schema: the whole answer; each fenced code block, whatever its info string;
 * the span from the first `{` to the last `}`.
 *
 * @throws OutputSchemaError where none is.
 */
export function readAnswer<S extends z.ZodType>(answer: string, schema: S): z.output<S> {
  let cause: z.ZodError | undefined;
  for (const candidate of candidates(answer)) {
    const parsed = parseJson(candidate);
    if (parsed === undefined) continue;
    const read = schema.safeParse(parsed.value);
    if (read.success) return read.data;
    cause ??= read.error;
  }
  throw new OutputSchemaError(
    `the answer is not a ${schemaName(schema)}: ${JSON.stringify([...answer].slice(0, 200).join(""))}`,
    { cause },
  );
}

function* candidates(answer: string): Generator<string> {
  yield answer.trim();
  yield* fencedBlocks(answer);
  const open = answer.indexOf("{");
  const close = answer.lastIndexOf("}");
  if (open >= 0 && close > open) yield answer.slice(open, close + 1);
}

/** The bodies of Markdown's fenced code blocks, backtick and tilde, unclosed ones included. */
function* fencedBlocks(text: string): Generator<string> {
  const lines = text.split("\n");
  for (let start = 0; start < lines.length; start++) {
    const fence = /^\s*(?:>\s*)*(`{3,}|~{3,})/.exec(lines[start] as string)?.[1];
    if (!fence) continue;
    const mark = fence.charAt(0);
    let end = start + 1;
    while (end < lines.length && !closes(lines[end] as string, mark, fence.length)) end++;
    yield lines.slice(start + 1, end).join("\n");
    start = end;
  }
}

function closes(line: string, mark: string, length: number): boolean {
  const said = line.trim();
  return said.length >= length && [...said].every((character) => character === mark);
}

function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
