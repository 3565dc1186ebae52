import assert from "node:assert/strict";
import { test } from "node:test";
import { claudeEnvironment } from "./environment.ts";

const given = {
  PATH: "/bin",
  HOME: "/home/person",
  LC_TIME: "C",
  TERM: "xterm",
  https_proxy: "http://proxy",
  XDG_CONFIG_HOME: "/x",
  ANTHROPIC_API_KEY: "k",
  CLAUDE_CONFIG_DIR: "/c",
  CLAUDE_CODE_OAUTH_TOKEN: "t",
  CLAUDECODE: "1",
  CLAUDE_CODE_ENTRYPOINT: "cli",
  CLAUDE_CODE_SESSION_ID: "s",
  CLAUDE_CODE_SSE_PORT: "1",
  HUMANIZE_HOME: "/h",
  HMZ_THING: "1",
  OPENAI_API_KEY: "other",
  AWS_SECRET_ACCESS_KEY: "aws",
  GOOGLE_APPLICATION_CREDENTIALS: "/g",
  NODE_OPTIONS: "--inspect",
  GONE: undefined,
};

test("what the CLI needs is handed on, and nothing else", () => {
  assert.deepEqual(claudeEnvironment(given, { root: false }), {
    PATH: "/bin",
    HOME: "/home/person",
    LC_TIME: "C",
    TERM: "dumb",
    https_proxy: "http://proxy",
    XDG_CONFIG_HOME: "/x",
    ANTHROPIC_API_KEY: "k",
    CLAUDE_CONFIG_DIR: "/c",
    CLAUDE_CODE_OAUTH_TOKEN: "t",
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1",
  });
});

test("a cloud's sign-in goes along only where the CLI is to use that cloud", () => {
  const bedrock = claudeEnvironment({ ...given, CLAUDE_CODE_USE_BEDROCK: "1" }, { root: false });
  assert.equal(bedrock["AWS_SECRET_ACCESS_KEY"], "aws");
  assert.equal(bedrock["GOOGLE_APPLICATION_CREDENTIALS"], undefined);
  const vertex = claudeEnvironment({ ...given, CLAUDE_CODE_USE_VERTEX: "true" }, { root: false });
  assert.equal(vertex["GOOGLE_APPLICATION_CREDENTIALS"], "/g");
  assert.equal(vertex["AWS_SECRET_ACCESS_KEY"], undefined);
  const off = claudeEnvironment({ ...given, CLAUDE_CODE_USE_BEDROCK: "0" }, { root: false });
  assert.equal(off["AWS_SECRET_ACCESS_KEY"], undefined);
});

test("root is told to be in a sandbox", () => {
  assert.equal(claudeEnvironment({}, { root: true })["IS_SANDBOX"], "1");
});
