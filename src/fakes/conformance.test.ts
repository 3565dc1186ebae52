import { agentDriverConformance, type ScriptStep } from "../../test/conformance/agent-driver.ts";
import { machineConformance } from "../../test/conformance/machine.ts";
import { FakeAgent, type FakeAnswer, FakeEnv, type FakeSession } from "hmz/fakes";

/** Does the steps that a prompt holds, which stand in it between two lines of their own. */
async function acted(prompt: string, { session }: { readonly session: FakeSession }): Promise<FakeAnswer> {
  const steps = JSON.parse(prompt.slice(prompt.lastIndexOf("\u0002") + 1)) as readonly ScriptStep[];
  let answer: FakeAnswer = "";
  for (const step of steps) {
    if ("call" in step) await session.use(step.call, step.input);
    else if ("hang" in step) await new Promise(() => {});
    else answer = "say" in step ? step.say : "give" in step ? step.give : answer;
  }
  return answer;
}

/** What the agent said before its last answer. */
function saidBefore(messages: readonly { readonly role: string; readonly content: unknown }[]): readonly string[] {
  const said = messages.flatMap(({ role, content }) => (role === "assistant" ? [String(content)] : []));
  return said.slice(0, -1);
}

for (const harness of ["claude", "kimi", "pi", "agy", "native"] as const) {
  agentDriverConformance(`a fake of ${harness}`, async () => {
    const machine = new FakeEnv();
    await machine.makeDirectory("/elsewhere");
    const again = (): FakeAgent => new FakeAgent({ harness, reply: acted, namesLate: true });
    const driver = again();
    return {
      driver,
      place: { machine, workdir: "/work" },
      elsewhere: { machine, workdir: "/elsewhere" },
      can: new Set(["say", "give", "call", "hang"] as const),
      prompt: (steps, words = "") => `${words}\u0002${JSON.stringify(steps)}`,
      again,
      remembered: (session) => saidBefore(session.messages ?? []),
      close: () => driver.close(),
    };
  });
}

machineConformance("a fake machine", async () => ({ machine: new FakeEnv(), workdir: "/work", cleanup: () => {} }), {
  real: false,
});
