/** What this machine has for hmz, what is missing, and what to do about it. Changes nothing. */

import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { release } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { type Harness, HARNESSES, HARNESS_NAMES } from "../flows/harness.ts";
import { Home, machineDir, userHome } from "../home/paths.ts";
import { leash } from "../process/leash.ts";
import { runProgram } from "../process/run.ts";
import { DRIVEN } from "./drivers.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** `missing`: hmz cannot do without it. `attention`: something will not work, or not as well. */
export type FindingState = "ok" | "attention" | "missing";

export interface Finding {
  readonly area: "base" | "agents" | "safety" | "machines";
  readonly name: string;
  readonly state: FindingState;
  readonly says: string;
  /** What to do about it. */
  readonly remedy?: string;
}

interface Program {
  readonly program: string;
  readonly install?: string;
}

const PROGRAMS: { readonly [H in Harness]?: Program } = {
  claude: { program: "claude", install: "npm install -g @anthropic-ai/claude-code" },
  codex: { program: "codex", install: "npm install -g @openai/codex" },
  "cursor-agent": { program: "cursor-agent" },
  opencode: { program: "opencode", install: "npm install -g opencode-ai" },
  mimo: { program: "mimo" },
  mcode: { program: "mcode" },
  qwen: { program: "qwen", install: "npm install -g @qwen-code/qwen-code" },
  kimi: { program: "kimi" },
  grok: { program: "grok" },
  pi: { program: "pi", install: "npm install -g @earendil-works/pi-coding-agent" },
  omp: { program: "omp" },
  agy: { program: "agy" },
};

/** @param options.cwd Absolute. */
export async function examine({ env, cwd }: { readonly env: Env; readonly cwd: string }): Promise<readonly Finding[]> {
  const places = searched(env);
  const versionOf = (path: string): Promise<string | undefined> => askVersion(path, env, cwd);
  const [git, bash, claudeCode] = await Promise.all([
    tool("git", places, versionOf, "install git: worktrees and snapshots are made with it"),
    tool("bash", places, versionOf, "install bash: environments that need `bash` run their scripts in it"),
    claude(places, env, versionOf),
  ]);
  return [
    node(),
    home(env),
    caches(env),
    git,
    bash,
    claudeCode,
    native(env),
    ...notDriven(places),
    lifeline(),
    fence(),
    { area: "machines", name: "local", state: "ok", says: "environments on this machine" },
    ...otherMachines(places),
  ];
}

function node(): Finding {
  return { area: "base", name: "node", state: "ok", says: `${process.version} (${process.execPath})` };
}

/** The types of /proc and /sys. To root they look as if they could be written. */
const MAKE_NO_DIRECTORY = [0x9fa0, 0x62656572];

function home(env: Env): Finding {
  const { root } = Home.of(env);
  const finding = { area: "base", name: "home" } as const;
  let there = root;
  while (!existsSync(there)) there = join(there, "..");
  try {
    if (!statSync(there).isDirectory()) throw new Error("not a directory");
    accessSync(there, constants.W_OK | constants.X_OK);
    if (MAKE_NO_DIRECTORY.includes(statfsSync(there).type)) throw new Error("it is the kernel's own");
    const says = there === root ? root : `${root}, made by the first run`;
    return { ...finding, state: "ok", says };
  } catch {
    return {
      ...finding,
      state: "missing",
      says: `${root} cannot be written: the record of a run is kept there`,
      remedy: "let yourself write there, or set HUMANIZE_HOME to another directory",
    };
  }
}

function caches(env: Env): Finding {
  try {
    return { area: "base", name: "caches", state: "ok", says: machineDir(env) };
  } catch (error) {
    return { area: "base", name: "caches", state: "attention", says: (error as Error).message };
  }
}

async function tool(
  name: string,
  places: readonly string[],
  versionOf: (path: string) => Promise<string | undefined>,
  remedy: string,
): Promise<Finding> {
  const path = find(name, places);
  if (path === undefined) return { area: "base", name, state: "missing", says: "not found on the PATH", remedy };
  const version = await versionOf(path);
  return version === undefined
    ? { area: "base", name, state: "attention", says: `${path} does not say its version`, remedy }
    : { area: "base", name, state: "ok", says: `${version} (${path})` };
}

async function claude(
  places: readonly string[],
  env: Env,
  versionOf: (path: string) => Promise<string | undefined>,
): Promise<Finding> {
  const finding = { area: "agents", name: "claude" } as const;
  const path = find("claude", places);
  if (path === undefined) {
    const remedy = `${PROGRAMS.claude?.install ?? ""}, then sign in: claude`;
    return { ...finding, state: "attention", says: "Claude Code is not installed", remedy };
  }
  const version = await versionOf(path);
  if (version === undefined) {
    return { ...finding, state: "attention", says: `${path} does not start`, remedy: `run ${path} --version` };
  }
  const signedIn = claudeSignIn(env);
  const says = `${version} (${path})`;
  if (signedIn !== undefined) return { ...finding, state: "ok", says: `${says}, signed in: ${signedIn}` };
  return {
    ...finding,
    state: "attention",
    says: `${says}, no sign-in found`,
    remedy: "run claude once and sign in, or set ANTHROPIC_API_KEY",
  };
}

/** How Claude Code is signed in, as far as it can be seen without reading a secret. */
function claudeSignIn(env: Env): string | undefined {
  for (const name of ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"]) {
    if (env[name]) return name;
  }
  const file = join(env["CLAUDE_CONFIG_DIR"] || join(userHome(env), ".claude"), ".credentials.json");
  if (existsSync(file)) return file;
  // On macOS the sign-in is in the login keychain, which asks the user before it answers.
  return process.platform === "darwin" ? "perhaps, in the login keychain" : undefined;
}

function native(env: Env): Finding {
  const keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"].filter((name) => env[name]);
  const finding = { area: "agents", name: "native" } as const;
  if (keys.length > 0) return { ...finding, state: "ok", says: `models reached with ${keys.join(", ")}` };
  return {
    ...finding,
    state: "attention",
    says: "no key of a model provider is set; scripted models work without one",
    remedy: "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY",
  };
}

/** What is installed and not driven yet, each; what is neither is not worth a line. */
function notDriven(places: readonly string[]): readonly Finding[] {
  return HARNESS_NAMES.flatMap((name) => {
    const program = PROGRAMS[name]?.program;
    if (program === undefined || DRIVEN.includes(name)) return [];
    const path = find(program, places);
    if (path === undefined) return [];
    const says = `${HARNESSES[name].title} is installed (${path}), and this release does not drive it yet`;
    return [{ area: "agents", name, state: "attention", says } as const];
  });
}

function lifeline(): Finding {
  const found = leash();
  const finding = { area: "safety", name: "leash" } as const;
  if ("path" in found) return { ...finding, state: "ok", says: "agents end with hmz, even when it is killed" };
  return {
    ...finding,
    state: "attention",
    says: `${found.missing}; what a killed hmz leaves running is ended by the next run`,
  };
}

function fence(): Finding {
  const finding = { area: "safety", name: "fence", state: "attention" } as const;
  const none = "this release holds no fence around an agent yet";
  if (process.platform !== "linux") return { ...finding, says: none };
  const could = kernelAtLeast(5, 13) && readText("/sys/kernel/security/lsm")?.split(",").includes("landlock");
  const seen = could ? "this kernel could hold one: it has Landlock" : "and this kernel shows no Landlock to hold one";
  return { ...finding, says: `${none}; ${seen} (Linux ${release()})` };
}

function otherMachines(places: readonly string[]): readonly Finding[] {
  return ["ssh", "docker"].flatMap((name) => {
    const path = find(name, places);
    if (path === undefined) return [];
    const says = `installed (${path}); this release opens no environment through it yet`;
    return [{ area: "machines", name, state: "attention", says } as const];
  });
}

function kernelAtLeast(major: number, minor: number): boolean {
  const [, here = 0, part = 0] = (/^(\d+)\.(\d+)/.exec(release()) ?? []).map(Number);
  return here > major || (here === major && part >= minor);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** Where programs are looked for: the PATH, then where installers put them. A relative entry is whoever's it is in. */
function searched(env: Env): readonly string[] {
  return [
    ...(env["PATH"] ?? "").split(delimiter).filter(isAbsolute),
    join(userHome(env), ".local", "bin"),
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/usr/bin",
    "/bin",
  ];
}

function find(program: string, places: readonly string[]): string | undefined {
  return places.map((place) => join(place, program)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The first version that a program prints; `undefined` where it prints none, fails, or takes too long. */
async function askVersion(path: string, env: Env, cwd: string): Promise<string | undefined> {
  const given = Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => Boolean(entry[1])));
  try {
    const ran = await runProgram({
      argv: [path, "--version"],
      cwd,
      env: given,
      timeout: 10_000,
      maxOutput: 65_536,
    });
    if (ran.status !== 0) return undefined;
    return /\d+\.\d+[\w.-]*/.exec(ran.stdout)?.[0];
  } catch {
    return undefined;
  }
}
