/** One turn on a live process, from its prompt to its rest. */

import { randomUUID } from "node:crypto";
import type { Answer, TurnHost } from "../../engine/ports.ts";
import { HarnessDropped } from "../../flows/errors.ts";
import { after } from "../../process/timer.ts";
import { Watchdog } from "../../process/watchdog.ts";
import type { ClaudeClient, Listener } from "./client.ts";
import { Narrator, type Told } from "./events.ts";
import { aborted, diedInTurn, succeeded, turnFailure, type Ended, type Heard } from "./failure.ts";
import { fieldsOf, listOf, textOf, type Fields } from "./fields.ts";
import type { Mode } from "./launch.ts";
import { parseUsage, type WireControlRequest, type WireMessage, type WireResult } from "./protocol.ts";
import { answerMcp, isFlowTool } from "./tools.ts";
import type { Meter } from "./usage.ts";

/** How long things may take, in milliseconds. */
export interface Limits {
  /** Silence within a turn. */
  readonly idle: number;
  /** Silence within a turn while a tool runs. */
  readonly tool: number;
  /** From an interrupt to the result that it must bring. */
  readonly interrupt: number;
  /** Silence of the background, once the CLI gave a result. */
  readonly background: number;
  /** From the end of its input to the end of the process, and again from a TERM to a KILL. */
  readonly leave: number;
  /** From the end of the last background task to the next word of the agent. */
  readonly settle: number;
}

export interface TurnOptions {
  readonly client: ClaudeClient;
  readonly host: TurnHost;
  readonly meter: Meter;
  readonly mode: Mode;
  readonly model: string;
  readonly limits: Limits;
  /** The conversation's id, as the CLI tells it. */
  readonly named: (id: string) => void;
  /** The model has answered: the conversation can be resumed under its id. Given the uuid of what the agent said last. */
  readonly landed: (last: string) => void;
  /** The CLI may not run without approvals here. Called once a session, before the answer to it is sent. */
  readonly bypassRefused: () => boolean;
}

export class Turn implements Listener {
  readonly outcome: Promise<Answer>;
  readonly #options: TurnOptions;
  readonly #narrator = new Narrator();
  readonly #watchdog: Watchdog;
  /** The lines sent that the model has not been given yet, by uuid; the text of those that were steered. */
  readonly #pending = new Map<string, string | undefined>();
  /** Tools under way. */
  readonly #running = new Set<string>();
  /** Background tasks and sub-agents under way. */
  readonly #tasks = new Set<string>();
  /** The id of the model call whose answer streams, by who asked for it. */
  readonly #streams = new Map<string, { readonly id: string; readonly model: string }>();
  /** What the flow was told and has not come back from. */
  readonly #telling = new Set<Promise<void>>();
  #resolve: (answer: Answer) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #result: WireResult | undefined;
  #error = "";
  /** The limit of the account that was reached. */
  #limit: Heard["limit"];
  /** Why the turn is being ended before its time. */
  #cutBy: { readonly reason: unknown } | undefined;
  #over = false;
  #callOff: () => void = () => {};
  readonly #onAbort = (): void => this.cut(this.#options.host.signal.reason);

  constructor(options: TurnOptions) {
    this.#options = options;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // It may fail while its prompt is still being written, with nobody waiting for it yet.
    this.outcome.catch(() => {});
    this.#watchdog = new Watchdog({
      limit: options.limits.idle,
      busyLimit: options.limits.tool,
      onSilence: (ms) => void this.#fellSilent(ms),
    });
  }

  /** Sends the prompt. */
  async begin(prompt: string): Promise<void> {
    const { client, host } = this.#options;
    client.listener = this;
    host.signal.addEventListener("abort", this.#onAbort);
    const uuid = randomUUID();
    this.#pending.set(uuid, undefined);
    if (client.over === undefined) await client.say(prompt, uuid);
    else this.ended(client.over);
  }

  /** @returns whether the line will reach the model in this turn. */
  async steer(text: string, queued: boolean): Promise<boolean> {
    if (this.#over || this.#cutBy !== undefined) return false;
    const { client } = this.#options;
    const uuid = randomUUID();
    // Before anything else: a result that comes now is not the turn's last.
    this.#pending.set(uuid, text);
    // With a step under way, an interrupt ends it, its tools included, and the line is what the agent does next.
    if (!queued && this.#result === undefined) await client.request({ subtype: "interrupt" }).catch(() => undefined);
    await client.say(text, uuid);
    return true;
  }

  /** Ends the turn before its time, and rejects with the reason. */
  cut(reason: unknown): void {
    if (this.#over || this.#cutBy !== undefined) return;
    this.#cutBy = { reason };
    const { client, limits } = this.#options;
    // A line that the model does not have yet would start a step of its own after the interrupt.
    if (this.#pending.size > 0 || this.#result !== undefined) return void this.#kill();
    this.#callOff();
    this.#callOff = after(limits.interrupt, () => void this.#kill());
    void client.request({ subtype: "interrupt" }).then(
      (answer) => {
        if (listOf(answer?.["still_queued"]).length > 0) void this.#kill();
      },
      () => void this.#kill(),
    );
  }

  message(message: WireMessage): void {
    if (this.#over) return;
    this.#watchdog.beat();
    for (const told of this.#narrator.tell(message)) this.#tell(told);
    switch (message.type) {
      case "init":
        return this.#begun(message);
      case "assistant":
        return this.#said(message);
      case "user":
        for (const block of message.content) if (block.type === "tool_result") this.#toolEnded(block.tool_use_id);
        return;
      case "stream_usage":
        return this.#streamed(message);
      case "result":
        return this.#gave(message);
      case "control_request":
        return void this.#asked(message.request_id, message.request);
      case "command_lifecycle":
        return this.#lineMoved(message.command_uuid, message.state);
      case "task":
        if (message.subtype === "task_started") this.#tasks.add(message.task_id);
        else if (message.subtype === "task_notification" || TASK_ENDS.has(message.status)) {
          this.#tasksEnded([message.task_id]);
        }
        return;
      case "background_tasks_changed":
        return this.#tasksEnded([...this.#tasks].filter((task) => !message.task_ids.includes(task)));
      case "rate_limit_event":
        if (message.status === "rejected") this.#limit = message;
        return;
      case "notification":
        return this.#hear(this.#options.host.notification(message.text));
      default:
    }
  }

  note(text: string): void {
    if (this.#over) return;
    this.#watchdog.beat();
    this.#options.host.event({ kind: "notice", text: text.slice(0, 400) });
  }

  ended(ended: Ended): void {
    if (this.#over) return;
    const result = this.#result;
    if (this.#cutBy !== undefined) return this.#fail(this.#cutBy.reason);
    if (result !== undefined && succeeded(result)) {
      this.#options.host.event({ kind: "notice", text: "the program ended while its background was still at work" });
      return void this.#finish(result);
    }
    this.#fail(diedInTurn(ended, this.#heard()));
  }

  // ── what it says ──────────────────────────────────────────────────────────────────────────────────────────────────

  #begun(message: Extract<WireMessage, { type: "init" }>): void {
    const { named, mode, model, host, client, bypassRefused } = this.#options;
    // A step starts: what an earlier one of the same turn gave is not the last word.
    this.#result = undefined;
    this.#callOff();
    if (!this.#options.client.tellsLines) this.#pending.clear();
    named(message.session_id);
    if (mode === "bypassPermissions" && message.permissionMode !== mode && bypassRefused()) {
      host.event({
        kind: "notice",
        text: "a policy forbids running without approvals: edits are accepted, and every other request is answered yes",
      });
      void client.request({ subtype: "set_permission_mode", mode: "acceptEdits" }).catch(() => undefined);
    }
    if (model !== "" && !sameModel(model, message.model)) {
      host.event({ kind: "notice", text: `asked for the model ${model}, and ${message.model} answers` });
    }
  }

  #said(message: Extract<WireMessage, { type: "assistant" }>): void {
    if (message.error !== "") {
      this.#error = message.error;
      return;
    }
    this.#spend(message.id, message.model, message.usage);
    if (message.model !== "<synthetic>") {
      // A retry that worked: what failed before it is no failure of the turn.
      this.#error = "";
      this.#options.landed(message.parent_tool_use_id === "" ? message.uuid : "");
    }
    for (const block of message.content) {
      if (block.type !== "tool_use" || this.#running.has(block.id)) continue;
      this.#running.add(block.id);
      this.#watchdog.busy();
    }
  }

  #streamed(message: Extract<WireMessage, { type: "stream_usage" }>): void {
    if (message.id !== "") this.#streams.set(message.parent_tool_use_id, message);
    const stream = this.#streams.get(message.parent_tool_use_id);
    if (stream !== undefined) this.#spend(stream.id, stream.model, parseUsage(message.usage));
  }

  #spend(id: string, model: string, usage: Parameters<Meter["rise"]>[2]): void {
    const risen = this.#options.meter.rise(id, model, usage);
    if (risen !== undefined) this.#options.host.spent(risen);
  }

  #toolEnded(id: string): void {
    if (this.#running.delete(id)) this.#watchdog.idle();
  }

  #gave(result: WireResult): void {
    for (const spend of this.#options.meter.settle(result)) this.#options.host.spent(spend);
    for (const id of this.#running) this.#toolEnded(id);
    this.#result = result;
    if (this.#cutBy !== undefined) return this.#fail(this.#cutBy.reason);
    this.#rest();
  }

  #lineMoved(uuid: string, state: string): void {
    this.#options.client.tellsLines = true;
    if (state === "queued" || !this.#pending.has(uuid)) return;
    const steered = this.#pending.get(uuid);
    this.#pending.delete(uuid);
    if (state !== "started") return this.#rest();
    this.#result = undefined;
    if (steered !== undefined) this.#options.host.event({ kind: "took", text: steered });
  }

  #tasksEnded(ids: readonly string[]): void {
    let ended = false;
    for (const id of ids) ended = this.#tasks.delete(id) || ended;
    if (!ended || this.#tasks.size > 0 || this.#result === undefined) return;
    // The agent hears of it and speaks once more, or, where the CLI has nothing to tell it, does not.
    this.#callOff();
    this.#callOff = after(this.#options.limits.settle, () => this.#rest());
  }

  #tell(told: Told): void {
    const { host } = this.#options;
    if (told.kind === "event") host.event(told.event);
    else if (told.kind === "subagent-started") this.#hear(host.subagentStart(told.subagent, told.task));
    else this.#hear(host.subagentStop(told.subagent, told.said));
  }

  /** What a hook throws fails the turn. */
  #hear(hook: Promise<void>): void {
    const telling: Promise<void> = hook
      .catch((error: unknown) => this.cut(error))
      .finally(() => this.#telling.delete(telling));
    this.#telling.add(telling);
  }

  // ── what it asks ──────────────────────────────────────────────────────────────────────────────────────────────────

  async #asked(id: string, request: WireControlRequest): Promise<void> {
    const { client } = this.#options;
    // Whoever is asked may take their time.
    const life = setInterval(() => this.#watchdog.beat(), Math.max(10, this.#options.limits.idle / 3));
    try {
      await client.respond(id, await this.#answer(request));
    } catch (error) {
      this.cut(error);
      await client.respond(id, request.subtype === "can_use_tool" ? deny("the turn was ended") : {});
    } finally {
      clearInterval(life);
      this.#watchdog.beat();
    }
  }

  async #answer(request: WireControlRequest): Promise<Fields> {
    const { host, mode } = this.#options;
    switch (request.subtype) {
      case "can_use_tool": {
        const { tool_name: tool, input } = request;
        if (tool === "AskUserQuestion") return this.#askUser(input);
        if (mode === "plan" && !isFlowTool(tool)) return deny(`this session may only read: ${tool} was refused`);
        const verdict = await host.permissionRequest(tool, input);
        return verdict.allow ? { behavior: "allow", updatedInput: input } : deny(verdict.reason);
      }
      case "hook_callback": {
        if (request.event !== "PreToolUse") return {};
        const verdict = await host.preToolUse(request.tool_name, request.tool_input);
        if (verdict.allow) return {};
        return {
          hookSpecificOutput: {
            hookEventName: "PreToolUse",
            permissionDecision: "deny",
            permissionDecisionReason: verdict.reason || "refused by a hook",
          },
        };
      }
      case "mcp_message":
        return { mcp_response: await answerMcp(request.message, host.setup.tools) };
      case "unknown":
        return {};
    }
  }

  async #askUser(input: Fields): Promise<Fields> {
    const { host } = this.#options;
    const answers: Record<string, string> = {};
    for (const item of listOf(input["questions"]).map(fieldsOf)) {
      const question = textOf(item["question"]);
      const options = listOf(item["options"]).map((option) => textOf(fieldsOf(option)["label"]));
      const answer = await host.askUser(question, options);
      if (answer !== undefined) answers[question] = answer;
    }
    return Object.keys(answers).length === 0
      ? deny("nobody is there to answer: go on without an answer, on your own judgement")
      : { behavior: "allow", updatedInput: { ...input, answers } };
  }

  // ── how it ends ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends the turn where the last result is in, every line was heard and nothing is left at work. */
  #rest(): void {
    const result = this.#result;
    if (this.#over || result === undefined) return;
    if (this.#options.client.tellsLines ? this.#pending.size > 0 : this.#steersLeft()) return;
    if (this.#tasks.size > 0) {
      this.#callOff();
      this.#callOff = after(this.#options.limits.background, () => {
        this.#tasks.clear();
        this.#options.host.event({ kind: "notice", text: "the turn ended while its background was still at work" });
        this.#rest();
      });
      return;
    }
    if (succeeded(result)) void this.#finish(result);
    else this.#fail(turnFailure(this.#heard()));
  }

  /** Where the CLI does not tell, a step that was cut is followed by the line that it was cut for. */
  #steersLeft(): boolean {
    return this.#result !== undefined && aborted(this.#result) && this.#pending.size > 0;
  }

  async #finish(result: WireResult): Promise<void> {
    this.#release();
    // The hooks that the turn's moments reached are part of it.
    while (this.#telling.size > 0) await Promise.all(this.#telling);
    if (this.#cutBy !== undefined) return this.#reject(this.#cutBy.reason);
    this.#resolve({
      text: this.#narrator.answer(result),
      ...(result.structured_output === undefined ? {} : { structured: result.structured_output }),
    });
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#release();
    this.#reject(error);
  }

  #release(): void {
    const { client, host } = this.#options;
    this.#over = true;
    this.#callOff();
    this.#watchdog.stop();
    host.signal.removeEventListener("abort", this.#onAbort);
    if (client.listener === this) client.listener = undefined;
  }

  async #fellSilent(ms: number): Promise<void> {
    const seconds = Math.round(ms / 1000);
    this.#cutBy ??= {
      reason: new HarnessDropped(`claude: not a word for ${seconds} s in the middle of a turn: it was ended`),
    };
    await this.#kill();
  }

  /** Ends the process; its end then ends the turn. */
  async #kill(): Promise<void> {
    try {
      await this.#options.client.stop();
    } catch (error) {
      this.#fail(error);
    }
  }

  #heard(): Heard {
    return { result: this.#result, error: this.#error, limit: this.#limit };
  }
}

const TASK_ENDS = new Set(["completed", "failed", "stopped", "killed", "cancelled"]);

function deny(message: string): Fields {
  return { behavior: "deny", message: message || "refused by a hook" };
}

/** Whether a model is the one asked for: itself, an alias of it, or it with a date or a window added. */
function sameModel(asked: string, answering: string): boolean {
  const wanted = plain(asked);
  const got = plain(answering);
  return answering === "" || got.includes(wanted) || wanted.includes(got) || ["default", "opusplan"].includes(wanted);
}

function plain(model: string): string {
  return model.toLowerCase().replace(/\[.*\]$/, "");
}
