/**
 * A model server that answers what the prompt itself tells it to: the Anthropic Messages, OpenAI Responses and OpenAI
 * Chat Completions dialects, streamed or not, on loopback. What it served is counted, so that what a harness reports can
 * be held against it.
 */

import { appendFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { messagesError, readMessages, sayMessages } from "./anthropic.ts";
import { readChat, sayChat } from "./chat.ts";
import { object, string, type Json } from "./json.ts";
import { Cut, errorOf, Outlet, type Reply } from "./outlet.ts";
import { readResponses, sayResponses } from "./responses.ts";
import {
  callsOf,
  dueStep,
  UNSCRIPTED,
  USUAL_TOKENS,
  type Said,
  type ServedTokens,
  type Step,
  type Tool,
} from "./script.ts";

export type Dialect = "messages" | "responses" | "chat";

/** One request, as it came. */
export interface ModelRequest {
  readonly method: string;
  readonly path: string;
  readonly dialect: Dialect | undefined;
  readonly model: string;
  readonly stream: boolean;
  /** Without those that carry a secret. */
  readonly headers: Readonly<Record<string, string>>;
  readonly conversation: readonly Said[];
  readonly tools: readonly string[];
  readonly body: Json;
}

export interface RecordedRequest extends ModelRequest {
  /** What it was answered; absent for a request that is no model call. */
  readonly step?: Step;
  /** The tokens that the client was told of, as far as the answer came. */
  readonly served?: ServedTokens;
  /** Whether the answer was sent to its end. */
  readonly whole: boolean;
}

export interface ModelServerOptions {
  /** 0 for any free one. */
  readonly port?: number;
  /** A file that each request is appended to, one JSON object a line. */
  readonly log?: string;
  /** The ids that `/models` lists. */
  readonly models?: readonly string[];
  /** Answers a model call whose conversation holds no script. */
  readonly unscripted?: (request: ModelRequest) => Step | undefined;
}

export interface ModelServer {
  /** `http://127.0.0.1:<port>`; Messages under it, the other two under `/v1`. */
  readonly url: string;
  readonly port: number;
  readonly requests: readonly RecordedRequest[];
  /** The tokens served, by model. */
  served(): Readonly<Record<string, ServedTokens>>;
  close(): Promise<void>;
}

const DIALECTS = [
  { dialect: "messages", path: /\/messages$/, read: readMessages, say: sayMessages },
  { dialect: "responses", path: /\/responses$/, read: readResponses, say: sayResponses },
  { dialect: "chat", path: /\/chat\/completions$/, read: readChat, say: sayChat },
] as const;

const SECRETS = new Set(["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"]);

export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const requests: RecordedRequest[] = [];
  const tries = new Map<string, number>();
  const server = createServer((request, response) => {
    response.on("error", () => {});
    void answer(request, response).catch((error: unknown) => {
      if (!(error instanceof Cut)) console.error(error);
      response.destroy();
    });
  });

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = parse(await bodyOf(request));
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const kind = DIALECTS.find((kind) => kind.path.test(path));
    const read: { conversation: readonly Said[]; tools: readonly Tool[] } = kind?.read(body) ?? {
      conversation: [],
      tools: [],
    };
    const asked: ModelRequest = {
      method: request.method ?? "",
      path,
      dialect: kind?.dialect,
      model: string(body["model"]),
      stream: body["stream"] === true,
      headers: harmless(request),
      conversation: read.conversation,
      tools: read.tools.map((tool) => tool.name),
      body,
    };
    const step = kind !== undefined && request.method === "POST" ? choose(asked, tries, options.unscripted) : undefined;
    const out = new Outlet(response, step ?? {});
    const record: RecordedRequest = {
      ...asked,
      ...(step === undefined ? {} : { step }),
      get served() {
        return out.told;
      },
      get whole() {
        return response.writableFinished;
      },
    } as RecordedRequest;
    requests.push(record);
    if (options.log !== undefined) {
      response.once("close", () => appendFileSync(options.log as string, `${JSON.stringify(logged(record))}\n`));
    }
    if (kind === undefined || step === undefined) {
      aside(path, body, out, options.models ?? ["scripted"]);
      return;
    }
    if (step.delay !== undefined) await wait(step.delay);
    if (step.hang === true) return;
    if (step.drop === "before") out.cut();
    if (step.status !== undefined) {
      const error = errorOf(step);
      out.json(
        step.status,
        kind.dialect === "messages" ? messagesError(error) : { error },
        step.retryAfter === undefined ? {} : { "retry-after": String(step.retryAfter) },
      );
      return;
    }
    const reply: Reply = {
      step,
      calls: callsOf(step, read.tools),
      tokens: { ...USUAL_TOKENS, ...step.usage },
      model: asked.model,
      stream: asked.stream,
    };
    await kind.say(reply, out);
  };

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    served: () => totals(requests),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** What the agent of the last request had said before it, in words. */
export function rememberedBy({ requests }: ModelServer): readonly string[] {
  const said = requests.at(-1)?.conversation.filter(({ by }) => by === "assistant") ?? [];
  return said.map(({ text }) => text).filter((text) => text !== "");
}

function choose(asked: ModelRequest, tries: Map<string, number>, unscripted: ModelServerOptions["unscripted"]): Step {
  const due = dueStep(asked.conversation);
  if (due === undefined) return unscripted?.(asked) ?? { text: UNSCRIPTED };
  for (let at = due.at; ; at++) {
    const step = due.steps[at];
    if (step === undefined) return { text: UNSCRIPTED };
    if (step.times === undefined) return step;
    const key = `${at}${due.script}`;
    const tried = (tries.get(key) ?? 0) + 1;
    tries.set(key, tried);
    if (tried <= step.times) return step;
  }
}

/** What is no model call: a list of models, a count of tokens, a route that is not served. */
function aside(path: string, body: Json, out: Outlet, models: readonly string[]): void {
  if (path.endsWith("/models")) {
    const data = models.map((id) => ({
      id,
      object: "model",
      type: "model",
      display_name: id,
      created: 1,
      created_at: "2026-01-01T00:00:00Z",
      owned_by: "scripted",
    }));
    out.json(200, { object: "list", data, has_more: false });
  } else if (path.endsWith("/count_tokens")) {
    out.json(200, { input_tokens: Math.ceil(JSON.stringify(body).length / 4) });
  } else {
    out.json(404, { error: { type: "not_found_error", message: `no route ${path}` } });
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function parse(body: string): Json {
  try {
    return object(JSON.parse(body));
  } catch {
    return {};
  }
}

function harmless(request: IncomingMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(request.headers).flatMap(([name, value]) =>
      SECRETS.has(name) || value === undefined ? [] : [[name, String(value)]],
    ),
  );
}

function logged(record: RecordedRequest): Json {
  const { body: _, conversation, ...rest } = record;
  return { ...rest, served: record.served, whole: record.whole, last: conversation.at(-1)?.text.slice(-300) ?? "" };
}

function totals(requests: readonly RecordedRequest[]): Readonly<Record<string, ServedTokens>> {
  const sums: Record<string, ServedTokens> = {};
  for (const { model, served } of requests) {
    if (served === undefined) continue;
    const sum = sums[model];
    sums[model] =
      sum === undefined
        ? { ...served }
        : {
            input: sum.input + served.input,
            output: sum.output + served.output,
            cacheRead: sum.cacheRead + served.cacheRead,
            cacheWrite: sum.cacheWrite + served.cacheWrite,
            reasoning: sum.reasoning + served.reasoning,
          };
  }
  return sums;
}
