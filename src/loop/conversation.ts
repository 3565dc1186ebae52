/** The messages of one session, kept between its turns. */

import { randomUUID } from "node:crypto";
import type { ModelMessage } from "ai";

/** Marks a user message that was put into a turn under way, for whoever reads the conversation back. */
export const STEER_MARK = { hmz: { steer: true } } as const;

export class Conversation {
  readonly id: string = randomUUID();
  readonly #messages: ModelMessage[];

  constructor(messages: readonly ModelMessage[] = []) {
    this.#messages = [...messages];
  }

  /** The conversation so far. What is said later is not in it. */
  get messages(): readonly ModelMessage[] {
    return [...this.#messages];
  }

  get length(): number {
    return this.#messages.length;
  }

  prompt(text: string): void {
    this.#messages.push({ role: "user", content: text });
  }

  steer(text: string): void {
    this.#messages.push({ role: "user", content: text, providerOptions: STEER_MARK });
  }

  say(messages: readonly ModelMessage[]): void {
    this.#messages.push(...messages);
  }

  /**
   * Forgets a prompt that a failed turn got no answer to: the flow that tries again would otherwise have said it twice.
   */
  forgetUnanswered(length: number): void {
    if (this.#messages.slice(length).every((message) => message.role === "user")) this.#messages.length = length;
  }

  /** Another conversation that carries on from here; messages are never changed in place, so that they are shared. */
  fork(): Conversation {
    return new Conversation(this.#messages);
  }
}
