/**
 * A run as a person watches it: permanent lines on stderr, under them on a terminal a clock line that is redrawn; and
 * each turn's answer on stdout where stdout and stderr are not one terminal.
 */

import { type RunEvent, TOKEN_KINDS, type Tokens, type TurnEvent } from "../sdk/events.ts";
import { isColoured, type Paint, paint } from "./colour.ts";
import { count, lasting, money } from "./figures.ts";
import type { Io } from "./io.ts";
import { printable, printableLine } from "./printable.ts";
import { cutTo, width, wrapped } from "./width.ts";

/** Time as the screen sees it: a test's, or the machine's. */
export interface ScreenClock {
  /** Unix seconds. */
  now(): number;
  /** Calls again and again; returns what ends that. */
  every(ms: number, tick: () => void): () => void;
}

const MACHINE_CLOCK: ScreenClock = {
  now: () => Date.now() / 1_000,
  every(ms, tick) {
    const timer = setInterval(tick, ms).unref();
    return () => clearInterval(timer);
  },
};

const FRAME_MS = 100;
const SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
const ERASE_LINE = "\r\u001b[K";
/** A tool's input may be a whole file: as much of it as a line or two shows. */
const LONGEST_INPUT = 160;
/** How wide a begin line may be where there is no terminal to measure. */
const PLAIN_COLUMNS = 120;

interface OpenTurn {
  readonly agent: string;
  readonly conversation: number;
  /** Unix seconds. */
  readonly since: number;
  /** What the agent said last: its answer, where the result does not differ from it. */
  said: string;
  result: Extract<TurnEvent, { kind: "result" }> | undefined;
}

export class Screen {
  readonly #io: Pick<Io, "stdout" | "stderr">;
  readonly #paint: Paint;
  readonly #clock: ScreenClock;
  /** USD spent by the run so far. */
  readonly #spent: () => number;
  readonly #live: boolean;
  readonly #oneTerminal: boolean;
  readonly #open = new Map<number, OpenTurn>();
  #frame = 0;
  #drawn = false;
  /** Something was printed that did not end its line: the clock would erase it. */
  #midLine = false;
  #stopClock: (() => void) | undefined;

  constructor(setup: {
    readonly io: Pick<Io, "stdout" | "stderr" | "env">;
    readonly spent: () => number;
    readonly clock?: ScreenClock | undefined;
  }) {
    const { io, spent, clock = MACHINE_CLOCK } = setup;
    this.#io = io;
    this.#paint = paint(isColoured(io.stderr, io.env));
    this.#clock = clock;
    this.#spent = spent;
    this.#live = io.stderr.isTTY === true && io.env["TERM"] !== "dumb";
    this.#oneTerminal = io.stderr.isTTY === true && io.stdout.isTTY === true;
  }

  event(event: RunEvent): void {
    switch (event.kind) {
      case "called":
        if (event.call > 0) this.#block("", `▸ ${printableLine(event.flow)} called`, "", this.#paint.dim);
        return;
      case "returned":
        if (event.call > 0) {
          const how = event.how === "done" ? "returned" : event.how;
          this.#block("", `◂ ${printableLine(event.flow)} ${how}`, "", this.#paint.dim);
        }
        return;
      case "opened":
        return;
      default:
        this.#turnEvent(event);
    }
  }

  /** What the flow itself prints, as it is. */
  printed(stream: "stdout" | "stderr", text: string): void {
    if (text === "") return;
    const out = this.#io[stream];
    if (!this.#live || !out.isTTY) {
      out.write(text);
      return;
    }
    this.#erase();
    out.write(text);
    this.#midLine = !text.endsWith("\n");
    this.#draw();
  }

  /** Something that hmz says of the run. */
  note(text: string, style: "plain" | "yellow" | "red" | "dim" = "plain"): void {
    this.#block("", printable(text), "", style === "plain" ? undefined : this.#paint[style]);
  }

  /** Takes the clock off the screen. */
  close(): void {
    this.#open.clear();
    this.#settleClock();
    this.#erase();
  }

  #turnEvent(event: TurnEvent): void {
    const turn = this.#open.get(event.turn);
    const { dim, yellow, red } = this.#paint;
    const inner = "whose" in event && event.whose ? "  " : "";
    switch (event.kind) {
      case "begins": {
        this.#open.set(event.turn, {
          agent: event.agent,
          conversation: event.conversation,
          since: event.at,
          said: "",
          result: undefined,
        });
        this.#begins(event);
        this.#settleClock();
        return;
      }
      case "text":
        if (turn && inner === "") turn.said = event.text;
        this.#block(`${inner}● `, printable(event.text.trim()), inner, undefined, this.#whose(event));
        return;
      case "reasoning":
        this.#block(`${inner}  `, printable(event.text.trim()), inner, (line) => dim(this.#paint.italic(line)));
        return;
      case "tool":
        this.#tool(event, inner);
        return;
      case "tool-ends":
        if (event.text === "") return;
        this.#block(
          `${inner}  `,
          `⎿ ${printableLine(event.text, LONGEST_INPUT)}`,
          `${inner}  `,
          event.failed ? red : dim,
          this.#whose(event),
        );
        return;
      case "subagent":
      case "subagent-ends": {
        const how = event.kind === "subagent" ? "started" : "done";
        const style = (line: string): string => line.replace(new RegExp(`${how}$`), dim(how));
        this.#block("● ", `${printableLine(event.text, LONGEST_INPUT)} ${how}`, "", style, this.#whose(event));
        return;
      }
      case "asks":
        this.#block("", printable(`? ${event.agent} asks: ${event.text.trim()}`), "", yellow);
        return;
      case "notice":
        this.#block("", printable(`! ${event.agent}: ${event.text.trim()}`), "", yellow);
        return;
      case "took":
        return;
      case "result":
        if (turn) turn.result = event;
        this.#answer(event, turn);
        return;
      case "failed":
        // A turn that was stopped did not go wrong: a person pressed ^C, or the run ended.
        this.#block(
          "",
          printable(`✗ ${event.agent}: ${event.text.trim()}`),
          "",
          event.error === "FlowCancelled" ? yellow : red,
        );
        return;
      case "ends":
        this.#open.delete(event.turn);
        this.#settleClock();
        this.#block("  ", footer(event, turn?.result), "", dim);
        return;
      default:
        // A kind that a later release adds: shown as little as it is known.
        event satisfies never;
    }
  }

  #begins(event: Extract<TurnEvent, { kind: "begins" }>): void {
    const parts = [
      `${printable(event.agent)} is working`,
      event.conversation > 1 ? `conversation ${event.conversation}` : "",
      [event.cli, event.model].filter(Boolean).map(printable).join("/"),
      printableLine(event.text, 400),
    ];
    const columns = this.#io.stderr.columns ?? PLAIN_COLUMNS;
    this.#line(this.#paint.dim(cutTo(`● ${parts.filter(Boolean).join(" · ")}`, Math.max(columns - 1, 20))));
  }

  /** The answer: on stdout for whoever reads that, and among the lines where the agent did not just say it. */
  #answer(event: Extract<TurnEvent, { kind: "result" }>, turn: OpenTurn | undefined): void {
    const answer = event.text.trim();
    if (this.#oneTerminal) {
      if (answer !== "" && answer !== turn?.said.trim()) {
        this.#block("● ", printable(answer), "", undefined, this.#whose(event));
      }
      return;
    }
    if (event.cli !== "outworlder") this.printed("stdout", `${printable(event.text.trimEnd())}\n`);
  }

  /** A tool's name as it is, what it was given dim. */
  #tool(event: Extract<TurnEvent, { kind: "tool" }>, inner: string): void {
    const { dim } = this.#paint;
    const { name, input } = toolParts(event);
    const style = (line: string, isFirst: boolean): string =>
      isFirst && line.startsWith(name) ? name + dim(line.slice(name.length)) : dim(line);
    this.#block(`${inner}● `, input === "" ? name : `${name}(${input})`, inner, style, this.#whose(event));
  }

  /** Who says it, where it could be somebody else. */
  #whose({ agent, turn }: TurnEvent): string {
    if (this.#open.size < 2) return "";
    const conversation = this.#open.get(turn)?.conversation ?? 1;
    return `${printable(agent)}${conversation > 1 ? ` ${conversation}` : ""}: `;
  }

  /**
   * A text of several lines: a lead and who says it before the first, the others indented under it. On a terminal a line
   * that is too wide goes on under itself. Each line is styled by itself.
   */
  #block(
    lead: string,
    text: string,
    indent: string,
    style: (line: string, isFirst: boolean) => string = (line) => line,
    whose = "",
  ): void {
    const lines = text.split("\n").flatMap((line, at) => {
      if (line === "" && at > 0) return [""];
      const before = at === 0 ? lead + whose : `${indent}  `;
      const own = /^ */.exec(line)?.[0] ?? "";
      const under = `${indent}  ${own.length < 20 ? own : ""}`;
      const columns = this.#columns;
      return wrapped(line, columns - width(before), columns - width(under)).map((part, index) => {
        if (index > 0) return under + style(part, false);
        return at === 0 ? lead + this.#paint.bold(whose) + style(part, true) : before + style(part, false);
      });
    });
    this.#line(lines.join("\n"));
  }

  /** How wide a permanent line may be: a column is left free, and what is no terminal is not measured. */
  get #columns(): number {
    const { isTTY, columns } = this.#io.stderr;
    return isTTY && columns ? Math.max(columns - 1, 20) : Infinity;
  }

  #line(text: string): void {
    const before = this.#midLine ? "\n" : this.#drawn ? ERASE_LINE : "";
    this.#midLine = false;
    this.#drawn = false;
    // One write: the clock does not flicker, and lines of two writers do not mix.
    this.#io.stderr.write(`${before}${text}\n${this.#clockLine()}`);
  }

  /** The clock ticks while a turn is under way, and only then. */
  #settleClock(): void {
    if (this.#live && this.#open.size > 0) {
      this.#stopClock ??= this.#clock.every(FRAME_MS, () => {
        this.#frame += 1;
        this.#draw();
      });
      this.#draw();
    } else {
      this.#stopClock?.();
      this.#stopClock = undefined;
    }
  }

  #draw(): void {
    if (this.#midLine) return;
    const line = this.#clockLine();
    if (line !== "") this.#io.stderr.write(`\r${line}\u001b[K`);
  }

  #erase(): void {
    if (this.#drawn) this.#io.stderr.write(ERASE_LINE);
    this.#drawn = false;
  }

  #clockLine(): string {
    if (!this.#live || this.#open.size === 0) return "";
    this.#drawn = true;
    const turns = [...this.#open.values()];
    const [oldest] = turns;
    const who = turns.length === 1 ? `${printable(oldest?.agent ?? "")} is working` : `${turns.length} turns working`;
    const spent = this.#spent();
    // Tenths would only flicker.
    const parts = [
      `${who} ${lasting(Math.floor(this.#clock.now() - (oldest?.since ?? 0)))}`,
      spent > 0 ? money(spent) : "",
    ];
    const spinner = SPINNER[this.#frame % SPINNER.length] ?? "";
    // A column is left free: a terminal wraps when its last one is written.
    const columns = Math.max(1, (this.#io.stderr.columns ?? 80) - 1);
    const text = cutTo(`${spinner} ${parts.filter(Boolean).join(" · ")}`, columns);
    return this.#paint.cyan(text.slice(0, 1)) + this.#paint.dim(text.slice(1));
  }
}

function toolParts({ tool, text }: Extract<TurnEvent, { kind: "tool" }>): { name: string; input: string } {
  // A tool of an MCP server is called by its last part where a harness says it so.
  const short = tool.slice(tool.lastIndexOf("__") + 1).replace(/^_/, "");
  const name = printableLine(text.startsWith(tool) || !text.startsWith(short) ? tool : short, 80);
  let input = printableLine(text, LONGEST_INPUT + tool.length);
  if (input.startsWith(name)) input = input.slice(name.length).trim();
  // `Name(input)`, `Name: input` and `Name input` are all said by one harness or another.
  input = /^\((?<inner>.*)\)$/.exec(input)?.groups?.["inner"] ?? input.replace(/^:\s*/, "");
  return { name, input: printableLine(input, LONGEST_INPUT) };
}

function footer(
  { agent, seconds, model }: Extract<TurnEvent, { kind: "ends" }>,
  result: Extract<TurnEvent, { kind: "result" }> | undefined,
): string {
  const models = Object.keys(result?.tokens ?? {});
  return [
    `${printableLine(agent, 80)} worked for ${lasting(seconds)}`,
    ...spentLines(result?.spent ?? {}),
    result?.cost === undefined ? "" : money(result.cost),
    printableLine(models.length === 1 ? (models[0] ?? model) : model, 80),
  ]
    .filter(Boolean)
    .join(" · ");
}

function spentLines(spent: Tokens): string[] {
  return TOKEN_KINDS.flatMap((kind) => {
    const tokens = spent[kind];
    return tokens ? [`${count(tokens)} ${kind.replace("_", " ")}`] : [];
  });
}
