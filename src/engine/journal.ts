/**
 * The journal of a resumable run: which calls it made, what their states hold, what they opened and copied. A later run
 * reads it back as a tree, and each of its calls picks up the earlier one that it is the same as.
 */

import { FlowRuntimeError } from "../flows/errors.ts";
import type { JournalStore } from "./ports.ts";
import type { StateStore } from "./state.ts";

/** The version of the format. A journal of a newer one is refused, not guessed at. */
export const JOURNAL_VERSION = 1;

/** What kind of directory a call had made of an environment. */
export type CopyKind = "temp_clone" | "scratch";

/** A copy or a scratch directory that an environment's id names. */
export interface CopyRecord {
  /** The role of the environment. */
  readonly env: string;
  readonly kind: CopyKind;
  /** The id that the flow gave it. */
  readonly name: string;
  /** How the environment that it is of was derived. */
  readonly chain: string;
  /** Where it lies. */
  readonly workdir: string;
}

/** A conversation that a call had. */
export interface SessionNote {
  readonly role: string;
  readonly harness: string;
  readonly model: string;
  /** The harness's own id. */
  readonly session: string;
}

/** A call as the journal holds it. */
export class JournaledCall {
  readonly id: number;
  readonly parent: number;
  readonly digest: string;
  readonly seq: number;
  readonly ref: string;
  /** Whether it is of an earlier run. */
  readonly earlier: boolean;
  readonly #journal: Journal;
  // Most calls of a long run have none of these: each is made when it is needed.
  #values: Map<string, string> | undefined;
  /** The calls of an earlier run under this one, by digest, each in the order of its `seq`. */
  #alike: Map<string, JournaledCall[]> | undefined;
  /** How many calls of this run were of a digest. */
  #claimed: Map<string, number> | undefined;
  #sessions: SessionNote[] | undefined;
  #copies: CopyRecord[] | undefined;
  #ok: boolean | undefined;

  constructor(
    journal: Journal,
    call: {
      readonly id: number;
      readonly parent: number;
      readonly digest: string;
      readonly seq: number;
      readonly ref: string;
      readonly earlier: boolean;
    },
  ) {
    this.#journal = journal;
    this.id = call.id;
    this.parent = call.parent;
    this.digest = call.digest;
    this.seq = call.seq;
    this.ref = call.ref;
    this.earlier = call.earlier;
  }

  /** What its state is held in. */
  get store(): StateStore {
    const values = (this.#values ??= new Map());
    return {
      values,
      set: (key, json) => {
        this.#journal.flushed(`{"t":"set","id":${this.id},"key":${JSON.stringify(key)},"value":${json}}`, this.ref);
        values.set(key, json);
      },
      delete: (key) => {
        if (!values.has(key)) return false;
        this.#journal.flushed(`{"t":"del","id":${this.id},"key":${JSON.stringify(key)}}`, this.ref);
        return values.delete(key);
      },
    };
  }

  /**
   * The call of a digest under this one: the earlier one of the lowest `seq` that no call of this run has picked up,
   * else a new one.
   */
  child(digest: string, ref: string): JournaledCall {
    const alike = this.#alike?.get(digest);
    const claims = (this.#claimed ??= new Map<string, number>());
    const claimed = claims.get(digest) ?? 0;
    claims.set(digest, claimed + 1);
    const earlier = alike?.[claimed];
    if (earlier) return earlier;
    const seq = alike ? (alike.at(-1)?.seq ?? -1) + 1 + claimed - alike.length : claimed;
    return this.#journal.made({ parent: this.id, digest, seq, ref });
  }

  opened(session: SessionNote): void {
    (this.#sessions ??= []).push(session);
    this.#journal.batched(sessionLine(this.id, session));
  }

  copied(copy: CopyRecord): void {
    (this.#copies ??= []).push(copy);
    this.#journal.batched(copyLine(this.id, copy));
  }

  /** Where an earlier run had a copy of an environment; `undefined` where it had none. */
  copy(kind: CopyKind, chain: string, name: string): string | undefined {
    return this.#copies?.findLast((copy) => copy.kind === kind && copy.chain === chain && copy.name === name)?.workdir;
  }

  ended(ok: boolean): void {
    this.#ok = ok;
    this.#journal.batched(endLine(this.id, ok));
  }

  // ── as a journal is read back ─────────────────────────────────────────────────────────────────────────────────────

  adopt(child: JournaledCall): void {
    const all = (this.#alike ??= new Map<string, JournaledCall[]>());
    const alike = all.get(child.digest) ?? [];
    const last = alike.at(-1);
    alike.push(child);
    if (last && last.seq > child.seq) alike.sort((one, other) => one.seq - other.seq);
    all.set(child.digest, alike);
  }

  /** Takes in a record of this call that an earlier run wrote. */
  recall(record: Fields): void {
    switch (record["t"]) {
      case "set":
        if (typeof record["key"] === "string" && "value" in record) {
          (this.#values ??= new Map()).set(record["key"], JSON.stringify(record["value"]));
        }
        return;
      case "del":
        if (typeof record["key"] === "string") this.#values?.delete(record["key"]);
        return;
      case "session":
        (this.#sessions ??= []).push({
          role: text(record["role"]),
          harness: text(record["harness"]),
          model: text(record["model"]),
          session: text(record["session"]),
        });
        return;
      case "tmp":
        if (record["kind"] === "temp_clone" || record["kind"] === "scratch") {
          (this.#copies ??= []).push({
            env: text(record["env"]),
            kind: record["kind"],
            name: text(record["name"]),
            chain: text(record["chain"]),
            workdir: text(record["workdir"]),
          });
        }
        return;
      case "end":
        this.#ok = record["ok"] === true;
        return;
      default:
        // Of a release that writes more: nothing here needs it.
        return;
    }
  }

  /** The call as one run leaves it: its final state, its sessions and copies, its end. */
  *lines(): Generator<string> {
    yield callLine(this);
    for (const [key, json] of this.#values ?? [])
      yield `{"t":"set","id":${this.id},"key":${JSON.stringify(key)},"value":${json}}`;
    for (const session of this.#sessions ?? []) yield sessionLine(this.id, session);
    for (const copy of this.#copies ?? []) yield copyLine(this.id, copy);
    if (this.#ok !== undefined) yield endLine(this.id, this.#ok);
  }
}

/** One run's journal. */
export class Journal {
  readonly #store: JournalStore;
  readonly #calls = new Map<number, JournaledCall>();
  #earlierTop: JournaledCall | undefined;
  #last = 0;
  #dirty = false;
  /** The sync under way that everything set so far is part of. */
  #settling: Promise<void> | undefined;

  constructor(store: JournalStore) {
    this.#store = store;
  }

  /**
   * The top call: the earlier one, whatever it was given, where this run picks one up. Writes what the journal begins
   * with.
   *
   * @throws FlowRuntimeError where it cannot be written.
   */
  begin(digest: string, ref: string): JournaledCall {
    if (this.#store.earlier) this.#read(this.#store.earlier);
    const top = this.#earlierTop ?? this.#new({ parent: 0, digest, seq: 0, ref });
    try {
      this.#store.begin(this.#compacted());
    } catch (error) {
      throw unwritable(ref, error);
    }
    return top;
  }

  #read(records: readonly unknown[]): void {
    for (const record of records) {
      if (!isFields(record) || typeof record["id"] !== "number") continue;
      const { id } = record;
      if (record["t"] !== "call") {
        this.#calls.get(id)?.recall(record);
        continue;
      }
      if (!Number.isSafeInteger(id) || id < 1 || this.#calls.has(id)) continue;
      const parent = typeof record["parent"] === "number" ? record["parent"] : 0;
      const call = new JournaledCall(this, {
        id,
        parent,
        digest: text(record["digest"]),
        seq: typeof record["seq"] === "number" ? record["seq"] : 0,
        ref: text(record["ref"]),
        earlier: true,
      });
      this.#last = Math.max(this.#last, id);
      const above = this.#calls.get(parent);
      // A call whose caller's own line is lost is nobody's to pick up; nor is a second top call.
      if (parent !== 0 && !above) continue;
      if (parent === 0 && this.#earlierTop) continue;
      this.#calls.set(id, call);
      if (above) above.adopt(call);
      else this.#earlierTop = call;
    }
  }

  *#compacted(): Generator<string> {
    yield JSON.stringify({ t: "journal", v: JOURNAL_VERSION });
    for (const call of this.#calls.values()) yield* call.lines();
  }

  /** A call of this run that picks up none. */
  made(call: {
    readonly parent: number;
    readonly digest: string;
    readonly seq: number;
    readonly ref: string;
  }): JournaledCall {
    const made = this.#new(call);
    this.batched(callLine(made));
    return made;
  }

  #new(call: {
    readonly parent: number;
    readonly digest: string;
    readonly seq: number;
    readonly ref: string;
  }): JournaledCall {
    const made = new JournaledCall(this, { ...call, id: ++this.#last, earlier: false });
    // What is read back is written out once; what is made after that is appended.
    if (call.parent === 0) this.#calls.set(made.id, made);
    return made;
  }

  flushed(line: string, ref: string): void {
    try {
      this.#store.append(line, true);
    } catch (error) {
      throw unwritable(ref, error);
    }
    this.#dirty = true;
  }

  batched(line: string): void {
    this.#store.append(line, false);
  }

  /**
   * What is waited for before anything leaves the process, where the run asked for it: what its states hold is on disk
   * then. `undefined` where there is nothing to wait for.
   */
  settled(ref: string): Promise<void> | undefined {
    if (!this.#store.durable) return undefined;
    // Whoever comes while a sync runs that has what they set waits for it too: it is not on disk before.
    if (!this.#dirty) return this.#settling;
    this.#dirty = false;
    const settling = this.#store.synced().catch((error: unknown) => {
      this.#dirty = true;
      throw unwritable(ref, error);
    });
    this.#settling = settling;
    const settled = (): void => {
      if (this.#settling === settling) this.#settling = undefined;
    };
    settling.then(settled, settled);
    return settling;
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function unwritable(ref: string, cause: unknown): FlowRuntimeError {
  const said = cause instanceof Error ? cause.message : String(cause);
  return new FlowRuntimeError(`${ref}: its journal cannot be written: ${said}`, { cause });
}

function callLine({ id, parent, digest, seq, ref }: JournaledCall): string {
  return `{"t":"call","id":${id},"parent":${parent},"digest":${JSON.stringify(digest)},"seq":${seq},"ref":${JSON.stringify(ref)}}`;
}

function sessionLine(id: number, { role, harness, model, session }: SessionNote): string {
  return JSON.stringify({ t: "session", id, role, harness, model, session });
}

function copyLine(id: number, { env, kind, name, chain, workdir }: CopyRecord): string {
  return JSON.stringify({ t: "tmp", id, env, kind, name, chain, workdir });
}

function endLine(id: number, ok: boolean): string {
  return `{"t":"end","id":${id},"ok":${ok}}`;
}
