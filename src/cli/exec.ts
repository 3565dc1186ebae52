/** `hmz exec`: one flow to its end, with nobody at a prompt. */

import { BudgetExceeded, FlowCancelled } from "../flows/errors.ts";
import { isTurnEvent, type RunEvent, toJsonEvent } from "../sdk/events.ts";
import type { Run } from "../sdk/run.ts";
import { count, lasting, money } from "./figures.ts";
import { ownOutput } from "./flow-output.ts";
import { type Io, UsageError } from "./io.ts";
import { parsed } from "./options.ts";
import { failureLines } from "./run-failure.ts";
import { Screen } from "./screen.ts";
import { listen } from "./signals.ts";

const USAGE = "usage: hmz exec -f FLOW [-a ROLE=SPEC]… [-p KEY=VALUE]… [OPTION]… TASK";

const HELP = `${USAGE}

Runs one flow to its end. Nobody is asked anything.

  -f, --flow FLOW          the flow: a name, a path, name:flow, git+URL
  -a, --agents ROLE=SPEC   who fills a role: CLI[@ACCOUNT]/MODEL[:EFFORT]
  -e, --envs ROLE=SPEC     where it works: local/DIRECTORY
  -p, --params KEY=VALUE   a param, or the run's budget: budget.cost=5,
                           budget.duration=1h, budget.output_tokens=200k
  --resume                 pick up the flow's newest run that was saved here
  --durable                its state is on disk before anything goes out
  --profile-flow, --profile-environment   record the programs that run
  --json                   one JSON object an event, on stdout
  --                       what follows is the task, whatever it starts with

-a, -e and -p may be repeated, and each takes several, separated by commas.
The run is shown on stderr; answers, and what the flow prints, go to stdout.
^C stops the run and waits until all is released; a second one ends it at once.

Exit status: 0 done, or its budget is spent; 1 the flow failed; 2 refused before
anything ran; 130, 143, 129 stopped by INT, TERM, HUP.

Example:
  hmz exec -f ralph_loop -a agent=claude/sonnet -p budget.cost=5 "fix the tests"
`;

const OPTIONS = {
  flow: { type: "string", short: "f" },
  agents: { type: "string", short: "a", multiple: true, default: [] as string[] },
  envs: { type: "string", short: "e", multiple: true, default: [] as string[] },
  params: { type: "string", short: "p", multiple: true, default: [] as string[] },
  resume: { type: "boolean", default: false },
  durable: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  "profile-flow": { type: "boolean", default: false },
  "profile-environment": { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** How long everything is given to be released after a second ^C. */
const HARD_STOP_MS = 10_000;
/** In place of a failure: the run is done, and what it had to say is lost. */
const OUTPUT_LOST = Symbol("output lost");

/** Characters of what a flow returned that are shown. */
const LONGEST_RESULT = 400;

/** How long what a flow left behind may keep the process after its run. */
const LINGER_MS = 1_000;

export async function exec(argv: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parsed(argv, { options: OPTIONS, usage: USAGE, most: 1 });
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  if (values.flow === undefined) throw new UsageError("-f is needed: which flow to run", USAGE);
  const [task] = positionals;
  if (task === undefined || task.trim() === "") throw new UsageError("a task is needed: what the flow is to do", USAGE);
  const [{ Hmz }, { parseAgents }, { parseEnvs }, { parseParams }] = await Promise.all([
    import("../sdk/hmz.ts"),
    import("../sdk/spec/agents.ts"),
    import("../sdk/spec/envs.ts"),
    import("../sdk/spec/params.ts"),
  ]);
  const { params, budget } = parseParams(values.params);
  const run = new Hmz({ workspace: io.cwd, env: io.env }).run(values.flow, task, {
    agents: texts(parseAgents(values.agents)),
    envs: texts(parseEnvs(values.envs)),
    params,
    budget,
    resume: values.resume,
    durable: values.durable,
    profile: { flow: values["profile-flow"], environment: values["profile-environment"] },
  });
  return follow(run, io, values.json);
}

function texts(specs: Readonly<Record<string, { readonly text: string }>>): Record<string, string> {
  return Object.fromEntries(Object.entries(specs).map(([role, { text }]) => [role, text]));
}

/**
 * Runs a run, shows it, and says how it ended.
 *
 * @throws Refused where it was refused before anything of it ran.
 */
export async function follow(run: Run, io: Io, json: boolean): Promise<number> {
  let lost: string | undefined;
  const output = ownOutput(io, {
    printed: (stream, text) => screen.printed(json ? "stderr" : stream, text),
    lost: (stream, { code, message }) => {
      // Whoever reads has left (`| head`), or the terminal was hung up: they know.
      if (stream === "stdout" && code !== "EPIPE" && code !== "EIO") lost ??= message;
    },
  });
  // With --json, stdout carries records alone, and answers are among them.
  const shown = { stdout: json ? { write: () => true } : output.stdout, stderr: output.stderr, env: io.env };
  const screen: Screen = new Screen({ io: shown, spent: () => run.usage.cost });
  const show = json ? jsonLines(output) : (event: RunEvent) => screen.event(event);
  let turns = 0;
  run.watch((event) => {
    if (event.kind === "begins") turns += 1;
    show(event);
  });
  const ending = new Ending(run, screen);
  const began = Date.now();
  try {
    await run.check();
    const unreadable = run.unreadable();
    if (unreadable !== "") screen.note(`hmz: ${unreadable}`, "yellow");
    const { picksUp } = run;
    if (picksUp) screen.note(`hmz: picks up ${picksUp.epic}`, "dim");
    if (picksUp && picksUp.bad.length > 0) screen.note(`hmz: ${passedOver(picksUp.bad)}`, "yellow");
    const stale = run.stalePrices();
    if (stale !== "") screen.note(`hmz: ${stale}`, "dim");
    await run.start();
    const result = returned(await run.wait());
    if (result !== "") screen.note(`returned ${result}`, "dim");
    return ending.status(lost === undefined ? undefined : OUTPUT_LOST);
  } catch (error) {
    return ending.status({ error });
  } finally {
    // What was cancelled with the run, and nobody waits for, is heard of a moment after it.
    await new Promise((resolve) => setImmediate(resolve));
    ending.release();
    screen.close();
    if (turns > 1) screen.note(summary(run, turns, (Date.now() - began) / 1_000), "dim");
    if (lost !== undefined) screen.note(`hmz: a part of the output could not be written: ${lost}`, "yellow");
    if (run.trouble) screen.note(`hmz: a part of the record could not be written: ${run.trouble.message}`, "yellow");
    if (run.epic !== undefined) screen.note(`record: ${run.epic}`, "dim");
    output.release();
    if (io.stdout === process.stdout) await leaveSoon();
  }
}

function passedOver(lines: readonly number[]): string {
  const some = lines.slice(0, 5).join(", ") + (lines.length > 5 ? ", …" : "");
  return `${lines.length === 1 ? "a line" : `${lines.length} lines`} of its journal could not be read: ${some}`;
}

/** What a flow returned, in a line; `""` for nothing, and for text: an agent's last answer was shown as it came. */
function returned(result: unknown): string {
  if (result === undefined || typeof result === "string") return "";
  try {
    const text = JSON.stringify(result);
    if (text === undefined) return `a ${typeof result}, which no record can hold`;
    return text.length > LONGEST_RESULT ? `${text.slice(0, LONGEST_RESULT)}…` : text;
  } catch (error) {
    return `a value that no record can hold: ${(error as Error).message.split("\n", 1)[0]}`;
  }
}

function summary(run: Run, turns: number, seconds: number): string {
  const { cost, outputTokens } = run.usage;
  return [
    `${turns} turns in ${lasting(seconds)}`,
    outputTokens > 0 ? `${count(outputTokens)} output` : "",
    cost > 0 ? money(cost) : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

function jsonLines({ stdout }: Pick<Io, "stdout">): (event: RunEvent) => void {
  return (event) => {
    // Readers of the stream know twelve kinds; what came of a tool is in the record.
    if (isTurnEvent(event) && event.kind !== "tool-ends") stdout.write(`${JSON.stringify(toJsonEvent(event))}\n`);
  };
}

/**
 * Everything written is handed on; then the process may end. What a flow left open, a timer or a socket, holds it up no
 * longer than a moment: its run is over.
 */
async function leaveSoon(): Promise<void> {
  // The run is over, and its record written: what its code goes on to throw would be shown as a fault of hmz's.
  process.on("unhandledRejection", () => {});
  process.on("uncaughtException", () => {});
  await Promise.all(
    [process.stdout, process.stderr].map(
      (stream) => new Promise<void>((resolve) => void stream.write("", () => resolve())),
    ),
  );
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/** What may end a run from outside its flow's code: signals, and what that code throws where nobody waits for it. */
class Ending {
  readonly #run: Run;
  readonly #screen: Screen;
  readonly #signals: ReturnType<typeof listen>;
  #hard: NodeJS.Timeout | undefined;

  constructor(run: Run, screen: Screen) {
    this.#run = run;
    this.#screen = screen;
    this.#signals = listen({ first: () => this.#stop(), again: () => this.#end() });
    process.on("uncaughtException", this.#crashed);
    process.on("unhandledRejection", this.#forgotten);
    process.on("exit", this.#left);
  }

  release(): void {
    clearTimeout(this.#hard);
    this.#signals.release();
    process.off("uncaughtException", this.#crashed);
    process.off("unhandledRejection", this.#forgotten);
    process.off("exit", this.#left);
  }

  /** Says what went wrong, and what the process exits with. */
  status(failed: { readonly error: unknown } | typeof OUTPUT_LOST | undefined): number {
    if (this.#signals.status !== undefined) return this.#signals.status;
    if (failed === OUTPUT_LOST) return 1;
    if (!failed) return 0;
    const { error } = failed;
    this.#screen.close();
    if (error instanceof BudgetExceeded) {
      this.#screen.note(`hmz: stopped by its budget: ${error.message}`, "yellow");
      return 0;
    }
    // It never went: the command line says why.
    if (this.#run.epic === undefined) throw error;
    for (const [index, line] of failureLines(error).entries()) this.#screen.note(line, index === 0 ? "red" : "dim");
    return 1;
  }

  #stop(): void {
    // Nothing has started that would have to be released, and a module may be importing without end.
    if (this.#run.epic === undefined) process.exit(this.#signals.status ?? 1);
    this.#screen.note("hmz: stopping; everything is released first. ^C again ends it at once", "yellow");
    this.#run.stop();
  }

  #end(): void {
    const status = this.#signals.status ?? 1;
    // Nothing has started that would have to be released.
    if (this.#run.epic === undefined) process.exit(status);
    this.#run.stop();
    this.#hard ??= setTimeout(() => process.exit(status), HARD_STOP_MS);
  }

  /** The flow's code ended the process, and with it a run that was going. */
  readonly #left = (status: number): void => {
    if (this.#run.epic === undefined || this.#signals.status !== undefined) return;
    const error = new Error(`the flow's code ended the process: process.exit(${status})`);
    this.#run.cutShort(error);
    this.#screen.close();
    this.#screen.note(`hmz: ${error.message}`, "red");
    this.#screen.note(`record: ${this.#run.epic}`, "dim");
    process.exitCode = 1;
  };

  /** Thrown in a timer or a listener of the flow's: no call of the flow's can fail with it, so the run does. */
  readonly #crashed = (error: unknown): void => {
    this.#run.fail(error);
  };

  /** A promise that nobody waits for failed. What a stop makes fail is no news. */
  readonly #forgotten = (error: unknown): void => {
    if (error instanceof FlowCancelled || error instanceof BudgetExceeded) return;
    if (error instanceof Error && error.name === "AbortError") return;
    const [first = "", ...others] = failureLines(error);
    this.#screen.note(`${first} (a promise that the flow does not wait for)`, "yellow");
    for (const line of others) this.#screen.note(line, "dim");
  };
}
