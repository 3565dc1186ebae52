/** Figures as a person reads them. */

/** `812`, `1.2k`, `3.45M`. */
export function count(figure: number): string {
  if (figure < 1_000) return String(Math.round(figure));
  // Rounded up to a thousand thousands, it would read `1000.0k`.
  return figure < 999_950 ? `${(figure / 1_000).toFixed(1)}k` : `${(figure / 1_000_000).toFixed(2)}M`;
}

/** `$0.0123`, `$4.20`, `$130`. */
export function money(usd: number): string {
  if (usd >= 99.995) return `$${usd.toFixed(0)}`;
  return `$${usd.toFixed(usd >= 0.01 ? 2 : 4)}`;
}

/** `0.2s`, `7s`, `42s`, `3m 05s`, `2h 10m`. Under ten seconds, tenths tell a turn that did nothing from one that did. */
export function lasting(seconds: number): string {
  if (seconds < 10) return `${Math.max(0, Math.floor(seconds * 10) / 10)}s`;
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}m ${padded(whole % 60)}s`;
  return `${Math.floor(minutes / 60)}h ${padded(minutes % 60)}m`;
}

function padded(figure: number): string {
  return String(figure).padStart(2, "0");
}
