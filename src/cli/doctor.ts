/** `hmz doctor`: what this machine has for hmz, and what is missing. */

import type { Finding, FindingState } from "../sdk/doctor.ts";
import { isColoured, paint } from "./colour.ts";
import type { Io } from "./io.ts";
import { parsed } from "./options.ts";
import { printable } from "./printable.ts";

const USAGE = "usage: hmz doctor [--json]";

const HELP = `${USAGE}

Looks at what this machine has for hmz: the programs it starts, which agents can
work and whether they are signed in, what holds them, where work can be done.
Changes nothing, and reads no secret.

  ok          there, and works
  attention   something will not work, or not as well; what to do stands under it
  missing     hmz cannot do without it

  --json      one JSON object a line

Exit status: 0, or 1 where something is missing.

Example:
  hmz doctor
`;

const OPTIONS = {
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

const TITLES: Readonly<Record<Finding["area"], string>> = {
  base: "this machine",
  agents: "agents",
  safety: "what holds them",
  machines: "machines to work on",
};

export async function doctor(argv: readonly string[], io: Io): Promise<number> {
  const { values } = parsed(argv, { options: OPTIONS, usage: USAGE, most: 0 });
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  const { examine } = await import("../sdk/doctor.ts");
  const findings = await examine({ env: io.env, cwd: io.cwd });
  io.stdout.write(values.json ? findings.map((found) => `${JSON.stringify(found)}\n`).join("") : shown(findings, io));
  return findings.some(({ state }) => state === "missing") ? 1 : 0;
}

function shown(findings: readonly Finding[], io: Io): string {
  const style = paint(isColoured(io.stdout, io.env));
  const colours: Readonly<Record<FindingState, (text: string) => string>> = {
    ok: style.green,
    attention: style.yellow,
    missing: style.red,
  };
  const lines: string[] = [];
  for (const [area, title] of Object.entries(TITLES)) {
    const found = findings.filter((finding) => finding.area === area);
    if (found.length === 0) continue;
    lines.push(style.bold(title));
    for (const { name, state, says, remedy } of found) {
      lines.push(`  ${colours[state](state.padEnd(9))}  ${name.padEnd(13)} ${printable(says)}`);
      if (remedy !== undefined) lines.push(`${" ".repeat(27)}${style.dim(`→ ${printable(remedy)}`)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}
