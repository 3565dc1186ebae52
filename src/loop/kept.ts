/** Conversations written down for a flow's state, each as one file of JSON: its messages, and no key or address. */

import { closeSync, fsyncSync, openSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelMessage } from "ai";
import type { KeptConversation } from "../engine/ports.ts";
import { SessionError } from "../flows/errors.ts";

const FILE = "conversation.json";
const VERSION = 1;

export function keepConversation(id: string, messages: readonly ModelMessage[], into: string): void {
  const descriptor = openSync(join(into, FILE), "wx", 0o600);
  try {
    writeFileSync(descriptor, JSON.stringify({ v: VERSION, id, messages }));
    // Handed to the disk: a journal that names a copy which a power loss emptied could not be picked up.
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The messages of a kept conversation. @throws SessionError where the copy is gone, or is none. */
export async function keptMessages({ id, at }: KeptConversation): Promise<readonly ModelMessage[]> {
  try {
    // With the first turn, as whatever else the AI SDK brings: an agent that is only named loads none of it.
    const [{ modelMessageSchema }, { z }] = await Promise.all([import("ai"), import("zod")]);
    const schema = z.object({ v: z.literal(VERSION), id: z.literal(id), messages: z.array(modelMessageSchema) });
    return schema.parse(JSON.parse(await readFile(join(at, FILE), "utf8"))).messages;
  } catch (error) {
    throw new SessionError(`the session cannot be forked: native: no conversation ${id} under ${at}`, { cause: error });
  }
}
