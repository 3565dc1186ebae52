// Runs the real Claude Code and writes down what goes in and out: `node tee.mjs PROGRAM FILE.jsonl [arguments]`.
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [program, file, ...argv] = process.argv.slice(2);
const child = spawn(program, argv, { stdio: ["pipe", "pipe", "inherit"] });
const note = (act) => appendFileSync(file, `${JSON.stringify(act)}\n`);
createInterface({ input: process.stdin })
  .on("line", (line) => {
    note({ in: JSON.parse(line) });
    child.stdin.write(`${line}\n`);
  })
  .on("close", () => child.stdin.end());
createInterface({ input: child.stdout }).on("line", (line) => {
  note({ out: JSON.parse(line) });
  process.stdout.write(`${line}\n`);
});
child.on("exit", (code) => process.exit(code ?? 1));
