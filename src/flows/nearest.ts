/** What somebody who wrote a name wrong probably meant. */

/** The known name nearest to a word, where one is near enough that it was probably meant. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const written = word.toLowerCase();
  let best: string | undefined;
  // A third of the letters wrong is another word, and not a slip.
  let least = Math.max(1, Math.floor(written.length / 3)) + 1;
  for (const name of known) {
    const changes = distance(written, name.toLowerCase());
    if (changes < least) {
      best = name;
      least = changes;
    }
  }
  return best;
}

/** How many letters must be put in, taken out, replaced, or swapped with their neighbour, to make one of the other. */
function distance(from: string, to: string): number {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let row = 1; row <= from.length; row++) {
    const line = [row];
    for (let at = 1; at <= to.length; at++) {
      const same = from[row - 1] === to[at - 1];
      let least = Math.min(
        (last[at] as number) + 1,
        (line[at - 1] as number) + 1,
        (last[at - 1] as number) + (same ? 0 : 1),
      );
      if (row > 1 && at > 1 && from[row - 1] === to[at - 2] && from[row - 2] === to[at - 1]) {
        least = Math.min(least, (before[at - 2] as number) + 1);
      }
      line.push(least);
    }
    before = last;
    last = line;
  }
  return last[to.length] as number;
}
