/** What the callbacks of a role are given and may answer, held by the compiler: see flow.type-test.ts. */

import { agent, type AgentRole, flow, tool } from "hmz/flows";

const look = tool({ name: "look", about: "looks", call: () => "seen" });

const watched = agent({
  tools: [look],
  callbacks: {
    beforeTool: [({ tool: name, id }) => (name === "look" ? `${id.length}` : undefined), async () => undefined],
    afterTool: [({ result, session, ctx }) => (ctx.usage.cost > 1 ? String(session.usage.cost) : result)],
    beforeModel: [
      ({ request }) => ({ request: { ...request, messages: request.messages.slice(-2) } }),
      () => undefined,
    ],
    afterModel: [async ({ response }) => ({ ...response, text: response.text.trim() })],
    afterRun: [({ said, usage }) => void `${said.length} ${usage.outputTokens.toFixed()}`],
  },
});

// Callbacks bring the needs that they imply, and `afterRun` brings none.
export const needs: AgentRole<"tools" | "tool_callbacks" | "model_callbacks"> = watched;
export const plain: AgentRole<never> = agent({ callbacks: { afterRun: [() => {}] } });
// @ts-expect-error a callback around tools needs tool_callbacks
export const short: AgentRole<"tools"> = agent({ tools: [look], callbacks: { beforeTool: [() => 1] } });

// @ts-expect-error no such list
agent({ callbacks: { beforeRun: [] } });
// @ts-expect-error a list of functions
agent({ callbacks: { beforeTool: () => 1 } });
// @ts-expect-error before a tool there is no result
agent({ callbacks: { beforeTool: [({ result }) => result] } });
// @ts-expect-error before the model there is no response
agent({ callbacks: { beforeModel: [({ response }) => response] } });
// @ts-expect-error a model's answer is a response
agent({ callbacks: { afterModel: [() => "text"] } });
// @ts-expect-error the model is asked with a whole request
agent({ callbacks: { beforeModel: [() => ({ request: { messages: [] } })] } });

const inner = flow({ agents: { a: watched } }, async () => {});
export const outer = flow({ agents: { a: watched, bare: agent() } }, async (_task, { agents }) => {
  await inner("x", { agents: { a: agents.a } });
  // @ts-expect-error an agent whose role declared none of it
  await inner("x", { agents: { a: agents.bare } });
});
