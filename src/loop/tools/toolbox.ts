/** The tools that a turn has: the loop's own, as far as its permission goes, and the flow's. */

import { jsonSchema, tool, type JSONSchema7, type ToolSet } from "ai";
import type { ToolOutcome } from "../../engine/around.ts";
import { interruptible } from "../../engine/interruptible.ts";
import type { Place, OfferedTool, Skill } from "../../engine/ports.ts";
import type { Permission } from "../../flows/permission.ts";
import { SkillFiles } from "../skills.ts";
import { editTool } from "./edit.ts";
import { listTool } from "./list.ts";
import { Reach } from "./reach.ts";
import { readTool } from "./read.ts";
import { searchTool } from "./search.ts";
import { shellTool } from "./shell.ts";
import type { LoopTool } from "./tool.ts";
import { writeTool } from "./write.ts";

const OWN: readonly LoopTool[] = [readTool, writeTool, editTool, searchTool, listTool, shellTool];

const LONGEST_LINE = 120;

export class Toolbox {
  /** As the model is offered them. None has an `execute`: the loop runs them, so that hooks and callbacks see each. */
  readonly offered: ToolSet;
  readonly #place: Place;
  readonly #reach: Reach;
  readonly #skills: SkillFiles;
  readonly #own: ReadonlyMap<string, LoopTool>;
  readonly #flows: ReadonlyMap<string, OfferedTool>;

  /** A tool of the flow's with the name of one of the loop's own stands in its place. */
  constructor(place: Place, permission: Permission, offered: readonly OfferedTool[], skills: readonly Skill[] = []) {
    this.#place = place;
    this.#reach = new Reach(place, permission);
    this.#skills = new SkillFiles(skills);
    this.#flows = new Map(offered.map((tool) => [tool.name, tool]));
    const own = OWN.filter(({ name, needs, readsSkills }) => {
      const { local } = permission;
      const allowed = needs === "all" ? local === "all" : local !== "none" || (readsSkills && !this.#skills.none);
      return allowed && !this.#flows.has(name);
    });
    this.#own = new Map(own.map((tool) => [tool.name, tool]));
    this.offered = Object.fromEntries([
      ...own.map(({ name, about, takes }) => [name, tool({ description: about, inputSchema: takes })]),
      ...offered.map(({ name, about, schema }) => [
        name,
        tool({ description: about, inputSchema: jsonSchema(schema as JSONSchema7) }),
      ]),
    ]);
  }

  get names(): readonly string[] {
    return [...this.#own.keys(), ...this.#flows.keys()];
  }

  /**
   * Whether a use of a tool may run beside others. What changes files runs alone and in the order it was asked for: a
   * model that writes a file and runs a command in one step means them in that order.
   */
  besides(name: string): boolean {
    return this.#own.get(name)?.needs !== "all";
  }

  /** One line for people: the tool and what it was given. */
  line(name: string, input: Readonly<Record<string, unknown>>): string {
    const subject = this.#own.get(name)?.subject;
    const given = subject === undefined ? undefined : input[subject];
    const text = typeof given === "string" ? given : subject === undefined ? JSON.stringify(input) : "";
    const [first = "", ...more] = text.trim().split(/[\r\n]+/);
    const line = `${name} ${first === "{}" ? "" : first}${more.length > 0 ? " …" : ""}`.trim();
    return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE - 1)}…` : line;
  }

  /** One line for people: what came of a use of a tool. What a tool merely read says nothing. */
  outcome(name: string, { text, failed }: ToolOutcome): { readonly text: string; readonly failed: boolean } {
    const status = this.#own.get(name) === shellTool ? /^exit status \d+$/m.exec(text.slice(-40))?.[0] : undefined;
    if (status !== undefined) return { text: status, failed: true };
    const telling = failed || !this.#own.has(name) || this.#own.get(name) === shellTool;
    const [first = ""] = telling ? text.trim().split(/[\r\n]+/) : [];
    return { text: first.length > LONGEST_LINE ? `${first.slice(0, LONGEST_LINE - 1)}…` : first, failed };
  }

  /** Runs a tool. Rejects only with the signal's reason; any other failure is what the model reads. */
  async run(name: string, input: unknown, signal: AbortSignal): Promise<ToolOutcome> {
    signal.throwIfAborted();
    const flows = this.#flows.get(name);
    if (flows !== undefined) return interruptible(flows.call(input), signal);
    const own = this.#own.get(name);
    if (own === undefined) {
      return { text: `there is no tool ${name}: the tools are ${this.names.join(", ") || "none"}`, failed: true };
    }
    try {
      const text = await own.run(own.takes.parse(input), {
        place: this.#place,
        reach: this.#reach,
        skills: this.#skills,
        signal,
      });
      return { text, failed: false };
    } catch (error) {
      signal.throwIfAborted();
      return { text: error instanceof Error ? error.message : String(error), failed: true };
    }
  }
}
