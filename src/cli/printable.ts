/**
 * Text that somebody else wrote, made safe to print.
 *
 * A model's answer, a flow's description or a task may carry escape sequences that clear the screen, rename the
 * window, write to the clipboard or recolour what follows. They are shown, not obeyed.
 */

// Control characters but \n and \t, and the bidirectional overrides, which reorder what a person reads.
// oxlint-disable-next-line no-control-regex
const UNPRINTABLE = /\r\n|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with every control character but newline and tab made visible; a CR LF is a newline. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, visible);
}

function visible(character: string): string {
  if (character === "\r\n") return "\n";
  const code = character.charCodeAt(0);
  // The "control pictures" of Unicode: ␛ for an escape.
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return code < 0x100 ? `\\x${code.toString(16)}` : `\\u${code.toString(16)}`;
}

/** The text on one line, cut to a number of characters, an ellipsis counted in. */
export function printableLine(text: string, most = Infinity): string {
  // No more is looked at than can be shown: a task may be megabytes.
  const head = most === Infinity ? text : text.slice(0, most * 4);
  const line = printable(head).replace(/\s+/g, " ").trim();
  const cut = head.length < text.length;
  if (line.length <= most && !cut) return line;
  const kept = line.slice(0, Math.max(0, most - 1));
  // A pair cut in half prints as a replacement character.
  return `${/[\ud800-\udbff]$/.test(kept) ? kept.slice(0, -1) : kept}…`;
}
