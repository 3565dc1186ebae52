/** Timers for instants of the wall clock, however far away. */

/**
 * The longest that one timer is armed for. Node fires a timer of more than 2^31 ms after 1 ms, and a machine that slept
 * comes back to timers that did not count the sleep: re-arming notices both within this time.
 */
const ARMED_MS = 30_000;

/** Calls `reached` once the wall clock is at an instant (ms since the epoch). Returns what takes it back. */
export function atInstant(instant: number, reached: () => void): () => void {
  if (!Number.isFinite(instant)) return () => {};
  let timer: NodeJS.Timeout;
  const arm = (): void => {
    const left = instant - Date.now();
    timer = left <= 0 ? setTimeout(reached, 0) : setTimeout(left > ARMED_MS ? arm : check, Math.min(left, ARMED_MS));
  };
  // Timers may fire a little early: an instant not yet reached is waited for again.
  const check = (): void => (Date.now() >= instant ? reached() : arm());
  arm();
  return () => clearTimeout(timer);
}

/** A promise that settles as `work` does, or rejects with `late()` after `ms`, leaving `work` to itself. */
export async function within<T>(work: Promise<T>, ms: number, late: () => T | Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(() => resolve(LATE), ms);
  });
  try {
    const first = await Promise.race([work, timedOut]);
    return first === LATE ? await late() : first;
  } finally {
    clearTimeout(timer);
  }
}

const LATE = Symbol("late");
