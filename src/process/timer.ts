/** The longest wait that a timer of Node's takes; a longer one would fire at once. */
const LONGEST = 2 ** 31 - 1;

/** Calls back after so many milliseconds, however many. Returns what calls it off. */
export function after(ms: number, callback: () => void): () => void {
  const due = performance.now() + ms;
  let timer: NodeJS.Timeout;
  const arm = (): void => {
    const left = due - performance.now();
    timer = setTimeout(left > LONGEST ? arm : callback, Math.min(Math.max(left, 0), LONGEST));
  };
  arm();
  return () => clearTimeout(timer);
}
