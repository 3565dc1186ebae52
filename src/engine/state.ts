/** What a resumable flow keeps while it runs. */

import type { FlowState } from "../flows/context.ts";
import { StateNotSerializable } from "../flows/errors.ts";

/** A state held in memory: what is read is the JSON round trip of what was set. */
export class MemoryState implements FlowState {
  readonly #kept = new Map<string, string>();

  get<T>(key: string, fallback?: T): T | undefined {
    const kept = this.#kept.get(key);
    return kept === undefined ? fallback : (JSON.parse(kept) as T);
  }

  set(key: string, value: unknown): void {
    if (typeof key !== "string") throw new StateNotSerializable(`a state key is a string, not ${printed(key)}`);
    this.#kept.set(key, serialized(value));
  }

  delete(key: string): boolean {
    return this.#kept.delete(key);
  }

  has(key: string): boolean {
    return this.#kept.has(key);
  }

  keys(): IterableIterator<string> {
    return [...this.#kept.keys()].values();
  }

  get size(): number {
    return this.#kept.size;
  }

  *[Symbol.iterator](): IterableIterator<[string, unknown]> {
    for (const [key, kept] of Array.from(this.#kept)) yield [key, JSON.parse(kept)];
  }
}

function serialized(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, (_key, part: unknown) => {
      if (part === undefined || typeof part === "function" || typeof part === "symbol" || typeof part === "bigint") {
        throw new TypeError(`${typeof part} is not JSON`);
      }
      return part;
    });
  } catch (error) {
    throw new StateNotSerializable(`${typeName(value)} cannot be kept in a flow's state: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return text;
}

function typeName(value: unknown): string {
  if (typeof value !== "object" || value === null) return typeof value;
  return (Object.getPrototypeOf(value) as { constructor?: { name?: string } } | null)?.constructor?.name ?? "object";
}

function printed(key: unknown): string {
  return typeof key === "symbol" ? key.toString() : JSON.stringify(key);
}
