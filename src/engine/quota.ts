/** A quota that is spent: every turn that asks the same account again would only be told the same. */

import { HarnessThrottled } from "../flows/errors.ts";
import type { AgentDriver } from "./ports.ts";

/** What a driver knows of a quota that is spent. */
export interface SpentQuota {
  /** Ms since the epoch; absent where the provider did not say. */
  readonly resetsAt?: number;
  /** Whether it is the model's alone: the account's other models still answer. */
  readonly ofModel?: boolean;
}

/** How long an account is left alone that did not say when its quota resets: somebody may add credit. */
const UNTOLD_MS = 300_000;

/** Of errors, kept beside them: an error crosses a process boundary as its class and its message alone. */
const spentQuotas = new WeakMap<HarnessThrottled, SpentQuota>();

/** Marks an error as of a quota that is spent, and not of a rate limit that passes. Returns it. */
export function quotaSpent(error: HarnessThrottled, quota: SpentQuota = {}): HarnessThrottled {
  spentQuotas.set(error, quota);
  return error;
}

/** What is known of a spent quota by its error; `undefined` for any other error. */
export function spentQuota(error: unknown): SpentQuota | undefined {
  return error instanceof HarnessThrottled ? spentQuotas.get(error) : undefined;
}

/** The accounts of one run whose quota is spent. */
export class SpentQuotas {
  readonly #until = new Map<string, { readonly until: number; readonly error: HarnessThrottled }>();

  /** Notes what a failed turn says of its account. */
  note(driver: AgentDriver, error: unknown): void {
    const quota = spentQuota(error);
    if (!quota) return;
    const until = quota.resetsAt ?? Date.now() + UNTOLD_MS;
    this.#until.set(accountOf(driver, quota.ofModel ? driver.model : ""), { until, error: error as HarnessThrottled });
  }

  /** Throws where the account of an agent has nothing left, until it has again. */
  assertLeft(driver: AgentDriver): void {
    if (this.#until.size === 0) return;
    for (const model of ["", driver.model]) {
      const account = accountOf(driver, model);
      const spent = this.#until.get(account);
      if (!spent) continue;
      if (Date.now() < spent.until) throw refused(driver, spent);
      this.#until.delete(account);
    }
  }
}

/** A harness whose models are of several providers has an account at each. */
function accountOf({ harness, provider, model }: AgentDriver, limited: string): string {
  const vendor = harness === "native" || harness === "litellm" ? (model.split("/", 1)[0] ?? "") : "";
  return JSON.stringify([harness, provider, vendor, limited]);
}

function refused(driver: AgentDriver, { until, error }: { until: number; error: HarnessThrottled }): HarnessThrottled {
  const account = driver.provider === "" ? driver.harness : `${driver.harness}@${driver.provider}`;
  // Beyond what a Date holds, the driver's word is worth nothing.
  const when = until <= 8.64e15 ? new Date(until).toISOString() : "its reset";
  return quotaSpent(
    new HarnessThrottled(`${account}: its quota is spent, and no turn is sent until ${when}: ${error.message}`, {
      cause: error,
    }),
    { resetsAt: until },
  );
}
