/**
 * `hmz --version`, and `hmz exec` to the first byte that a CLI receives, as whole processes. Floor: `node -e 0`; peer:
 * importing the AI SDK, which is where an orchestrator written over it begins.
 */

import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { report, summary } from "./measure.ts";

const ROUNDS = 15;
const HMZ = fileURLToPath(new URL("../bin/hmz.js", import.meta.url));
const place = mkdtempSync(join(tmpdir(), "hmz-bench-start-"));

/** Milliseconds from the start of a program to its end. */
function whole(argv: readonly string[]): Promise<number> {
  const start = process.hrtime.bigint();
  return new Promise((resolve, reject) => {
    const child = spawn(argv[0] as string, argv.slice(1), { stdio: "ignore", env });
    child.on("error", reject);
    child.on("exit", () => resolve(Number(process.hrtime.bigint() - start) / 1e6));
  });
}

/** Milliseconds from the start of `hmz exec` until the CLI that it starts has its first byte. */
async function toFirstByte(): Promise<number> {
  const start = process.hrtime.bigint();
  const told = new Promise<number>((resolve) => {
    heard = () => resolve(Number(process.hrtime.bigint() - start) / 1e6);
  });
  const args = ["exec", "-f", "chat", "-a", "assistant=claude/m", "go"];
  const child = spawn(process.execPath, [HMZ, ...args], { stdio: "ignore", env, cwd: place });
  const gone = new Promise((resolve) => child.on("exit", resolve));
  const ms = await told;
  child.kill("SIGKILL");
  await gone;
  return ms;
}

let heard = (): void => {};

/** A CLI that tells a socket of its first byte, by the shortest way that a shell has, and waits. */
function standIn(port: number): void {
  const program = join(place, "claude");
  writeFileSync(program, `#!/bin/bash\nread -r -n 1\nexec 3<>/dev/tcp/127.0.0.1/${port}\nexec cat > /dev/null\n`);
  chmodSync(program, 0o755);
}

const server: Server = createServer((socket) => {
  heard();
  socket.destroy();
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = server.address();
if (address === null || typeof address === "string") throw new Error("no port");
standIn(address.port);

const env = {
  PATH: `${place}:${dirname(process.execPath)}:/usr/bin:/bin`,
  HOME: place,
  HUMANIZE_HOME: join(place, "home"),
};

const contenders: readonly [string, () => Promise<number>][] = [
  ["hmz --version", () => whole([process.execPath, HMZ, "--version"])],
  ["hmz --help", () => whole([process.execPath, HMZ, "--help"])],
  ["hmz exec, to the CLI's first byte", toFirstByte],
  ["floor: node -e 0", () => whole([process.execPath, "-e", "0"])],
  [
    "peer: node, importing the AI SDK",
    () => whole([process.execPath, "-e", `import(${JSON.stringify(import.meta.resolve("ai"))})`]),
  ],
];
const samples = contenders.map((): number[] => []);
for (let round = -1; round < ROUNDS; round++) {
  for (const [index, [, measure]] of contenders.entries()) {
    const ms = await measure();
    if (round >= 0) samples[index]?.push(ms);
  }
}
const figures = contenders.map(([name], index) => summary(name, samples[index] ?? []));
report("start", figures, "ms");
const floor = figures[3]?.median ?? 1;
for (const { name, median } of figures.slice(0, 3))
  console.log(`  ${name}: ${(median / floor).toFixed(2)} × the floor`);
server.close();
rmSync(place, { recursive: true, force: true });
