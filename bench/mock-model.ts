/** The AI SDK's own mock model, for the peers. */

import { MockLanguageModelV4 } from "ai/test";

export const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

/** A model that answers `done` at once. */
export const answering = new MockLanguageModelV4({
  doGenerate: async () => ({
    content: [{ type: "text", text: "done" }],
    finishReason: { unified: "stop", raw: undefined },
    usage,
    warnings: [],
  }),
});
