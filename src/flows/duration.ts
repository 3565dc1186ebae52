/** Durations as a person writes them: milliseconds as a number, or `90`, `1h30m`, `PT1H30M`, `01:30:00` as text. */

const UNIT_MS = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const;

/** Longer than any run: past it, adding to a wall-clock instant would leave the range of a Date. */
const LONGEST_MS = 999_999_999 * UNIT_MS.d;

type Unit = keyof typeof UNIT_MS;

/**
 * Milliseconds of a duration written as text.
 *
 * Accepted: seconds (`90`, `1.5`); units `w d h m s`, each at most once, decimals allowed (`1h30m`, `2d`); ISO 8601
 * (`PT1H30M`); `HH:MM:SS`.
 *
 * @throws RangeError with one sentence that says what is wrong.
 */
export function parseDuration(text: string): number {
  const said = text.trim();
  if (/^-\s*[\d.p]/i.test(said)) throw new RangeError(`'${said}' is negative`);
  if (/^[+-]?(inf(inity)?|nan)$/i.test(said)) {
    throw new RangeError(`'${said}' is not a valid duration: must be finite and not negative`);
  }
  const ms = seconds(said) ?? clock(said) ?? iso8601(said) ?? units(said);
  if (ms === undefined) {
    throw new RangeError(`'${said}' is not a duration: use seconds, 1h30m, or ISO 8601 like PT1H30M`);
  }
  if (!(ms <= LONGEST_MS)) throw new RangeError(`duration '${said}' is too long`);
  return ms;
}

function seconds(said: string): number | undefined {
  return /^(\d+\.?\d*|\.\d+)$/.test(said) ? Number(said) * 1_000 : undefined;
}

function clock(said: string): number | undefined {
  const parts = /^(\d+):([0-5]?\d):([0-5]?\d(?:\.\d+)?)$/.exec(said);
  if (!parts) return undefined;
  return Number(parts[1]) * UNIT_MS.h + Number(parts[2]) * UNIT_MS.m + Number(parts[3]) * UNIT_MS.s;
}

const DECIMAL = String.raw`\d+(?:\.\d+)?`;
const ISO_8601 = new RegExp(
  `^P(?:(?<w>${DECIMAL})W)?(?:(?<d>${DECIMAL})D)?(?<time>T(?:(?<h>${DECIMAL})H)?(?:(?<m>${DECIMAL})M)?(?:(?<s>${DECIMAL})S)?)?$`,
  "i",
);

function iso8601(said: string): number | undefined {
  const groups = ISO_8601.exec(said)?.groups;
  if (!groups || groups["time"]?.length === 1) return undefined;
  const given = unitNames().filter((unit) => groups[unit] !== undefined);
  if (given.length === 0) return undefined;
  return given.reduce((total, unit) => total + Number(groups[unit]) * UNIT_MS[unit], 0);
}

function units(said: string): number | undefined {
  if (!/^(?:(?:\d+\.?\d*|\.\d+)\s*[wdhms]\s*)+$/i.test(said)) return undefined;
  const seen = new Set<string>();
  let total = 0;
  for (const [, amount, letter] of said.matchAll(/(\d+\.?\d*|\.\d+)\s*([wdhms])/gi)) {
    const unit = (letter as string).toLowerCase() as Unit;
    if (seen.has(unit)) throw new RangeError(`'${said}' names a unit twice`);
    seen.add(unit);
    total += Number(amount) * UNIT_MS[unit];
  }
  return total;
}

function unitNames(): Unit[] {
  return Object.keys(UNIT_MS) as Unit[];
}

/** Milliseconds of a duration given as a number of them, or as text. */
export function milliseconds(duration: number | string): number {
  if (typeof duration === "string") return parseDuration(duration);
  if (!Number.isFinite(duration) || duration < 0) {
    throw new RangeError(`'${duration}' is not a valid duration: must be finite and not negative`);
  }
  return duration;
}
