/** `-a`: `<role>=<cli>[@<provider>]/<model>[:<effort>]`. */

import { type Harness, HARNESSES, isHarness } from "../../flows/harness.ts";
import { HarnessUnrecoverable } from "../../flows/errors.ts";
import { Refused } from "../refused.ts";
import { isIdentifier, items } from "./items.ts";

/** What fills an agent role, as it was written. */
export interface AgentSpec {
  readonly harness: Harness;
  /** The account; `""` for the one that the CLI is signed into. */
  readonly provider: string;
  readonly model: string;
  /** `""` where none was given, or `auto`. */
  readonly effort: string;
  /** The spec as it was written, without its role. */
  readonly text: string;
}

/** Other names that a harness goes by on the command line. */
const ALIASES: Readonly<Record<string, Harness>> = {
  antigravity: "agy",
  "claude-code": "claude",
  "cursor-cli": "cursor-agent",
  "deepseek-harness": "dsh",
  "grok-build": "grok",
  grokbuild: "grok",
  "kimi-code": "kimi",
  minimax: "mcode",
  "minimax-code": "mcode",
  mimocode: "mimo",
  "mimo-code": "mimo",
  "qwen-code": "qwen",
};

/** Words of letters joined by `-`, `_` or a space, or nothing. Anything else after a `:` is the model's. */
const EFFORT = /^(?:\p{L}+(?:[-_ ]\p{L}+)*)?$/u;

/**
 * Every occurrence of `-a`, read as one list: specs by role.
 *
 * @throws Refused where one is written wrong, or a role is given twice.
 */
export function parseAgents(values: readonly string[]): Record<string, AgentSpec> {
  const found = new Map<string, AgentSpec>();
  for (const item of values.flatMap((value) => items("-a", value))) {
    const said = item.trim();
    const cut = said.indexOf("=");
    const role = said.slice(0, Math.max(cut, 0)).trim();
    if (role === "") {
      throw new Refused(`-a '${said}': expected <role>=<harness>[@<provider>]/<model>[:<effort>]`);
    }
    const spec = parseAgent(role, said.slice(cut + 1), said);
    if (found.has(role)) throw new Refused(`-a: the role '${role}' is given twice`);
    found.set(role, spec);
  }
  return Object.fromEntries(found);
}

/**
 * What fills one role. `said` is the whole item, for refusals.
 *
 * @throws Refused where it is written wrong.
 */
export function parseAgent(role: string, written: string, said = `${role}=${written}`): AgentSpec {
  if (!isIdentifier(role)) {
    throw new Refused(
      `-a '${said}': '${role}' is not a place a flow could declare: what is written before \`=\` is a key of the record of agents the flow declares, so it is a JavaScript identifier`,
    );
  }
  const text = written.trim();
  const expected = new Refused(`-a '${said}': expected [NAME=]CLI[@PROVIDER]/MODEL[:EFFORT]`);
  const slash = text.indexOf("/");
  if (slash < 0) throw expected;
  const [cli = "", ...after] = text.slice(0, slash).split("@");
  const harness = harnessOf(cli);
  if (!harness) throw expected;
  const provider = after.join("@");
  if (after.length > 0 && provider === "") {
    throw new Refused(`-a '${said}': expected an account after @, as in claude@deepseek/MODEL:EFFORT`);
  }
  const { model, effort } = modelAndEffort(text.slice(slash + 1));
  if (model === "") throw expected;
  return { harness, provider, model, effort, text };
}

function harnessOf(cli: string): Harness | undefined {
  if (Object.hasOwn(ALIASES, cli)) return ALIASES[cli];
  return isHarness(cli) && cli !== "acp" ? cli : undefined;
}

function modelAndEffort(text: string): { model: string; effort: string } {
  const colon = text.lastIndexOf(":");
  if (colon < 0) return { model: text, effort: "" };
  const effort = text.slice(colon + 1);
  if (!EFFORT.test(effort)) return { model: text, effort: "" };
  return { model: text.slice(0, colon), effort: effort === "auto" ? "" : effort };
}

/** Accepted by its harness, and never offered. */
const UNLISTED: ReadonlySet<string> = new Set(["ultracode"]);

/**
 * Refuses what the harness cannot be configured at: an effort off its ladder, an account that it does not have.
 *
 * @throws Refused whose cause is the `HarnessUnrecoverable`.
 */
export function checkAgent({ harness, provider, effort, text }: AgentSpec): void {
  const refuse = (reason: string): never => {
    const cause = new HarnessUnrecoverable(`${text}: ${reason}`);
    throw new Refused(`${cause.name}: ${cause.message}`, { cause });
  };
  if (provider !== "") {
    refuse(
      `no ${harness} account is saved as '${provider}', and this release saves none; leave out '@${provider}' to use the account that ${harness} is signed into`,
    );
  }
  const ladder: readonly string[] = HARNESSES[harness].efforts;
  if (effort !== "" && ladder.length > 0 && !ladder.includes(effort)) {
    const listed = ladder.filter((word) => !UNLISTED.has(word)).join(", ");
    refuse(`'${effort}' is not an effort of ${harness}; one of ${listed}`);
  }
}
