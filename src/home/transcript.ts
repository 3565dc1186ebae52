/** An epic as a text that a person reads. */

import { join } from "node:path";
import { EPIC_FILES } from "./epic.ts";
import type { Epic, EpicAgent, EpicCall } from "./epics.ts";
import { type RecordLine, recordParts } from "./record-lines.ts";

/** Characters of what came of one tool, and of what one was given. */
const MOST_TOOL = 2_000;

/** The text in Markdown, part by part. Turns that went on at once are shown as they went, each named where it goes on. */
export function* transcriptParts(epic: Epic, directory: string): Generator<string> {
  const { began, usage } = epic;
  yield `# ${oneLine(began.flow)}\n\n`;
  yield quoted(began.task);
  const facts = [
    ["epic", epic.name],
    ["flow", began.ref || began.flow],
    ["began", iso(epic.at)],
    [
      "ended",
      `${epic.state}${epic.endedAt === undefined ? "" : `, ${iso(epic.endedAt)}`}${epic.error === undefined ? "" : `: ${epic.error}`}`,
    ],
    ...(usage
      ? [
          [
            "spent",
            `$${usage.cost.toFixed(4)}, ${usage.outputTokens} output tokens, ${usage.seconds.toFixed(1)} s of turns`,
          ],
        ]
      : []),
    ...(began.picked_up === undefined ? [] : [["picked up", began.picked_up]]),
    ...began.agents.map(({ agent, backend, provider, model, effort }) => [
      agent,
      `${backend}${provider ? `@${provider}` : ""}/${model}${effort ? `:${effort}` : ""}`,
    ]),
  ];
  yield `\n${facts.map(([name = "", fact = ""]) => `- ${oneLine(name)}: ${oneLine(fact)}\n`).join("")}\n## Calls\n\n`;
  yield `${callLines(epic.top, "").join("\n")}\n\n## Turns\n`;
  let going = "";
  const seen = new Set<string>();
  for (const { records } of recordParts(join(directory, EPIC_FILES.events))) {
    let text = "";
    for (const event of records) {
      const said = saidBy(event);
      if (said === "") continue;
      const turn = String(event["turn"]);
      if (turn !== going) {
        going = turn;
        const agent = oneLine(textOf(event["agent"])) || "hmz";
        text += `\n### ${agent}, turn ${turn}${seen.has(turn) ? ", continued" : ""}\n\n`;
        seen.add(turn);
      }
      text += said;
      if (event["kind"] === "ends") seen.delete(turn);
    }
    yield text;
  }
}

function* callsUnder(call: EpicCall, indent: string): Generator<string> {
  for (const inner of call.calls) yield* callLines(inner, indent);
}

function callLines(call: EpicCall, indent: string): string[] {
  const how = call.how ?? "did not return";
  const time = call.endedAt === undefined ? "" : `, ${Math.max(0, call.endedAt - call.at).toFixed(1)} s`;
  return [
    `${indent}- ${oneLine(call.flow)}: ${oneLine(how)}${time}`,
    ...call.agents.map((agent) => `${indent}  - ${oneLine(agent.agent)}: ${spentBy(agent)}`),
    ...callsUnder(call, `${indent}  `),
  ];
}

function spentBy({ turns, failed, outputTokens, cost, seconds }: EpicAgent): string {
  return [
    `${turns} turns`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    `${outputTokens} output tokens`,
    ...(cost === undefined ? [] : [`$${cost.toFixed(4)}`]),
    `${seconds.toFixed(1)} s`,
  ].join(", ");
}

function saidBy(event: RecordLine): string {
  const text = textOf(event["text"]);
  const whose = textOf(event["whose"]);
  const who = whose === "" ? "" : ` (sub-agent ${oneLine(whose)})`;
  switch (event["kind"]) {
    case "begins":
      return `prompt:\n\n${quoted(text)}\n`;
    case "text":
      return `said${who}:\n\n${quoted(text)}\n`;
    case "reasoning":
      return `thought${who}:\n\n${quoted(text)}\n`;
    case "tool":
      return `- tool${who}: ${oneLine(text || textOf(event["tool"]))}\n`;
    case "tool-ends":
      return `${event["failed"] === true ? "- it failed" : "- came to"}: ${oneLine(text) || "nothing"}\n`;
    case "subagent":
      return `- sub-agent: ${oneLine(text)}\n`;
    case "subagent-ends":
      return `- the sub-agent is done: ${oneLine(text)}\n`;
    case "result":
      return `\nanswered:\n\n${quoted(text)}\n`;
    case "failed":
      return `\nfailed: ${oneLine(`${textOf(event["error"])}: ${text}`)}\n`;
    case "asks":
    case "took":
    case "notice":
      return `- ${textOf(event["kind"])}: ${oneLine(text)}\n`;
    default:
      return "";
  }
}

/** As a quotation, so that nothing in it is a heading of ours. */
function quoted(text: string): string {
  return `${printable(text.trimEnd())
    .split("\n")
    .map((line) => `> ${line}`.trimEnd())
    .join("\n")}\n`;
}

function oneLine(text: string): string {
  const line = printable(text.slice(0, 2 * MOST_TOOL))
    .replace(/\s+/g, " ")
    .trim();
  return line.length > MOST_TOOL ? `${line.slice(0, MOST_TOOL)}…` : line;
}

// Control characters but \n and \t, and what reorders what a person reads.
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Control characters are shown, not obeyed: the text is read in a terminal too. */
function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(UNPRINTABLE, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

function iso(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
