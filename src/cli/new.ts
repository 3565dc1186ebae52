/** `hmz new`: writes a flow of one's own, with its test. */

import { type Io, UsageError } from "./io.ts";
import { parsed } from "./options.ts";
import { hmzCommand, nodeCommand } from "./pasteable.ts";

const USAGE = "usage: hmz new NAME | --link";

const HELP = `${USAGE}

Writes a flow that works as it stands, to be changed into yours:

  .hmz/flows/NAME/index.ts        the flow
  .hmz/flows/NAME/index.test.ts   its test, over fakes: no CLI, no tokens, no waiting

Beside them, once: .hmz/package.json and tsconfig.json for the editor, a
.gitignore, and .hmz/node_modules/hmz, a link to this copy of hmz, by which the
editor and node --test find hmz/flows. The link is of this machine alone.

  NAME      letters, digits, _ and -; refused where there is such a flow already
  --link    only make the links again, as after cloning a project that has flows

Example:
  hmz new twice && node --test .hmz/flows/twice/index.test.ts
`;

const OPTIONS = {
  link: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

export async function newFlow(argv: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parsed(argv, { options: OPTIONS, usage: USAGE, most: 1 });
  if (values.help) {
    io.stdout.write(HELP);
    return 0;
  }
  const [name] = positionals;
  if (values.link === (name !== undefined)) throw new UsageError("give a name for the flow, or --link alone", USAGE);
  const { linkProject, writeNewFlow } = await import("../sdk/new-flow.ts");
  if (name === undefined) {
    const made = linkProject(io.cwd);
    io.stdout.write(made.length > 0 ? made.map((path) => `made ${path}\n`).join("") : "the links are there already\n");
    return 0;
  }
  const { flow, test, made, hides } = writeNewFlow(io.cwd, name);
  const hmz = hmzCommand(io.env);
  const other = hides && (hides.flowverse === "user" ? "yours in ~/.hmz/flows" : "the one in the package");
  io.stdout.write(
    [
      `wrote ${flow}`,
      `wrote ${test}`,
      ...made.map((path) => `made  ${path}`),
      ...(hides ? [`Here, ${name} is this flow from now on: it stands before ${other}, which is ${hides.ref}`] : []),
      "",
      "Test it, with no agent:",
      `  ${nodeCommand(io.env)} --test ${test}`,
      "See what it needs:",
      `  ${hmz} flows ${name}`,
      "Run it:",
      `  ${hmz} exec -f ${name} -a builder=claude/sonnet -p budget.cost=5 "add a --dry-run flag"`,
      "",
    ].join("\n"),
  );
  return 0;
}
