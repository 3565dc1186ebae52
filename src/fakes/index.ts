/** Testing a flow: the real engine over fakes, without a CLI, a machine, tokens or waiting. */

export { runFake } from "./run-fake.ts";
export type { FakeAgentGiven, FakeEnvGiven, FakeRunOptions } from "./run-fake.ts";
export { FakeAgent } from "./fake-agent.ts";
export type { FakeAgentOptions } from "./fake-agent.ts";
export { FakeSession } from "./fake-session.ts";
export type { FakeRequest, FakeSteer, FakeToolUse } from "./fake-session.ts";
export { FakeEnv } from "./fake-env.ts";
export type { FakeCommand, FakeEnvOptions, FakeOutcome, FakeRun } from "./fake-env.ts";
export { FakeOutworlder } from "./fake-outworlder.ts";
export type { FakeOutworlderOptions } from "./fake-outworlder.ts";
export type { Asked, FakeAnswer, Reply, ReplyFunction } from "./reply.ts";
