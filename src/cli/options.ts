/** Options and positionals of a command, parsed by Node's own parser, its complaints in our words. */

import { parseArgs, type ParseArgsConfig } from "node:util";
import { nearest } from "../flows/nearest.ts";
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
    found = parseArgs({ args: withNegatives(argv, options), options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(complaint(error as NodeJS.ErrnoException, options), usage);
  }
  const extra = found.positionals[most];
  if (extra !== undefined) throw new UsageError(`'${extra}' is one argument too many`, usage);
  return found;
}

/** `--most -1` is `--most=-1`: no option is a digit, and Node calls it ambiguous. */
function withNegatives(argv: readonly string[], options: Options): string[] {
  const takesOne = (word: string): boolean =>
    Object.entries(options).some(
      ([name, { type, short }]) => type === "string" && (word === `--${name}` || word === `-${short}`),
    );
  const words: string[] = [];
  const end = argv.indexOf("--");
  for (const [at, word] of argv.entries()) {
    const before = argv[at - 1];
    if (before !== undefined && /^-\d/.test(word) && (end === -1 || at < end) && takesOne(before)) {
      words[words.length - 1] = before.startsWith("--") ? `${before}=${word}` : before + word;
    } else words.push(word);
  }
  return words;
}

/** `Unknown option '--x'. To specify…` → `unknown option '--x'`, and the nearest one that there is. */
function complaint({ message, code }: NodeJS.ErrnoException, options: Options): string {
  const [first = message] = message.split(/\.(?:\s|$)/);
  const said = first.charAt(0).toLowerCase() + first.slice(1);
  const [, word = ""] = /'(-[^']*)/.exec(said) ?? [];
  if (code === "ERR_PARSE_ARGS_UNKNOWN_OPTION")
    return (
      said +
      meant(
        word,
        Object.keys(options).map((name) => `--${name}`),
      )
    );
  if (said.endsWith("is ambiguous")) return `${word} needs a value; one that starts with a dash is written ${word}=-…`;
  return said;
}

/** `; did you mean '…'?` where a word is near one that there is. */
export function meant(word: string, known: Iterable<string>): string {
  const near = nearest(word, known);
  return near === undefined ? "" : `; did you mean '${near}'?`;
}
