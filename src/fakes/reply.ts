/** What a fake answers: one answer for every turn, a list used up one by one, or a function. */

import type { z } from "zod";
import type { FakeSession } from "./fake-session.ts";

/** Text, an object that the schema asked for reads, or `undefined` for "ok" or the schema's defaults. */
export type FakeAnswer = string | object | null | undefined;

/** What a reply function is told beside the prompt. */
export interface Asked<S> {
  /** The schema that the answer must have, where the turn asks for one. */
  readonly outputSchema: z.ZodType | undefined;
  readonly session: S;
}

/** Answers a prompt; through `session` it acts as the agent would in its turn. */
export type ReplyFunction<S = FakeSession> = (
  prompt: string,
  asked: Asked<S>,
) => FakeAnswer | void | Promise<FakeAnswer | void>;

/** An answer for every turn; a list, one a turn, then as if nothing was given; or a function. */
export type Reply<S = FakeSession> = FakeAnswer | readonly FakeAnswer[] | ReplyFunction<S>;

/** What is answered, a prompt at a time. */
export class Replies<S> {
  readonly #reply: Reply<S>;
  #used = 0;

  constructor(reply: Reply<S>) {
    this.#reply = reply;
  }

  async next(prompt: string, asked: Asked<S>): Promise<FakeAnswer> {
    const reply = this.#reply;
    if (typeof reply === "function") return (await reply(prompt, asked)) ?? undefined;
    // A list is used up in the order that turns begin, whichever session they are of.
    if (Array.isArray(reply)) return reply[this.#used++] as FakeAnswer;
    return reply;
  }
}

/** An answer as a harness gives it: its text, and the object where it is one. */
export interface Shaped {
  readonly text: string;
  readonly structured?: unknown;
}

/**
 * An answer as text, or as the object that was asked for. Nothing answers "ok", or the schema's defaults where every
 * field has one.
 */
export function shaped(answer: FakeAnswer, schema: z.ZodType | undefined): Shaped {
  if (typeof answer === "string") return { text: answer };
  if (answer !== undefined && answer !== null) return { text: JSON.stringify(answer), structured: answer };
  if (!schema?.safeParse({}).success) return { text: "ok" };
  return { text: "{}", structured: {} };
}
