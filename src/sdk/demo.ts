/** The demonstration: a small git repository to work in, a flow in it, and agents that need no account. */

import { copyFileSync, cpSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Refused } from "./refused.ts";

export interface Demo {
  /** A fresh git repository with one commit. */
  readonly workspace: string;
  /** As `-f` takes it. */
  readonly flow: string;
  /** A spec for each role. */
  readonly agents: Readonly<Record<"builder" | "reviewer", string>>;
  readonly task: string;
}

const EXAMPLE = fileURLToPath(new URL("../../examples/demo", import.meta.url));

/**
 * Makes the repository in the temporary directory, the scripts of its agents beside it.
 *
 * @param env The environment that git runs in. @throws Refused where there is no git, or it fails.
 */
export async function prepareDemo(env: Readonly<Record<string, string | undefined>>): Promise<Demo> {
  const directory = mkdtempSync(join(tmpdir(), "hmz-demo-"));
  const workspace = join(directory, "titles");
  cpSync(join(EXAMPLE, "project"), workspace, { recursive: true });
  const flow = join(workspace, ".hmz", "flows", "demo");
  mkdirSync(flow, { recursive: true });
  copyFileSync(join(EXAMPLE, "index.ts"), join(flow, "index.ts"));
  for (const script of ["builder.json", "reviewer.json"]) copyFileSync(join(EXAMPLE, script), join(directory, script));
  await git(workspace, env, "init", "--quiet");
  await git(workspace, env, "add", "--all");
  // Under a name of its own: the person's git may have none, or sign what it commits.
  const identity = ["-c", "user.name=hmz demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"];
  await git(workspace, env, ...identity, "commit", "--quiet", "-m", "A test, and nothing that passes it");
  return {
    workspace,
    flow: "demo",
    agents: { builder: "native/scripted/../builder.json", reviewer: "native/scripted/../reviewer.json" },
    task: "Write slug.js so that the test in slug.test.js passes.",
  };
}

async function git(cwd: string, env: Readonly<Record<string, string | undefined>>, ...args: string[]): Promise<void> {
  const { runProgram } = await import("../process/run.ts");
  const whole: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    // Set inside of a git hook, these would make this the hook's repository.
    if (value !== undefined && !name.startsWith("GIT_")) whole[name] = value;
  }
  try {
    const ran = await runProgram({ argv: ["git", ...args], cwd, env: whole });
    if (ran.status !== 0) throw new Refused(`git ${args.at(-1)} failed in ${cwd}: ${ran.stderr.trim()}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new Refused("the demonstration works in a git repository, and git is not on the PATH: install git");
  }
}
