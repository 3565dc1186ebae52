/**
 * List prices that come with hmz, in USD per million tokens: the standard tier, short prompts. A fetched table, where
 * there is one, replaces them whole. These held on 2026-02-01. A figure that is not certain is left out: an unpriced kind of token adds nothing.
 */

import type { TokenKind } from "../engine/events.ts";

/** Reasoning is billed as output. */
export type PriceKind = Exclude<TokenKind, "reasoning">;

export type Price = { readonly [K in PriceKind]?: number };

function price(input: number, output: number, cacheRead?: number, cacheWrite?: number): Price {
  return {
    input,
    output,
    ...(cacheRead === undefined ? {} : { cache_read: cacheRead }),
    ...(cacheWrite === undefined ? {} : { cache_write: cacheWrite }),
  };
}

const OPUS = price(15, 75, 1.5, 18.75);
const OPUS_FROM_4_5 = price(5, 25, 0.5, 6.25);
const SONNET = price(3, 15, 0.3, 3.75);
const GPT_5 = price(1.25, 10, 0.125);
const GPT_5_2 = price(1.75, 14, 0.175);
const GROK_FAST = price(0.2, 0.5, 0.05);

/** By the vendor's own name of the model. */
export const BUNDLED_PRICES: Readonly<Record<string, Price>> = {
  // Anthropic. Cache writes are those kept for five minutes.
  "claude-opus-4-6": OPUS_FROM_4_5,
  "claude-opus-4-5": OPUS_FROM_4_5,
  "claude-opus-4-1": OPUS,
  "claude-opus-4-0": OPUS,
  "claude-opus-4": OPUS,
  "claude-3-opus": OPUS,
  "claude-sonnet-4-6": SONNET,
  "claude-sonnet-4-5": SONNET,
  "claude-sonnet-4-0": SONNET,
  "claude-sonnet-4": SONNET,
  "claude-3-7-sonnet": SONNET,
  "claude-3-5-sonnet": SONNET,
  "claude-haiku-4-5": price(1, 5, 0.1, 1.25),
  "claude-3-5-haiku": price(0.8, 4, 0.08, 1),
  "claude-3-haiku": price(0.25, 1.25, 0.03, 0.3),
  // OpenAI. It bills no cache writes, and reports none.
  "gpt-5.3-codex": GPT_5_2,
  "gpt-5.2": GPT_5_2,
  "gpt-5.2-codex": GPT_5_2,
  "gpt-5.2-pro": price(21, 168),
  "gpt-5.1": GPT_5,
  "gpt-5.1-codex": GPT_5,
  "gpt-5.1-codex-max": GPT_5,
  "gpt-5.1-codex-mini": price(0.25, 2, 0.025),
  "gpt-5": GPT_5,
  "gpt-5-codex": GPT_5,
  "gpt-5-mini": price(0.25, 2, 0.025),
  "gpt-5-nano": price(0.05, 0.4, 0.005),
  "gpt-5-pro": price(15, 120),
  "gpt-4.1": price(2, 8, 0.5),
  "gpt-4.1-mini": price(0.4, 1.6, 0.1),
  "gpt-4.1-nano": price(0.1, 0.4, 0.025),
  "gpt-4o": price(2.5, 10, 1.25),
  "gpt-4o-mini": price(0.15, 0.6, 0.075),
  o3: price(2, 8, 0.5),
  "o3-mini": price(1.1, 4.4, 0.55),
  "o3-pro": price(20, 80),
  "o4-mini": price(1.1, 4.4, 0.275),
  o1: price(15, 60, 7.5),
  // Google.
  "gemini-3-pro-preview": price(2, 12, 0.2),
  "gemini-3-flash-preview": price(0.5, 3, 0.05),
  "gemini-2.5-pro": price(1.25, 10, 0.125),
  "gemini-2.5-flash": price(0.3, 2.5, 0.03),
  "gemini-2.5-flash-lite": price(0.1, 0.4, 0.01),
  "gemini-2.0-flash": price(0.1, 0.4, 0.025),
  // xAI.
  "grok-4": price(3, 15, 0.75),
  "grok-4-fast": GROK_FAST,
  "grok-4-fast-reasoning": GROK_FAST,
  "grok-4-fast-non-reasoning": GROK_FAST,
  "grok-4-1-fast": GROK_FAST,
  "grok-4-1-fast-reasoning": GROK_FAST,
  "grok-4-1-fast-non-reasoning": GROK_FAST,
  "grok-code-fast-1": price(0.2, 1.5, 0.02),
  "grok-3": price(3, 15, 0.75),
  "grok-3-mini": price(0.3, 0.5, 0.075),
  // Moonshot.
  "kimi-k2.5": price(0.6, 3, 0.1),
  "kimi-k2-thinking": price(0.6, 2.5, 0.15),
  "kimi-k2-thinking-turbo": price(1.15, 8, 0.15),
  "kimi-k2-turbo-preview": price(1.15, 8, 0.15),
  "kimi-k2-0905-preview": price(0.6, 2.5, 0.15),
  // DeepSeek.
  "deepseek-chat": price(0.28, 0.42, 0.028),
  "deepseek-reasoner": price(0.28, 0.42, 0.028),
  // Qwen.
  "qwen3-max": price(1.2, 6),
  "qwen3-coder-plus": price(1, 5),
  "qwen3-coder-flash": price(0.3, 1.5),
  "qwen-plus": price(0.4, 1.2),
};
