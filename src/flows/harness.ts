/** What each harness serves: the one table that roles, the engine, the fakes and `hmz doctor` read. */

/** What an agent role may need beyond a plain agent. */
export const AGENT_NEEDS = [
  "goal",
  "loop",
  "steering",
  "permission_request",
  "subagent_start",
  "subagent_stop",
  "ask_user",
  "tools",
  "tool_callbacks",
  "model_callbacks",
] as const;

export type AgentNeed = (typeof AGENT_NEEDS)[number];

/** Where a fork of a session may be taken up: in any workdir, only in its parent's, or nowhere. */
export type Forks = "anywhere" | "in-place" | "never";

/** How much a CLI's own approval ladder lets an agent do. */
export type Rung = "read-only" | "workspace-write" | "auto" | "bypass";

interface HarnessRow<N extends AgentNeed> {
  /** The program's name, as people say it. */
  readonly title: string;
  readonly needs: readonly N[];
  readonly forks: Forks;
  /** Empty where the CLI sets its own. */
  readonly rungs: readonly Rung[];
  /** Whether a pre_tool_use hook can refuse a tool, and not merely hear of it. */
  readonly gatesTools: boolean;
  /** Effort words, hardest first; empty where any word is taken. */
  readonly efforts: readonly string[];
}

function row<const N extends AgentNeed>(harness: HarnessRow<N>): HarnessRow<N> {
  return harness;
}

const EVERY_RUNG = ["read-only", "workspace-write", "auto", "bypass"] as const;

/** One row a harness, keyed by the name that `-a` uses. */
export const HARNESSES = {
  claude: row({
    title: "Claude Code",
    needs: ["goal", "loop", "steering", "permission_request", "subagent_start", "subagent_stop", "ask_user", "tools"],
    forks: "anywhere",
    rungs: EVERY_RUNG,
    gatesTools: true,
    efforts: ["ultracode", "max", "xhigh", "high", "medium", "low"],
  }),
  codex: row({
    title: "Codex",
    needs: ["goal", "steering", "permission_request", "subagent_start", "subagent_stop", "ask_user", "tools"],
    forks: "anywhere",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["ultra", "max", "xhigh", "high", "medium", "low"],
  }),
  "cursor-agent": row({
    title: "Cursor Agent",
    needs: ["subagent_start", "subagent_stop"],
    forks: "never",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["max", "xhigh", "extra-high", "high", "medium", "low", "minimal", "none"],
  }),
  opencode: row({
    title: "opencode",
    needs: ["tools"],
    forks: "in-place",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["xhigh", "high", "medium", "low", "minimal"],
  }),
  mimo: row({
    title: "MiMo Code",
    needs: ["tools"],
    forks: "in-place",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["xhigh", "high", "medium", "low", "minimal"],
  }),
  mcode: row({
    title: "MiniMax Code",
    needs: ["subagent_start", "subagent_stop"],
    forks: "never",
    rungs: ["workspace-write", "auto", "bypass"],
    gatesTools: false,
    efforts: ["max", "xhigh", "high", "medium", "low"],
  }),
  qwen: row({
    title: "Qwen Code",
    needs: ["tools"],
    forks: "in-place",
    rungs: EVERY_RUNG,
    gatesTools: true,
    efforts: ["max", "xhigh", "high", "medium", "low", "none"],
  }),
  kimi: row({
    title: "Kimi Code",
    needs: ["goal", "steering", "permission_request", "ask_user"],
    forks: "anywhere",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["max", "high", "medium", "low", "swarm max", "swarm high", "swarm medium", "swarm low"],
  }),
  grok: row({
    title: "Grok Build",
    needs: ["tools"],
    forks: "in-place",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["xhigh", "high", "medium", "low"],
  }),
  pi: row({
    title: "pi",
    needs: ["steering", "ask_user", "tools"],
    forks: "in-place",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["max", "xhigh", "high", "medium", "low", "minimal", "off"],
  }),
  omp: row({
    title: "Oh My Pi",
    needs: ["steering", "ask_user", "tools"],
    forks: "in-place",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["max", "xhigh", "high", "medium", "low", "minimal", "off"],
  }),
  agy: row({
    title: "Antigravity",
    needs: ["tools"],
    forks: "never",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["high", "medium", "low"],
  }),
  dsh: row({
    title: "DeepSeek Harness",
    needs: ["goal", "tools"],
    forks: "never",
    rungs: ["bypass"],
    gatesTools: false,
    efforts: ["max", "high", "low", "off"],
  }),
  litellm: row({
    title: "a model called directly",
    needs: [],
    forks: "anywhere",
    rungs: EVERY_RUNG,
    gatesTools: false,
    efforts: ["high", "medium", "low", "minimal", "none"],
  }),
  acp: row({
    title: "an added CLI, over the Agent Client Protocol",
    needs: [],
    forks: "in-place",
    rungs: [],
    gatesTools: false,
    efforts: [],
  }),
  native: row({
    title: "the agent loop in this process",
    needs: ["steering", "tools", "tool_callbacks", "model_callbacks"],
    forks: "anywhere",
    rungs: EVERY_RUNG,
    gatesTools: true,
    efforts: ["high", "medium", "low", "minimal", "none"],
  }),
} as const;

/** Which harness an agent is: a coding-agent CLI, a model called directly, or `native`. */
export type Harness = keyof typeof HARNESSES;

/** The needs in a harness's row. */
export type NeedsOf<H extends Harness> = (typeof HARNESSES)[H]["needs"][number];

export const HARNESS_NAMES = Object.freeze(Object.keys(HARNESSES)) as readonly Harness[];

/** Whether a word is the name of a harness. */
export function isHarness(name: string): name is Harness {
  return Object.hasOwn(HARNESSES, name);
}
