/** The suite of every agent driver, over the real wire formats: the prompt's script is followed by the model server. */

import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentDriverConformance, type ScriptAct, type ScriptStep } from "../../test/conformance/agent-driver.ts";
import { scripted, type Step } from "../../test/model-server/script.ts";
import { rememberedBy, startModelServer } from "../../test/model-server/server.ts";
import type { AgentDriver } from "../engine/ports.ts";
import { localMachine } from "../machine/local.ts";
import { nativeDriver } from "./driver.ts";

for (const provider of ["anthropic", "openai", "openai-compatible"] as const) {
  agentDriverConformance(`native/${provider}`, async () => {
    const server = await startModelServer();
    const root = await realpath(await mkdtemp(join(tmpdir(), "hmz-loop-")));
    const machine = localMachine();
    const directory = async (name: string): Promise<string> => {
      const path = join(root, name);
      await machine.makeDirectory(path);
      return path;
    };
    const again = (): AgentDriver =>
      nativeDriver({
        model: `${provider}/toy`,
        retries: 0,
        env: {
          ANTHROPIC_API_KEY: "sk-ant-test",
          ANTHROPIC_BASE_URL: server.url,
          OPENAI_API_KEY: "sk-test",
          OPENAI_BASE_URL: `${server.url}/v1`,
        },
      });
    const driver = again();
    return {
      driver,
      place: { machine, workdir: await directory("here") },
      elsewhere: { machine, workdir: await directory("there") },
      can: new Set(["say", "shell", "write", "call", "hang", "spend"]),
      prompt: (steps, words = "") => `${words} ${scripted(steps.map(served))}`.trim(),
      again,
      remembered: () => rememberedBy(server),
      close: async () => {
        await driver.close();
        await server.close();
        await rm(root, { recursive: true, force: true });
      },
    };
  });
}

function served(step: ScriptStep): Step {
  const { input = 1, output = 1 } = step.tokens ?? {};
  return { ...actOf(step), usage: { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 } };
}

function actOf(step: ScriptAct): Step {
  if ("say" in step) return { text: step.say };
  if ("shell" in step) return { sh: step.shell };
  if ("write" in step) return { write: [step.write, step.content] };
  if ("call" in step) return { offered: step.call, input: step.input };
  if ("hang" in step) return { hang: true };
  throw new Error("native has no way of its own to give an object");
}
