/** From what fills a role, as it was written, to what the engine drives. Each room is loaded when it is asked for. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { HarnessUnrecoverable } from "../flows/errors.ts";
import { type Harness, HARNESS_NAMES } from "../flows/harness.ts";
import type { Home } from "../home/paths.ts";
import type { AgentDriver, Machine, Place } from "../engine/ports.ts";
import { Refused } from "./refused.ts";
import type { AgentSpec } from "./spec/agents.ts";
import type { EnvSpec } from "./spec/envs.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Opens a driver; starts nothing. */
type DriverRoom = (spec: AgentSpec, context: { readonly workspace: string; readonly env: Env }) => Promise<AgentDriver>;

const ROOMS: { readonly [H in Harness]?: DriverRoom } = {
  claude: async ({ model, effort, provider }, { env }) => {
    const { claudeDriver } = await import("../harness/claude/driver.ts");
    return claudeDriver({ model, effort, provider, env });
  },
  native: async ({ model, effort, provider }, { workspace, env }) => {
    const { nativeDriver } = await import("../loop/driver.ts");
    return nativeDriver({ model, effort, provider, env, scripts: (name) => resolve(workspace, name) });
  },
};

/** The harnesses that this release drives. */
export const DRIVEN: readonly Harness[] = HARNESS_NAMES.filter((name) => ROOMS[name] !== undefined);

/**
 * The driver of an agent.
 *
 * @throws Refused where its harness is not driven by this release, or cannot be configured as it is written.
 */
export async function openAgent(
  spec: AgentSpec,
  context: { readonly workspace: string; readonly env: Env },
): Promise<AgentDriver> {
  const room = ROOMS[spec.harness];
  if (!room) {
    throw new Refused(
      `${spec.text}: this release does not drive ${spec.harness} yet; it drives ${DRIVEN.join(" and ")}`,
    );
  }
  try {
    return await room(spec, context);
  } catch (error) {
    if (error instanceof HarnessUnrecoverable) {
      throw new Refused(`${error.name}: ${spec.text}: ${error.message}`, { cause: error });
    }
    throw error;
  }
}

/** This machine. */
export async function openLocalMachine(home: Home): Promise<Machine> {
  const [{ localMachine }, { locks }] = await Promise.all([import("../machine/local.ts"), import("../home/lock.ts")]);
  return localMachine({ derive: { envs: home.envs, locks } });
}

/** Removes the copies and scratch directories of runs that were killed. Loads nothing where there are none. */
export async function sweepCopies(home: Home): Promise<void> {
  if (!existsSync(home.envs)) return;
  const [{ sweepLocal }, { isHeld, locks }] = await Promise.all([
    import("../machine/local.ts"),
    import("../home/lock.ts"),
  ]);
  await sweepLocal({ envs: home.envs, locks }, isHeld);
}

/**
 * The place that an environment's spec names, on the machine that `local` is.
 *
 * @throws Refused where this release cannot open it, or it is not there.
 */
export async function openPlace(role: string, spec: EnvSpec, local: Machine): Promise<Place> {
  if (spec.backend !== "local") {
    throw new Refused(
      `-e '${role}=${spec.text}': this release opens environments on this machine alone; write ${role}=local/<workdir>`,
    );
  }
  if (!(await local.isDirectory(spec.workdir))) {
    throw new Refused(`-e '${role}=${spec.text}': ${spec.workdir} is not a directory`);
  }
  return { machine: local, workdir: spec.workdir };
}

/** Whether a value is an agent's driver: a fake, or a program's own. */
export function isAgentDriver(value: unknown): value is AgentDriver {
  const given = value as Partial<AgentDriver> | null;
  return (
    typeof given === "object" &&
    given !== null &&
    typeof given.harness === "string" &&
    typeof given.open === "function" &&
    typeof given.close === "function" &&
    given.serves instanceof Set
  );
}

/** A machine that says where on it the work is: a fake. */
export type PlacedMachine = Machine & { readonly workdir: string };

export function isPlacedMachine(value: unknown): value is PlacedMachine {
  const given = value as Partial<PlacedMachine> | null;
  return (
    typeof given === "object" &&
    given !== null &&
    typeof given.workdir === "string" &&
    typeof given.backend === "string" &&
    typeof given.exec === "function" &&
    typeof given.close === "function"
  );
}
