/** Which model a spec names, and how it is reached. The SDKs are heavy: each is loaded when its model is asked for. */

import type { LanguageModel, JSONValue } from "ai";
import type { TokenKind } from "../engine/events.ts";
import { HarnessRefused, HarnessUnrecoverable } from "../flows/errors.ts";

/** A model that speaks the SDK's interface, and not merely the name of one. */
export type Model = Exclude<LanguageModel, string>;

export type Env = Readonly<Record<string, string | undefined>>;

const PROVIDERS = ["anthropic", "openai", "google", "openai-compatible", "scripted"] as const;
type ProviderName = (typeof PROVIDERS)[number];

export interface ModelSpec {
  readonly provider: ProviderName;
  /** The provider's own id of the model; for `scripted`, the script. */
  readonly id: string;
}

/** USD a million tokens, by kind. */
export type Price = { readonly [K in TokenKind]?: number };

type ProviderOptions = Readonly<Record<string, Readonly<Record<string, JSONValue>>>>;

export interface OpenedModel {
  readonly model: Model;
  /** Under which its spending is reported. */
  readonly name: string;
  /** Where the model knows its price itself. */
  readonly price?: Price;
  /** Settings of each call that are the provider's own. */
  readonly providerOptions: ProviderOptions;
  /** Marks where a provider may cache what came before; empty where it needs no mark. */
  readonly cacheMark: ProviderOptions | undefined;
  /** Never to be shown. */
  readonly secrets: readonly string[];
}

/**
 * The model that a spec names: `<provider>/<model>`.
 *
 * @throws HarnessUnrecoverable
 */
export function parseModel(model: string): ModelSpec {
  const slash = model.indexOf("/");
  const provider = PROVIDERS.find((name) => name === model.slice(0, Math.max(slash, 0)));
  const id = model.slice(slash + 1);
  if (provider === undefined || id === "") {
    throw new HarnessUnrecoverable(
      `'${model}' names no model of native: write <provider>/<model>, where the provider is one of ${PROVIDERS.join(", ")}`,
    );
  }
  return { provider, id };
}

export interface ModelSources {
  readonly env: Env;
  /** The file of a script that is named and not a path; `undefined` for a name that it does not know. */
  readonly scripts?: ((name: string) => string | undefined) | undefined;
}

/**
 * Makes a model ready to be called. Nothing is sent yet.
 *
 * @throws HarnessRefused where no key is set. @throws HarnessUnrecoverable where the script cannot be read, or the base
 * URL is missing or no URL.
 */
export async function openModel(spec: ModelSpec, sources: ModelSources): Promise<OpenedModel> {
  const { provider, id } = spec;
  const { env } = sources;
  const name = `${provider}/${id}`;
  switch (provider) {
    case "anthropic": {
      const token = env["ANTHROPIC_AUTH_TOKEN"];
      const apiKey = env["ANTHROPIC_API_KEY"];
      const secret = apiKey || token;
      if (!secret) throw noKey(name, "ANTHROPIC_API_KEY");
      const baseURL = withVersion(baseUrl(env, "ANTHROPIC_BASE_URL", "https://api.anthropic.com"));
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      const anthropic = createAnthropic({ baseURL, ...(apiKey ? { apiKey } : { authToken: secret }) });
      return {
        model: anthropic(id),
        name,
        providerOptions: {},
        cacheMark: { anthropic: { cacheControl: { type: "ephemeral" } } },
        secrets: [secret],
      };
    }
    case "openai": {
      const apiKey = env["OPENAI_API_KEY"];
      if (!apiKey) throw noKey(name, "OPENAI_API_KEY");
      const baseURL = baseUrl(env, "OPENAI_BASE_URL", "https://api.openai.com/v1");
      const { createOpenAI } = await import("@ai-sdk/openai");
      return {
        model: createOpenAI({ baseURL, apiKey })(id),
        name,
        // The conversation is ours to keep: a fork, another account and a server that stores nothing all need it whole.
        providerOptions: { openai: { store: false } },
        cacheMark: undefined,
        secrets: [apiKey],
      };
    }
    case "google": {
      const apiKey = env["GOOGLE_GENERATIVE_AI_API_KEY"] || env["GEMINI_API_KEY"] || env["GOOGLE_API_KEY"];
      if (!apiKey) throw noKey(name, "GOOGLE_GENERATIVE_AI_API_KEY");
      const baseURL = baseUrl(env, "GOOGLE_GENERATIVE_AI_BASE_URL", "https://generativelanguage.googleapis.com/v1beta");
      const { createGoogle } = await import("@ai-sdk/google");
      return {
        model: createGoogle({ baseURL, apiKey })(id),
        name,
        providerOptions: {},
        cacheMark: undefined,
        secrets: [apiKey],
      };
    }
    case "openai-compatible": {
      const baseURL = baseUrl(env, "OPENAI_BASE_URL", undefined);
      if (baseURL === undefined) {
        throw new HarnessUnrecoverable(
          `${name} needs the server's address: set OPENAI_BASE_URL, such as http://127.0.0.1:11434/v1`,
        );
      }
      // Servers on one's own machine often take no key at all.
      const apiKey = env["OPENAI_API_KEY"];
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const compatible = createOpenAICompatible({
        name: "openai-compatible",
        baseURL,
        includeUsage: true,
        ...(apiKey ? { apiKey } : {}),
      });
      return {
        model: compatible(id),
        name,
        providerOptions: {},
        cacheMark: undefined,
        secrets: apiKey ? [apiKey] : [],
      };
    }
    case "scripted": {
      const { scriptedModel } = await import("./scripted-model.ts");
      return scriptedModel(id, sources.scripts);
    }
  }
}

function noKey(model: string, variable: string): HarnessRefused {
  return new HarnessRefused(`${model} needs a key: set ${variable}, or give the agent an account that has one`);
}

function baseUrl<T extends string | undefined>(env: Env, variable: string, usual: T): string | T {
  const url = env[variable];
  if (!url) return usual;
  if (!/^https?:\/\/./.test(url) || !URL.canParse(url)) {
    throw new HarnessUnrecoverable(
      `${variable} is no http or https URL: set it to the provider's address, or unset it`,
    );
  }
  return url.replace(/\/+$/, "");
}

/** The address as Claude Code takes it has no version; the SDK wants one. */
function withVersion(url: string): string {
  return /\/v\d+\w*$/.test(url) ? url : `${url}/v1`;
}
