/** Whether a stream is coloured, and the few styles that hmz uses. */

/** What of a stream decides. */
export interface MaybeTerminal {
  readonly isTTY?: boolean | undefined;
}

/** Whether a stream is written in colour: NO_COLOR, TERM=dumb, FORCE_COLOR, and last whether it is a terminal. */
export function isColoured(stream: MaybeTerminal, env: Readonly<Record<string, string | undefined>>): boolean {
  if (env["NO_COLOR"]) return false;
  if (env["TERM"] === "dumb") return false;
  const forced = env["FORCE_COLOR"];
  if (forced && forced !== "0") return true;
  return stream.isTTY === true;
}

const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  italic: [3, 23],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

/** One function a style: it wraps a text, or hands it back as it is where the stream is not coloured. */
export type Paint = Readonly<Record<keyof typeof STYLES, (text: string) => string>>;

export function paint(coloured: boolean): Paint {
  return Object.fromEntries(
    Object.entries(STYLES).map(([name, [on, off]]) => [
      name,
      coloured ? (text: string) => (text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`) : (text: string) => text,
    ]),
  ) as unknown as Paint;
}
