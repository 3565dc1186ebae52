/** Paired measuring: each contender is run in turn, round after round, and the medians are set side by side. */

export interface Contender {
  readonly name: string;
  /** Does the work `count` times. */
  readonly run: (count: number) => Promise<void> | void;
  readonly count: number;
}

export interface Figure {
  readonly name: string;
  /** Microseconds for each piece of work: least, median, most. */
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

/** Figures of each contender over `rounds` rounds, after one that warms up. */
export async function paired(contenders: readonly Contender[], rounds = 7): Promise<Figure[]> {
  const taken = contenders.map((): number[] => []);
  for (let round = -1; round < rounds; round++) {
    for (const [index, { run, count }] of contenders.entries()) {
      const start = process.hrtime.bigint();
      await run(count);
      const microseconds = Number(process.hrtime.bigint() - start) / 1_000 / count;
      if (round >= 0) taken[index]?.push(microseconds);
    }
  }
  return contenders.map(({ name }, index) => summary(name, taken[index] ?? []));
}

export function summary(name: string, samples: readonly number[]): Figure {
  const sorted = [...samples].sort((a, b) => a - b);
  return {
    name,
    min: sorted[0] ?? Number.NaN,
    median: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN,
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** Prints figures as a table, each with its ratio to the first. */
export function report(title: string, figures: readonly Figure[], unit = "µs"): void {
  const base = figures[0]?.median ?? 1;
  console.log(`\n${title}`);
  for (const { name, min, median, max } of figures) {
    const cells = [min, median, max].map((value) => value.toFixed(value < 10 ? 2 : 1).padStart(9));
    console.log(`  ${name.padEnd(44)}${cells.join(" ")} ${unit}   ours/this ${(base / median).toFixed(2)}`);
  }
  console.log(`  ${"".padEnd(44)}${["min", "median", "max"].map((word) => word.padStart(9)).join(" ")}`);
}
