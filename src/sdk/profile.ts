/** The programs of a run, sampled into a file of its epic. */

import { Refused } from "./refused.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Which programs of a run are sampled. */
export interface ProfileChoice {
  /** Every program under the process that runs the flow: those of its own code too. */
  readonly flow?: boolean | undefined;
  /** Those that work for the run: what was started for its agents and its environments, and by those. */
  readonly environment?: boolean | undefined;
}

/** Characters of an argument, arguments of a program that are kept. */
const MOST_ARGUMENT = 4096;
const MOST_ARGUMENTS = 256;

/** Samples the programs under a process into a file until it is stopped. @throws Error where the file cannot be made. */
export type StartProfile = (options: {
  readonly pid: number;
  /** Absolute. */
  readonly file: string;
  /** Told once of what could not be written; the run goes on. */
  readonly trouble: (error: Error) => void;
}) => { stop(): void };

/**
 * What starts the profile that is asked for; `undefined` where none is.
 *
 * @param env Whose secrets are kept out of the arguments of programs.
 * @throws Refused where this system cannot be asked.
 */
export async function prepareProfile(
  choice: boolean | ProfileChoice | undefined,
  env: Env,
): Promise<StartProfile | undefined> {
  const { flow = false, environment = false } = typeof choice === "object" ? choice : { flow: choice === true };
  if (!flow && !environment) return undefined;
  const [{ CAN_PROFILE, startProfile }, { appender }, { Redaction }] = await Promise.all([
    import("../process/profile.ts"),
    import("../home/appender.ts"),
    import("../home/redaction.ts"),
  ]);
  if (!CAN_PROFILE) throw new Refused("a profile reads /proc, which this system does not have; leave the option out");
  const redaction = Redaction.of(env);
  return ({ pid, file, trouble }) => {
    const lines = appender(file, true, trouble);
    const profile = startProfile({
      pid,
      environmentOnly: !flow,
      seen: (program) => {
        const argv = redaction.argv(program.argv).slice(0, MOST_ARGUMENTS).map(shortened);
        lines.append({ ...program, name: redaction.text(program.name), argv });
      },
    });
    return {
      stop() {
        profile.stop();
        lines.close();
      },
    };
  };
}

function shortened(argument: string): string {
  return argument.length <= MOST_ARGUMENT ? argument : `${argument.slice(0, MOST_ARGUMENT - 1)}…`;
}
