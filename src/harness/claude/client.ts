/** One live `claude` process: lines in, messages out, and the requests that each side makes of the other. */

import { randomUUID } from "node:crypto";
import type { Child } from "../../process/child.ts";
import { parseJsonLine } from "../../process/json-lines.ts";
import type { Ended } from "./failure.ts";
import type { Fields } from "./fields.ts";
import { controlRequest, controlResponse, parseMessage, userLine, type WireMessage } from "./protocol.ts";

/** What whoever holds the process hears. Nothing is told after `ended`. */
export interface Listener {
  message(message: WireMessage): void;
  /** A line that is no message: a warning, an update notice. */
  note(text: string): void;
  ended(ended: Ended): void;
}

/** How long what a dead process still had to say is waited for: whoever holds its pipe open may never close it. */
const DRAIN_MS = 1000;

export class ClaudeClient {
  readonly #child: Child;
  readonly #replies = new Map<string, (message: Extract<WireMessage, { type: "control_response" }>) => void>();
  /** Who hears what the process says. Nobody, between turns. */
  listener: Listener | undefined;
  /** Whether it tells when a line reaches the model. Older releases do not. */
  tellsLines = false;
  /** Set once the process has ended. */
  over: Ended | undefined;
  /** Settles once it has ended and what it said was read. */
  readonly gone: Promise<Ended>;
  /** The last lines that were no messages. */
  readonly notes: string[] = [];

  constructor(child: Child) {
    this.#child = child;
    this.gone = this.#read();
  }

  /** Sends a prompt, or a word for the turn under way. */
  say(text: string, uuid: string): Promise<void> {
    return this.#write(userLine(text, uuid));
  }

  /** Resolves to the answer; `undefined` where the process ended first. @throws Error where the CLI refuses. */
  async request(request: Fields): Promise<Fields | undefined> {
    const id = randomUUID();
    const reply = new Promise<Extract<WireMessage, { type: "control_response" }> | undefined>((resolve) => {
      this.#replies.set(id, resolve);
      void this.gone.then(() => resolve(undefined));
    });
    await this.#write(controlRequest(id, request));
    const answer = await reply;
    this.#replies.delete(id);
    if (answer?.error !== undefined) throw new Error(answer.error);
    return answer?.response;
  }

  respond(requestId: string, response: Fields): Promise<void> {
    return this.#write(controlResponse(requestId, response));
  }

  /**
   * Lets the process go: closes its input, and ends what is left of its tree, waiting so many milliseconds before each
   * stronger word. Resolves once none of it is left.
   */
  async leave(patience: number): Promise<void> {
    this.#child.end();
    const timer = new AbortController();
    await Promise.race([this.#child.exited, pause(patience, timer.signal)]);
    timer.abort();
    await this.stop(patience);
  }

  /** Ends the process and everything that it started. */
  async stop(graceMs?: number): Promise<void> {
    await this.#child.stop(graceMs === undefined ? {} : { graceMs });
    await this.gone;
  }

  async #write(line: Fields): Promise<void> {
    try {
      await this.#child.write(`${JSON.stringify(line)}\n`);
    } catch {
      // The process is going: its end says why, and is told to the listener.
      await this.gone;
    }
  }

  async #read(): Promise<Ended> {
    const reading = this.#readLines();
    const exit = await this.#child.exited;
    const timer = new AbortController();
    await Promise.race([Promise.all([reading, this.#child.closed.catch(() => {})]), pause(DRAIN_MS, timer.signal)]);
    timer.abort();
    const ended: Ended = { code: exit.code, signal: exit.signal, stderr: this.#child.stderr.text() };
    this.over = ended;
    this.listener?.ended(ended);
    this.listener = undefined;
    return ended;
  }

  async #readLines(): Promise<void> {
    try {
      for await (const line of this.#child.lines()) {
        if (this.over !== undefined) return;
        const parsed = parseJsonLine(line);
        if (parsed === undefined) continue;
        if (parsed.kind === "note") {
          this.notes.push(parsed.text);
          if (this.notes.length > 20) this.notes.shift();
          this.listener?.note(parsed.text);
          continue;
        }
        const message = parseMessage(parsed.value);
        if (message.type === "control_response") this.#replies.get(message.request_id)?.(message);
        this.listener?.message(message);
      }
    } catch {
      // A pipe that broke: the end of the process is what is told.
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
