/** What a resumable flow keeps while it runs. */

import type { Session } from "../flows/agent.ts";
import type { FlowState } from "../flows/context.ts";
import { StateNotSerializable } from "../flows/errors.ts";

/** A conversation as a state holds it. */
export interface KeptSession {
  readonly harness: string;
  /** The harness's own id of it. */
  readonly id: string;
  /** The directory of its copy. Absolute. */
  readonly at: string;
  readonly role: string;
}

/** Where a state's values lie. */
export interface StateStore {
  /** Values as JSON, by key. */
  readonly values: ReadonlyMap<string, string>;
  set(key: string, json: string): void;
  delete(key: string): boolean;
}

/** What a state asks of the call that it is of. */
export interface StateSessions {
  /** Whether a value is a session, whoever's. */
  isSession(value: unknown): boolean;
  /** Refuses a session that cannot be kept. @throws StateNotSerializable */
  assertKeepable(session: unknown): void;
  /** Copies sessions as they stand: all of them, or none. @throws StateNotSerializable */
  keep(sessions: readonly unknown[]): ReadonlyMap<unknown, KeptSession>;
  /** A new session that carries a kept one on. */
  carriedOn(kept: KeptSession): Session;
}

/** A state held in memory alone. */
export function memoryStore(): StateStore {
  const values = new Map<string, string>();
  return {
    values,
    set: (key, json) => void values.set(key, json),
    delete: (key) => values.delete(key),
  };
}

/** The state of a call: what is read is the JSON round trip of what was set, its sessions new ones on each read. */
export class CallState implements FlowState {
  readonly #store: StateStore;
  readonly #sessions: StateSessions;

  constructor(store: StateStore, sessions: StateSessions) {
    this.#store = store;
    this.#sessions = sessions;
  }

  get<T>(key: string, fallback?: T): T | undefined {
    const kept = this.#store.values.get(key);
    return kept === undefined ? fallback : (this.#read(kept) as T);
  }

  set(key: string, value: unknown): void {
    if (typeof key !== "string") throw new StateNotSerializable(`a state key is a string, not ${printed(key)}`);
    this.#store.set(key, this.#serialized(value));
  }

  delete(key: string): boolean {
    return this.#store.delete(key);
  }

  has(key: string): boolean {
    return this.#store.values.has(key);
  }

  keys(): IterableIterator<string> {
    return [...this.#store.values.keys()].values();
  }

  get size(): number {
    return this.#store.values.size;
  }

  *[Symbol.iterator](): IterableIterator<[string, unknown]> {
    for (const [key, kept] of Array.from(this.#store.values)) yield [key, this.#read(kept)];
  }

  #read(json: string): unknown {
    if (!json.includes(MARK)) return JSON.parse(json);
    return JSON.parse(json, (_key, part: unknown) => {
      if (typeof part !== "object" || part === null) return part;
      const kept = keptIn(part);
      if (kept) return this.#sessions.carriedOn(kept);
      const number = (part as Readonly<Record<string, unknown>>)[NUMBER];
      return typeof number === "string" ? Number(number) : part;
    });
  }

  #serialized(value: unknown): string {
    // Nearly every value is: looking is faster than asking about each part as it is written.
    if (isPlainJson(value, 0)) return JSON.stringify(value);
    const found = new Set<unknown>();
    const text = this.#stringified(value, (session) => {
      this.#sessions.assertKeepable(session);
      found.add(session);
      return null;
    });
    if (found.size === 0) return text;
    const kept = this.#sessions.keep([...found]);
    return this.#stringified(value, (session) => ({ [SESSION]: kept.get(session) }));
  }

  #stringified(value: unknown, written: (session: unknown) => unknown): string {
    try {
      return JSON.stringify(value, (_key, part: unknown) => {
        switch (typeof part) {
          case "number":
            // JSON has no word for them: they would be read back as null.
            return Number.isFinite(part) ? part : { [NUMBER]: String(part) };
          case "object":
            if (part === null || Array.isArray(part)) return part;
            if (this.#sessions.isSession(part)) return written(part);
            assertPlain(part);
            return part;
          case "string":
          case "boolean":
            return part;
          default:
            throw new TypeError(`${typeof part} is not JSON`);
        }
      });
    } catch (error) {
      if (error instanceof StateNotSerializable) throw error;
      throw new StateNotSerializable(
        `${typeName(value)} cannot be kept in a flow's state: ${(error as Error).message}`,
        { cause: error },
      );
    }
  }
}

/** Deeper values are looked at as they are written, and circles with them. */
const DEEPEST = 16;

/** Whether JSON holds a value as it is: nothing of it has a way of its own to be written, or would be lost. */
function isPlainJson(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth === DEEPEST) return false;
  if (Array.isArray(value)) {
    for (const part of value) if (!isPlainJson(part, depth + 1)) return false;
    return true;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const key of Object.keys(value)) {
    if (key === "toJSON" || key.startsWith("\u0000")) return false;
    if (!isPlainJson((value as Readonly<Record<string, unknown>>)[key], depth + 1)) return false;
  }
  return true;
}

/** The key of an object that stands for a session. */
const SESSION = "\u0000session";
/** The key of an object that stands for a number that JSON cannot hold. */
const NUMBER = "\u0000number";
/** What any of them has in it, as text. */
const MARK = String.raw`"\u0000`;

/** Refuses what JSON would make an empty object of, without a word, and what only a state itself writes. */
function assertPlain(part: object): void {
  // One that a model's answer holds would name any file as a conversation.
  if (Object.hasOwn(part, SESSION) || Object.hasOwn(part, NUMBER)) {
    throw new TypeError("a key that begins with a NUL is the state's own");
  }
  const prototype: unknown = Object.getPrototypeOf(part);
  if (prototype === Object.prototype || prototype === null) return;
  if (LOST_IN_JSON.some((kind) => part instanceof kind)) throw new TypeError(`${typeName(part)} is not JSON`);
}

const LOST_IN_JSON = [Map, Set, WeakMap, WeakSet, Promise, RegExp, Error, ArrayBuffer];

function keptIn(part: object): KeptSession | undefined {
  const kept = (part as Readonly<Record<string, unknown>>)[SESSION];
  if (typeof kept !== "object" || kept === null) return undefined;
  const { harness, id, at, role } = kept as Readonly<Record<string, unknown>>;
  const isKept = typeof harness === "string" && typeof id === "string" && typeof at === "string";
  return isKept && typeof role === "string" ? { harness, id, at, role } : undefined;
}

function typeName(value: unknown): string {
  if (typeof value !== "object" || value === null) return typeof value;
  return (Object.getPrototypeOf(value) as { constructor?: { name?: string } } | null)?.constructor?.name ?? "object";
}

function printed(key: unknown): string {
  return typeof key === "symbol" ? key.toString() : JSON.stringify(key);
}
