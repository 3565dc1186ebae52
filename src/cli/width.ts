/** How many columns of a terminal a text takes. */

/** Marks that are drawn over the character before them, joiners and variation selectors. */
const NO_WIDTH = /^(?:\p{Mn}|\p{Me}|[\u200b-\u200d])$/u;
/** What East Asian fonts and emoji take two columns for. */
const TWO_WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]$/u;

function columnsOf(character: string): number {
  if (character < "\u0300") return 1;
  if (NO_WIDTH.test(character)) return 0;
  return TWO_WIDE.test(character) ? 2 : 1;
}

/** Of one line without escape sequences. */
export function width(line: string): number {
  let columns = 0;
  for (const character of line) columns += columnsOf(character);
  return columns;
}

/** One line cut to a number of columns, an ellipsis counted in. Never longer: a line that wraps cannot be redrawn. */
export function cutTo(line: string, most: number): string {
  let columns = 0;
  let kept = "";
  let keptBeforeLast = "";
  for (const character of line) {
    columns += columnsOf(character);
    if (columns > most) return most < 1 ? "" : `${keptBeforeLast}…`;
    kept += character;
    if (columns <= most - 1) keptBeforeLast = kept;
  }
  return kept;
}

/**
 * One line as several, broken between words, and between characters that are two columns wide: those are written without
 * spaces. A word that is wider than a line is left whole, as a path or an address that a person copies.
 *
 * @param first The columns of the first line. @param others Those of each one after it.
 */
export function wrapped(line: string, first: number, others: number): string[] {
  const lines: string[] = [];
  let kept = "";
  let columns = 0;
  let most = first;
  for (const piece of piecesOf(line)) {
    const word = piece.trimEnd();
    if (kept.trim() !== "" && columns + width(word) > most) {
      lines.push(kept.trimEnd());
      kept = "";
      columns = 0;
      most = others;
    }
    kept += piece;
    columns += width(piece);
  }
  lines.push(kept);
  return lines;
}

/** What a line may be broken after: a word or a wide character, with the spaces behind it; the spaces at its very start. */
function piecesOf(line: string): string[] {
  const pieces: string[] = [];
  let piece = "";
  let before = "";
  for (const character of line) {
    // A mark stays on its character, and so does what a joiner joins to it.
    const isMark = NO_WIDTH.test(character) || VARIATION.test(character);
    const joined = isMark || before === "\u200d";
    const starts = character !== " " && (before === " " || columnsOf(character) === 2 || columnsOf(before) === 2);
    if (piece !== "" && starts && !joined) {
      pieces.push(piece);
      piece = "";
    }
    piece += character;
    before = isMark && character !== "\u200d" ? before : character;
  }
  return piece === "" ? pieces : [...pieces, piece];
}

const VARIATION = /[\ufe00-\ufe0f]/;
