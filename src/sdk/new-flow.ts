/** Writing a flow of a workspace's own: a small one that works, and its test. */

import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { prepareProject, projectOf } from "../home/project.ts";
import { Refused } from "./refused.ts";

export interface NewFlow {
  /** What `-f` takes. */
  readonly name: string;
  /** Relative to the workspace. */
  readonly flow: string;
  /** Relative to the workspace. */
  readonly test: string;
  /** What else was made, relative to the workspace. */
  readonly made: readonly string[];
}

/** The directory of this copy of hmz, from its sources and from what is built of them. */
const COPY = fileURLToPath(new URL("../../", import.meta.url)).replace(/[\\/]$/, "");

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;

/**
 * Writes `.hmz/flows/<name>/` with a flow and its test.
 *
 * @param workspace Absolute.
 * @throws Refused where the name is none, or taken. Nothing was written then.
 */
export function writeNewFlow(workspace: string, name: string): NewFlow {
  if (!NAME.test(name)) {
    throw new Refused(`'${name}' is not a name for a flow: letters, digits, \`_\` and \`-\`, a letter or digit first`);
  }
  const project = projectOf(workspace);
  const directory = join(project.flows, name);
  for (const path of [directory, ...[".ts", ".js", ".mts", ".mjs"].map((extension) => directory + extension)]) {
    if (existsSync(path)) throw new Refused(`${relative(workspace, path)} is there already: choose another name`);
  }
  const made = prepareProject(project, COPY);
  mkdirSync(directory);
  const flow = join(directory, "index.ts");
  const test = join(directory, "index.test.ts");
  try {
    writeFileSync(flow, flowText(name), { flag: "wx" });
    writeFileSync(test, testText(name), { flag: "wx" });
  } catch (error) {
    // Half a flow would be listed, and its name taken.
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
  return { name, flow: relative(workspace, flow), test: relative(workspace, test), made };
}

/** Makes the links of a workspace's `.hmz` again, as after a fresh clone. Returns what was made. */
export function linkProject(workspace: string): readonly string[] {
  return prepareProject(projectOf(workspace), COPY);
}

function flowText(name: string): string {
  const identifier = identifierOf(name);
  const named = identifier === name ? "" : `    name: ${JSON.stringify(name)},\n`;
  return `/** Does the work, then reads it back and fixes what is wrong. */
import { agent, flow, localEnv, z } from "hmz/flows";

export const ${identifier} = flow(
  {
${named}    agents: { builder: agent() },
    envs: { workspace: localEnv() },
    params: z.object({
      reviews: z.number().int().min(0).max(5).default(1).describe("how often the work is read back"),
    }),
  },
  async (task, { agents: { builder }, envs: { workspace }, params: { reviews } }) => {
    const session = await builder.spawn();
    let said = await builder.run(task, { session, env: workspace });
    for (let review = 0; review < reviews; review += 1) {
      said = await builder.run("Read back what you did. Fix anything that is wrong.", { session, env: workspace });
    }
    return said;
  },
);
`;
}

function testText(name: string): string {
  const identifier = identifierOf(name);
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeAgent, runFake } from "hmz/fakes";
import { ${identifier} } from "./index.ts";

test("the work is done, then read back as often as asked", async () => {
  const builder = new FakeAgent({ reply: ["done", "read back", "read again"] });
  const said = await runFake(${identifier}, "add a --dry-run flag", { agents: { builder }, params: { reviews: 2 } });
  assert.equal(said, "read again");
  assert.equal(builder.prompts.length, 3);
  assert.match(builder.prompts[0] ?? "", /--dry-run/);
});
`;
}

/** What the templates name themselves, and what no variable of a module may be called. */
const TAKEN = new Set(
  (
    "agent flow localEnv z assert test FakeAgent runFake arguments await break case catch class const continue " +
    "debugger default delete do else enum eval export extends false finally for function if implements import in " +
    "instanceof interface let new null package private protected public return static super switch this throw true " +
    "try typeof undefined var void while with yield"
  ).split(" "),
);

/** `two-passes` → `twoPasses`; a name that cannot stand alone gets `Flow`. */
function identifierOf(name: string): string {
  const camel = name.replace(/-+(.?)/g, (_, next: string) => next.toUpperCase());
  const safe = /^\d/.test(camel) ? `flow${camel}` : camel;
  return TAKEN.has(safe) ? `${safe}Flow` : safe;
}
