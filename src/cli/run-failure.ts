/** How a run's failure is said. */

import { fileURLToPath } from "node:url";
import { FlowException } from "../flows/errors.ts";
import { printable } from "./printable.ts";

/**
 * The lines of a failure: `hmz: <Class>: <message>`; for an error of the flow's own code, where in the flow it was thrown;
 * for several at once, each of them.
 */
export function failureLines(error: unknown): string[] {
  if (!(error instanceof Error)) return [`hmz: the flow threw ${printable(String(error))}`];
  const lines = [`hmz: ${headline(error)}`];
  // The stack of what hmz refused or a harness failed at is hmz's own; that of a fault in a flow says where the fault is.
  if (!(error instanceof FlowException)) lines.push(...flowFrames(error.stack ?? ""));
  if (error instanceof AggregateError) {
    for (const member of error.errors as unknown[]) {
      lines.push(...failureLines(member).map((line) => `  ${line.replace(/^hmz: /, "")}`));
    }
  }
  if (error.cause instanceof Error && !(error instanceof FlowException)) {
    lines.push(`  caused by ${headline(error.cause)}`);
  }
  return lines;
}

function headline(error: Error): string {
  const said = printable(error.message.trim());
  return said === "" ? error.name : `${error.name}: ${said}`;
}

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));

/** The frames of a stack that are in a flow's own files. */
function flowFrames(stack: string): string[] {
  return stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .map((line) => printable(line.replace(/file:\/\/(\/[^\s)]*)/, (_, path: string) => decoded(path))))
    .filter((line) => line.includes("/") && !/node:|[\\/]node_modules[\\/]/.test(line) && !isOurs(line))
    .map((line) => line.replace(/\?hmz=\d+/, ""));
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Frames of hmz itself; the flows that come with it are flows. */
function isOurs(frame: string): boolean {
  return (
    ["src", "dist"].some((room) => frame.includes(`${PACKAGE}${room}/`)) && !frame.includes(`${PACKAGE}src/builtin/`)
  );
}
