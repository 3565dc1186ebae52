/** A person for tests, at the prompt or away. */

import type { z } from "zod";
import { OutputSchemaError } from "../flows/errors.ts";
import type { OutworlderDriver } from "../engine/ports.ts";
import { Replies, type Reply, shaped } from "./reply.ts";

/** What a {@link FakeOutworlder} answers. */
export interface FakeOutworlderOptions {
  /** What is answered. Left out: "ok", or the defaults of the schema asked for. */
  readonly reply?: Reply<undefined> | undefined;
  /** Whether nobody is there. Default `false`. */
  readonly away?: boolean | undefined;
}

/** Answers as a `FakeAgent` does, or is away. */
export class FakeOutworlder implements OutworlderDriver {
  /** Every prompt that it was asked. */
  readonly asked: string[] = [];
  readonly #replies: Replies<undefined>;
  readonly #away: boolean;

  constructor({ reply, away = false }: FakeOutworlderOptions = {}) {
    this.#replies = new Replies(reply);
    this.#away = away;
  }

  away(): boolean {
    return this.#away;
  }

  async ask(question: {
    readonly prompt: string;
    readonly schema: z.ZodType | undefined;
    readonly signal: AbortSignal;
  }): Promise<unknown> {
    const { prompt, schema, signal } = question;
    signal.throwIfAborted();
    this.asked.push(prompt);
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    try {
      const reply = this.#replies.next(prompt, { outputSchema: schema, session: undefined });
      const { text, structured } = shaped(await Promise.race([reply, stopped]), schema);
      return schema ? valueOf(text, structured, schema) : text;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }
}

/** A value of the schema, as a form at a prompt would give it. */
function valueOf(text: string, structured: unknown, schema: z.ZodType): unknown {
  const value = structured === undefined ? jsonOr(text) : structured;
  const read = schema.safeParse(value);
  // Whoever asked reads it again: what a transform made of it would be transformed twice.
  if (read.success) return value;
  throw new OutputSchemaError(`the fake outworlder's reply is not of the schema asked for: ${JSON.stringify(text)}`, {
    cause: read.error,
  });
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
