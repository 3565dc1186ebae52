/** Structured concurrency: members run side by side, and end as one. */

import type { Group } from "../flows/context.ts";
import { BudgetExceeded } from "../flows/errors.ts";
import { Cancellation } from "./cancellation.ts";

export interface GroupSetup {
  /** What the group is under. */
  readonly above: Cancellation;
  /** The error that members are cancelled with when one failed. */
  readonly cancelled: (cause: unknown) => Error;
  /** Runs a function as a member: what it calls is cancelled with it. */
  readonly enter: <R>(cancellation: Cancellation, fn: () => Promise<R>) => Promise<R>;
}

/**
 * Runs `body` with a group. The first failure, of a member or of the body, cancels the group; every member is waited
 * for; then it rejects, with the failure, or with an `AggregateError` of them where there are more. What members throw
 * because they were cancelled is no failure.
 */
export async function runGroup<T>(setup: GroupSetup, body: (group: Group) => Promise<T> | T): Promise<T> {
  const { above, cancelled, enter } = setup;
  const cancellation = new Cancellation();
  const unfollow = cancellation.follow(above);
  const members = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const failed = (error: unknown): void => {
    if (cancellation.cancelled && error === cancellation.reason) return;
    if (failures.includes(error)) return;
    failures.push(error);
    cancellation.cancel(cancelled(error));
  };
  const group: Group = {
    get signal() {
      return cancellation.signal;
    },
    run: (fn) => {
      const member = enter(cancellation, async () => {
        cancellation.throwIfCancelled();
        return fn(cancellation.signal);
      });
      const settled = member.then(() => {}, failed).finally(() => members.delete(settled));
      members.add(settled);
      return member;
    },
  };
  try {
    const result = await enter(cancellation, async () => body(group)).catch(failed);
    // Members may start members: wait until none is left.
    while (members.size > 0) await Promise.all(members);
    // A budget that several members met is one end, and not many failures.
    const one = failures.length === 1 || failures.every((error) => error instanceof BudgetExceeded);
    if (failures.length > 0 && one) throw failures[0];
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} members of a group failed`);
    above.throwIfCancelled();
    return result as T;
  } finally {
    unfollow();
  }
}
