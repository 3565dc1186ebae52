/** Asking the hooks that a flow hung on its agents. */

import type { HookFn, HookKind, HookParamsOf, HookResultOf } from "../flows/hooks.ts";
import type { Hooks } from "./agent.ts";

/** A moment that waits longer than this for its hook, inside a CLI, is answered as if none hung. */
export const HOOK_TIMEOUT_MS = 900_000;

export function hook<K extends HookKind>(hooks: Hooks, kind: K): HookFn<K> | undefined {
  return hooks[kind];
}

/** A hook's answer; `{}` where it gave none. */
export async function answerOf<K extends HookKind>(
  kind: K,
  fn: HookFn<K>,
  params: HookParamsOf[K],
): Promise<Partial<HookResultOf[K]>> {
  const answer = (await fn(params)) as HookResultOf[K] | undefined | null;
  if (answer === undefined || answer === null) return {};
  if (typeof answer !== "object") {
    throw new TypeError(`a ${kind} hook returns an object, or nothing for no change: not ${typeof answer}`);
  }
  return answer;
}
