/** Columns of text, side by side. */

import type { Out } from "./io.ts";
import { cutTo, width } from "./width.ts";

/**
 * Rows as lines: each column as wide as its widest cell, two spaces between, the last one cut to the terminal. On a
 * pipe nothing is cut. Cells are printable, and have no escape sequences: a style is put on with `styles`.
 */
export function table(
  rows: readonly (readonly string[])[],
  out: Out,
  styles: readonly (((text: string) => string) | undefined)[] = [],
): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, width(cell));
  }
  return rows.map((row) => `${line(row, widths, out, styles)}\n`).join("");
}

function line(
  row: readonly string[],
  widths: readonly number[],
  out: Out,
  styles: readonly (((text: string) => string) | undefined)[],
): string {
  let taken = 0;
  const cells = row.map((cell, at) => {
    const last = at === row.length - 1;
    const shown = last && out.isTTY && out.columns ? cutTo(cell, Math.max(12, out.columns - taken)) : cell;
    taken += (widths[at] ?? 0) + 2;
    const padding = last ? "" : " ".repeat((widths[at] ?? 0) - width(shown));
    return (styles[at]?.(shown) ?? shown) + padding;
  });
  return cells.join("  ").trimEnd();
}
