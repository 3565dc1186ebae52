/** `hmz flows`: the flows that can be run here, and what each one needs. */

import { FlowNotFound } from "../flows/errors.ts";
import type { Flow } from "../flows/flow.ts";
import type { FlowSheet, RoleSheet } from "../sdk/flow-sheet.ts";
import type { Flows } from "../sdk/hmz.ts";
import type { ListedFlow } from "../sdk/index.ts";
import { isColoured, paint } from "./colour.ts";
import { type Io, Refusal, UsageError } from "./io.ts";
import { meant, parsed } from "./options.ts";
import { hmzCommand } from "./pasteable.ts";
import { printable, printableLine } from "./printable.ts";
import { table } from "./table.ts";

const USAGE = "usage: hmz flows [show] [FLOW] [--json]";

const HELP = `${USAGE}

Lists the flows that can be run from this directory: those that come with hmz,
the project's own (.hmz/flows, listed as @local/…) and yours (~/.hmz/flows, @user/…).

  FLOW      show one: the agents and environments it needs, its params, and a
            command that runs it. A name, or a path that starts with ./, / or ~
  --json    one JSON object a line

Listing and showing import the flows: what stands outside their functions runs.

Example:
  hmz flows @local/twice
`;

const OPTIONS = {
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

export async function flows(argv: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parsed(argv, { options: OPTIONS, usage: USAGE, most: 2 });
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  const [first, second] = positionals;
  if (first !== "show" && second !== undefined) throw new UsageError(`'${second}' is one argument too many`, USAGE);
  const { Hmz } = await import("../sdk/hmz.ts");
  const shelf = new Hmz({ workspace: io.cwd, env: io.env }).flows;
  // A flow that is called `show` is shown by `hmz flows show show`.
  const name = first === "show" ? second : first;
  if (first === "show" && name === undefined) throw new UsageError("name the flow to show", USAGE);
  if (name === undefined) {
    const { unreadableFlows } = await import("../sdk/unreadable-flows.ts");
    for (const unreadable of unreadableFlows(io.cwd)) io.stderr.write(`hmz flows: ${printable(unreadable)}\n`);
    return list(await shelf.list(), values.json, io);
  }
  const { flowSheet } = await import("../sdk/flow-sheet.ts");
  const sheet = flowSheet(await loaded(shelf, name), name);
  io.stdout.write(values.json ? `${JSON.stringify(sheet)}\n` : shown(sheet, io));
  return 0;
}

/** The flow of a name; where there is none, the one that was probably meant is said. */
async function loaded(shelf: Flows, name: string): Promise<Flow> {
  try {
    return await shelf.load(name);
  } catch (error) {
    // A path is no name: no list holds it.
    if (!(error instanceof FlowNotFound) || /^(?:[./~]|git\+)/.test(name)) throw error;
    const known = (await shelf.list()).map((flow) => flow.name);
    const bare = known.map((name) => name.replace(/^@\w+\//, ""));
    throw new Refusal(`${error.message}${meant(name, [...known, ...bare]) || ";"} hmz flows lists them`, {
      cause: error,
    });
  }
}

function list(found: readonly ListedFlow[], json: boolean, io: Io): number {
  if (json) {
    for (const { name, flowverse, path, description, flow, error } of found) {
      const line = { name, flowverse, path, description, resumable: flow?.resumable, error: error?.message };
      io.stdout.write(`${JSON.stringify(line)}\n`);
    }
    return 0;
  }
  if (found.length === 0) {
    io.stderr.write("there is no flow here yet: `hmz new NAME` writes one\n");
    return 0;
  }
  const style = paint(isColoured(io.stdout, io.env));
  const rows = found.map(({ name, description = "", error }) => [
    printableLine(name),
    error ? `cannot be loaded: ${printableLine(error.message)}` : printableLine(description),
  ]);
  io.stdout.write(
    table(rows, io.stdout, [
      style.bold,
      (text) => (text.startsWith("cannot be loaded: ") ? style.red(text) : style.dim(text)),
    ]),
  );
  return 0;
}

/** A flow for a person. */
function shown(sheet: FlowSheet, io: Io): string {
  const style = paint(isColoured(io.stdout, io.env));
  const lines = [style.bold(printableLine(sheet.name))];
  if (sheet.description !== undefined) lines.push(printable(sheet.description));
  const part = (title: string, rows: readonly string[][]): void => {
    if (rows.length > 0) lines.push("", style.bold(title), table(rows, io.stdout).trimEnd());
  };
  part("agents", sheet.agents.map(roleRow));
  part("environments", sheet.envs.map(roleRow));
  part(
    "params",
    sheet.params.map(({ name, type, required, default: given, description }) => [
      `  ${printableLine(name)}`,
      printableLine(type),
      required ? "required" : `default ${printableLine(JSON.stringify(given) ?? "none", 40)}`,
      printableLine(description),
    ]),
  );
  lines.push("", `budget     ${sheet.budgetRequired ? "required: cost, duration or output_tokens" : "not required"}`);
  lines.push(`resumable  ${sheet.resumable ? "yes: --resume picks up the newest run of it" : "no"}`);
  lines.push("", style.bold("run it"), `  ${printableLine(sheet.example.replace(/^hmz(?= )/, hmzCommand(io.env)))}`);
  return `${lines.join("\n")}\n`;
}

function roleRow({ name, optional, says }: RoleSheet): string[] {
  return [`  ${printableLine(name)}`, printableLine((optional ? ["optional", ...says] : says).join("; "))];
}
