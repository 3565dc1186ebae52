/** A regular expression as models write it, in the POSIX extended syntax that git and grep have everywhere. */

const CLASSES: Readonly<Record<string, string>> = { d: "[:digit:]", s: "[:space:]" };

export function extendedRegex(pattern: string): string {
  let extended = "";
  let inSet = false;
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] ?? "";
    if (char === "\\") {
      const escaped = pattern[++at] ?? "";
      extended += escapedAs(escaped, inSet);
    } else if (inSet) {
      inSet = char !== "]";
      extended += char;
    } else if (char === "[") {
      inSet = true;
      extended += char;
      // A bracket right after the opening, or after its ^, stands for itself.
      if (pattern[at + 1] === "^") extended += pattern[++at] ?? "";
      if (pattern[at + 1] === "]") extended += pattern[++at] ?? "";
    } else if (pattern.startsWith("(?:", at)) {
      extended += "(";
      at += 2;
    } else extended += char;
  }
  return extended;
}

function escapedAs(char: string, inSet: boolean): string {
  const name = char === "w" ? "[:alnum:]_" : CLASSES[char];
  if (name !== undefined) return inSet ? name : `[${name}]`;
  const not = char === "W" ? "[:alnum:]_" : CLASSES[char.toLowerCase()];
  if (not !== undefined && char !== char.toLowerCase() && !inSet) return `[^${not}]`;
  if (char === "t") return "\t";
  // In a set, POSIX takes a backslash for itself.
  return inSet && /[^\w\]\\^-]/.test(char) ? char : `\\${char}`;
}
