/** `hmz demo`: the whole of it at work, with no account and no network. */

import { exec } from "./exec.ts";
import { type Io, UsageError } from "./io.ts";
import { parsed } from "./options.ts";
import { hmzCommand } from "./pasteable.ts";

const USAGE = "usage: hmz demo [--json]";

const HELP = `${USAGE}

Runs a flow of two agents in a fresh git repository, to its end. What the agents
say is scripted, so that it needs no account; what they do is real: files are
written, tests fail and pass, a reviewer reads what is there and sends it back.

  --json   one JSON object an event, on stdout

Example:
  hmz demo
`;

const OPTIONS = {
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

export async function demo(argv: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parsed(argv, { options: OPTIONS, usage: USAGE, most: 0 });
  if (positionals.length > 0) throw new UsageError("the demonstration takes no task", USAGE);
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  const { prepareDemo } = await import("../sdk/demo.ts");
  const { workspace, flow, agents, task } = await prepareDemo(io.env);
  io.stderr.write(`A git repository with a failing test: ${workspace}\n\n`);
  const line = ["-f", flow, "-a", `builder=${agents.builder}`, "-a", `reviewer=${agents.reviewer}`];
  const status = await exec([...line, "-p", "budget.cost=1", ...(values.json ? ["--json"] : []), task], {
    stdout: io.stdout,
    stderr: io.stderr,
    env: io.env,
    cwd: workspace,
  });
  if (status !== 0) return status;
  const hmz = hmzCommand(io.env);
  io.stderr.write(`
What it did:   cd ${workspace} && git status
The flow:      less .hmz/flows/demo/index.ts
The record:    ${hmz} epics show last
The same with Claude Code, from the start:
  git stash -u
  ${hmz} exec -f demo -a builder=claude/sonnet,reviewer=claude/sonnet \\
    -p budget.cost=1 "${task}"
`);
  return 0;
}
