import type { Call } from "./call.ts";

/** How often what a call's code asks for after its end is answered. */
const MOST_ANSWERS = 1_000;

/** Refusals of a run after which the event loop goes round before the next. */
const LOOP_EVERY = 8;

/**
 * Throws a refusal. A flow that catches every one and asks again would keep timers and signals from ever being heard: no
 * ^C would stop it, and no deadline end it. So the event loop goes round in between; and one that asks on and on after
 * its call has ended is at last answered no more, for nothing else would let its process end.
 */
export async function refused(call: Call, error: unknown): Promise<never> {
  if (++call.run.refused % LOOP_EVERY === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  if (call.ended && ++call.asksAfterEnd > MOST_ANSWERS) return new Promise<never>(() => {});
  throw error;
}
