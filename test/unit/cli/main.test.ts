import assert from "node:assert/strict";
import { test } from "node:test";
import { HELP } from "../../../src/cli/help.ts";
import { typed } from "./in-process.ts";

const COMMANDS = ["demo", "doctor", "epics", "exec", "flows", "new"];

test("hmz alone, help, -h and --help print the help", async () => {
  for (const argv of [[], ["help"], ["-h"], ["--help"]]) {
    assert.deepEqual(await typed(argv), { status: 0, stdout: HELP, stderr: "" });
  }
});

test("the help names every command", () => {
  for (const command of COMMANDS) assert.match(HELP, new RegExp(`^  ${command} `, "m"));
});

for (const argv of [["--help"], ...COMMANDS.map((command) => [command, "--help"])]) {
  test(`hmz ${argv.join(" ")} fits a screen and ends with an example`, async () => {
    const { status, stdout } = await typed(argv);
    assert.equal(status, 0);
    const lines = stdout.trimEnd().split("\n");
    assert.match(lines[0] ?? "", /^usage: hmz /);
    assert.ok(lines.length <= 24, `${lines.length} lines`);
    for (const line of lines) assert.ok(line.length <= 100, line);
    assert.equal(lines.at(-2), "Example:");
    assert.match(lines.at(-1) ?? "", /^ {2}hmz /);
  });
}

test("help of a command is its --help", async () => {
  assert.deepEqual(await typed(["help", "flows"]), await typed(["flows", "--help"]));
  assert.equal((await typed(["help", "nothing"])).status, 2);
});

test("what is no command is refused with the usage, and shown as it was written", async () => {
  const { status, stdout, stderr } = await typed(["run\u001b[2J"]);
  assert.equal(status, 2);
  assert.equal(stdout, "");
  assert.equal(stderr, "usage: hmz <command> …\nhmz: error: there is no command 'run␛[2J'\n");
  assert.match((await typed(["--nothing"])).stderr, /hmz: error: there is no option '--nothing'/);
  assert.equal((await typed(["constructor"])).status, 2);
});

test("--version is the package's", async () => {
  assert.match((await typed(["--version"])).stdout, /^hmz \d+\.\d+\.\d+\n$/);
  assert.equal((await typed(["--version", "now"])).status, 2);
});

for (const command of COMMANDS) {
  test(`hmz ${command} refuses an option that it has not, with its own usage`, async () => {
    const { status, stderr } = await typed([command, "--nothing"]);
    assert.equal(status, 2);
    assert.match(
      stderr,
      new RegExp(`^usage: hmz ${command} .*\\nhmz ${command}: error: unknown option '--nothing'\\n$`),
    );
  });
}

for (const [argv, near] of [
  [["flow"], "flows"],
  [["exce"], "exec"],
  [["help", "epic"], "epics"],
  [["--hepl"], "--help"],
  [["exec", "--agent", "x"], "--agents"],
  [["epics", "--mots", "3"], "--most"],
  [["flows", "--jsno"], "--json"],
  [["new", "--lnk"], "--link"],
] as const) {
  test(`hmz ${argv.join(" ")}: the nearest is said`, async () => {
    const { status, stderr } = await typed(argv);
    assert.equal(status, 2);
    assert.ok(stderr.endsWith(`; did you mean '${near}'?\n`), stderr);
  });
}

test("an option whose value is another option says that it needs one", async () => {
  assert.match(
    (await typed(["epics", "--most", "--json"])).stderr,
    /error: --most needs a value; one that starts with a/,
  );
});
