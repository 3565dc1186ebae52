/**
 * Waits for work that cannot be interrupted itself (the flow's own function, a hook), but not past an abort: a turn
 * that was stopped must come to rest even where that function never returns.
 *
 * @throws The signal's reason, once it is aborted.
 */
export async function interruptible<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = (): void => {};
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([work, stopped]);
  } finally {
    signal.removeEventListener("abort", stop);
    // Whichever lost may still reject later; nobody waits for it any more.
    work.catch(() => {});
    stopped.catch(() => {});
  }
}
