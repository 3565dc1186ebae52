/** Conversations of fake agents, written down for a flow's state: each one file of JSON, so that a later run reads it. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { KeptConversation } from "../engine/ports.ts";
import type { Message } from "../flows/callbacks.ts";
import { SessionError } from "../flows/errors.ts";
import type { Harness } from "../flows/harness.ts";

const FILE = "conversation.json";

const Kept = z.object({
  id: z.string(),
  /** Of its last turn. */
  workdir: z.string(),
  messages: z.array(z.looseObject({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.unknown() })),
});

export interface FakeConversation {
  readonly id: string;
  readonly workdir: string;
  readonly messages: readonly Message[];
}

export function keepConversation(conversation: FakeConversation, into: string): void {
  writeFileSync(join(into, FILE), JSON.stringify(conversation), { flag: "wx" });
}

/** @throws SessionError where the copy is gone, or is none. */
export function keptConversation(harness: Harness, { id, at }: KeptConversation): FakeConversation {
  try {
    const kept = Kept.parse(JSON.parse(readFileSync(join(at, FILE), "utf8")));
    if (kept.id === id) return kept;
  } catch {
    // Said below, with what is not there.
  }
  throw new SessionError(`the session cannot be forked: ${harness}: no conversation ${id} under ${at}`);
}
