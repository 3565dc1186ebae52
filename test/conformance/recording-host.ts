/** A turn's host that writes down what it is told, and answers what it is set to answer. */

import type { HarnessEvent, Tokens } from "../../src/engine/events.ts";
import type { Spend, TurnHost, TurnSetup } from "../../src/engine/ports.ts";

export type HostAnswers = Partial<
  Pick<
    TurnHost,
    | "command"
    | "signal"
    | "preToolUse"
    | "permissionRequest"
    | "notification"
    | "subagentStart"
    | "subagentStop"
    | "askUser"
  >
>;

export class RecordingHost implements TurnHost {
  readonly setup: TurnSetup;
  readonly command: TurnHost["command"];
  readonly signal: AbortSignal;
  readonly names: string[] = [];
  readonly events: HarnessEvent[] = [];
  readonly spends: Spend[] = [];
  /** The moments that a hook could hang on, in their order: `subagent_start general-purpose`. */
  readonly moments: string[] = [];
  readonly #controller = new AbortController();
  readonly #answers: HostAnswers;
  readonly #waiting = new Set<() => void>();

  constructor(setup: TurnSetup, answers: HostAnswers = {}) {
    this.setup = setup;
    this.command = answers.command;
    this.signal = answers.signal ?? this.#controller.signal;
    this.#answers = answers;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  named(id: string): void {
    this.names.push(id);
  }

  event(event: HarnessEvent): void {
    this.events.push(event);
    for (const look of this.#waiting) look();
  }

  spent(spend: Spend): void {
    this.spends.push(spend);
    for (const look of this.#waiting) look();
  }

  preToolUse: TurnHost["preToolUse"] = async (tool, input) => {
    this.moments.push(`pre_tool_use ${tool}`);
    return (await this.#answers.preToolUse?.(tool, input)) ?? { allow: true };
  };

  permissionRequest: TurnHost["permissionRequest"] = async (tool, input) => {
    this.moments.push(`permission_request ${tool}`);
    return (await this.#answers.permissionRequest?.(tool, input)) ?? { allow: true };
  };

  notification: TurnHost["notification"] = async (message) => {
    this.moments.push(`notification ${message}`);
    await this.#answers.notification?.(message);
  };

  subagentStart: TurnHost["subagentStart"] = async (subagent, task) => {
    this.moments.push(`subagent_start ${subagent}`);
    await this.#answers.subagentStart?.(subagent, task);
  };

  subagentStop: TurnHost["subagentStop"] = async (subagent, said) => {
    this.moments.push(`subagent_stop ${subagent}`);
    await this.#answers.subagentStop?.(subagent, said);
  };

  askUser: TurnHost["askUser"] = async (question, options) => {
    this.moments.push(`ask_user ${question}`);
    return this.#answers.askUser?.(question, options);
  };

  /** Resolves once an event of the kind has come, or has come already. */
  heard<K extends HarnessEvent["kind"]>(
    kind: K,
    matching: (event: Extract<HarnessEvent, { kind: K }>) => boolean = () => true,
  ): Promise<Extract<HarnessEvent, { kind: K }>> {
    type Wanted = Extract<HarnessEvent, { kind: K }>;
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.events.find((event): event is Wanted => event.kind === kind && matching(event as Wanted));
        if (found === undefined) return;
        this.#waiting.delete(look);
        resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** Resolves once something was spent. */
  paid(): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.spends.length === 0) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** Spends summed by model; a kind of which nothing was spent is left out. */
export function totalOf(spends: readonly Spend[]): Readonly<Record<string, Tokens>> {
  const sums: Record<string, Record<string, number>> = {};
  for (const { model, tokens } of spends) {
    const sum = (sums[model] ??= {});
    for (const [kind, count] of Object.entries(tokens)) if (count !== 0) sum[kind] = (sum[kind] ?? 0) + count;
  }
  return sums;
}
