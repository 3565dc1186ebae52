/** Globs as ripgrep reads them: without a slash it is a file's name anywhere below, with one a path from the top. */

/** `*.{ts,tsx}` → `*.ts`, `*.tsx`: git's pathspecs know no braces. */
export function expandBraces(glob: string): readonly string[] {
  const braces = /^(.*?)\{([^{}]*)\}(.*)$/s.exec(glob);
  if (braces === null) return [glob];
  const [, before = "", inside = "", after = ""] = braces;
  const choices = inside.split(",").flatMap((choice) => expandBraces(`${before}${choice}${after}`));
  return [...new Set(choices)];
}

/** Matches a path relative to the top, its parts joined by `/`. */
export function globPattern(glob: string): RegExp {
  const anchored = glob.replace(/^\.?\//, "");
  const choices = expandBraces(anchored).map((choice) => (choice.includes("/") ? choice : `**/${choice}`));
  return new RegExp(`^(?:${choices.map(patternOf).join("|")})$`, "s");
}

function patternOf(glob: string): string {
  let pattern = "";
  for (let at = 0; at < glob.length; at++) {
    const rest = glob.slice(at);
    const set = /^\[([!^]?)([^\]/]+)\]/.exec(rest);
    if (rest.startsWith("**/")) {
      pattern += "(?:[^/]+/)*";
      at += 2;
    } else if (rest.startsWith("**")) {
      pattern += ".*";
      at += 1;
    } else if (rest.startsWith("*")) pattern += "[^/]*";
    else if (rest.startsWith("?")) pattern += "[^/]";
    else if (set !== null) {
      pattern += `[${set[1] === "" ? "" : "^"}${(set[2] ?? "").replaceAll(/[\\[]/g, "\\$&")}]`;
      at += set[0].length - 1;
    } else pattern += (glob[at] ?? "").replace(/[.*+?^${}()|[\]\\/]/, "\\$&");
  }
  return pattern;
}
