/** Options and positionals of a command, parsed by Node's own parser, its complaints in our words. */

import { parseArgs, type ParseArgsConfig } from "node:util";
import { UsageError } from "./io.ts";

type Options = NonNullable<ParseArgsConfig["options"]>;

/**
 * The values and positionals of a command.
 *
 * @param most How many positionals it takes.
 * @throws UsageError, with the command's usage.
 */
export function parsed<const O extends Options>(
  argv: readonly string[],
  { options, usage, most }: { readonly options: O; readonly usage: string; readonly most: number },
): ReturnType<typeof parseArgs<{ args: string[]; options: O; allowPositionals: true; strict: true }>> {
  let found;
  try {
    found = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(complaint(error as Error), usage);
  }
  const extra = found.positionals[most];
  if (extra !== undefined) throw new UsageError(`'${extra}' is one argument too many`, usage);
  return found;
}

/** `Unknown option '--x'. To specify…` → `unknown option '--x'` */
function complaint({ message }: Error): string {
  const [first = message] = message.split(/\.(?:\s|$)/);
  return first.charAt(0).toLowerCase() + first.slice(1);
}
