/** One HTTP response, as the dialects write it. */

import type { ServerResponse } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Call, ServedTokens, Step } from "./script.ts";

/** What a dialect is asked to say. */
export interface Reply {
  readonly step: Step;
  readonly calls: readonly Call[];
  readonly tokens: ServedTokens;
  readonly model: string;
  readonly stream: boolean;
}

/** The connection was closed, by the script or by the client: nothing more is to be written. */
export class Cut extends Error {}

export class Outlet {
  readonly #response: ServerResponse;
  readonly #step: Step;
  #pieces = 0;
  /** The tokens that the client has been told of. */
  told: ServedTokens | undefined;

  constructor(response: ServerResponse, step: Step) {
    this.#response = response;
    this.#step = step;
  }

  json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
    if (this.#response.destroyed) throw new Cut();
    this.#response.writeHead(status, { "content-type": "application/json", ...this.#step.headers, ...headers });
    this.#response.end(JSON.stringify(body));
  }

  open(): void {
    this.#response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "request-id": "req_scripted",
      "x-request-id": "req_scripted",
      ...this.#step.headers,
    });
    this.#response.flushHeaders();
    if (this.#step.drop === "headers") this.cut();
  }

  event(data: unknown, name = ""): void {
    if (this.#response.destroyed) throw new Cut();
    const body = typeof data === "string" ? data : JSON.stringify(data);
    this.#response.write(`${name === "" ? "" : `event: ${name}\n`}data: ${body}\n\n`);
  }

  end(): void {
    this.#response.end();
  }

  /** Before each piece of text: waits as long as the script says, and cuts where it says. */
  async piece(): Promise<void> {
    if (this.#step.chunkMs !== undefined) await wait(this.#step.chunkMs);
    if (this.#response.destroyed) throw new Cut();
    if (this.#step.drop === "mid" && this.#pieces > 0) this.cut();
    this.#pieces++;
  }

  /** @throws Cut */
  cut(): never {
    this.#response.destroy();
    throw new Cut();
  }
}

let made = 0;

/** An id that no other answer of this process has. */
export function freshId(prefix: string): string {
  made++;
  return `${prefix}${process.pid.toString(36)}${made.toString(36).padStart(6, "0")}`;
}

export const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
  529: "overloaded_error",
};

/** The error that a step with a status is answered with. */
export function errorOf(step: Step): { type: string; message: string; code?: string } {
  const status = step.status ?? 500;
  return {
    type: step.type ?? ERROR_TYPES[status] ?? "api_error",
    message: step.message ?? `scripted ${status}`,
    ...(step.code === undefined ? {} : { code: step.code }),
  };
}
