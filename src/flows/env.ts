/** Environments as a flow sees them: a working directory on a machine, with the methods that its role's needs grant. */

import type { Granted } from "./agent.ts";

/** What an environment role may need. `bash` includes `shell`, `git` includes `rewind`. */
export const ENV_NEEDS = ["shell", "bash", "files", "worktree", "temp_clone", "scratch", "rewind", "git"] as const;

/** One of {@link ENV_NEEDS}. */
export type EnvNeed = (typeof ENV_NEEDS)[number];

/** The needs that a need brings with it. */
export type WithIncluded<N extends EnvNeed> =
  | N
  | ("bash" extends N ? "shell" : never)
  | ("git" extends N ? "rewind" : never);

export const ENV_BACKENDS = ["local", "ssh", "docker", "swarm", "apple-container", "slurm"] as const;

/** What kind of machine an environment is on. */
export type EnvBackend = (typeof ENV_BACKENDS)[number];

/** What a command came to. The streams are decoded as UTF-8. */
export interface ExecResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of one command. */
export interface ExecOptions {
  /** Milliseconds; past it the program is killed and `EnvCommandTimeout` thrown. 0, the default, for none. */
  readonly timeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface PlainEnv {
  /** Where commands run and relative paths resolve: absolute, or `~/…` under an ssh login's home. */
  readonly workdir: string;
  readonly backend: EnvBackend;
  /** `""` for local; otherwise which saved machine, or which host. */
  readonly provider: string;
  /** Whether the machine was reachable and the workdir existed, as last probed. */
  readonly available: boolean;
  /** The role it fills. */
  readonly role: string;
}

interface Shell {
  /** Runs one program, no shell, in the workdir. */
  exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult>;
}

interface Bash {
  /** Runs one program, or a script with `bash -c`, in the workdir. */
  exec(command: readonly string[] | string, options?: ExecOptions): Promise<ExecResult>;
}

interface Files {
  /** The bytes of a file; the path is relative to the workdir, or absolute. */
  read(path: string): Promise<Uint8Array>;
  /** The text of a file, decoded as UTF-8. */
  readText(path: string): Promise<string>;
  /** Replaces the file whole, creating its parent directories. */
  write(path: string, data: Uint8Array | string): Promise<void>;
}

interface Rewindable {
  /** Records the worktree as it stands; returns the snapshot's ref. */
  snapshot(name?: string): Promise<string>;
  /** Restores the worktree to a snapshot, or to any ref that git resolves to a commit. */
  rewind(ref: string): Promise<void>;
  /** The snapshot refs, oldest first. */
  snapshots(): Promise<string[]>;
}

interface GrantedBy<N extends EnvNeed> {
  shell: Shell;
  bash: Bash;
  files: Files;
  worktree: {
    /** A git worktree of the repository that the workdir is in, checked out detached. */
    deriveWorktree(options?: { readonly ref?: string; readonly dir?: string }): Promise<Env<N>>;
  };
  temp_clone: {
    /** A copy of the workdir, made once for each id, removed when the call that made it ends. */
    deriveTempClone(id: string): Promise<Env<N>>;
    destroyTempClone(id: string): Promise<void>;
  };
  scratch: {
    /** An empty directory, made once for each id, removed when the call that made it ends. */
    deriveScratch(id: string): Promise<Env<N>>;
    destroyScratch(id: string): Promise<void>;
  };
  // Declared alone it grants nothing to be called: helpers are typed against it, roles declare `git`.
  rewind: Rewindable;
  git: Rewindable;
}

type MethodsOf<N extends EnvNeed, All extends EnvNeed> = (
  N extends EnvNeed ? (member: GrantedBy<All>[N]) => void : never
) extends (all: infer Methods) => void
  ? Methods
  : never;

type Methods<N extends EnvNeed> = [N] extends [never] ? unknown : MethodsOf<N, N>;

/** An environment of a role that needs `N`. */
export type Env<N extends EnvNeed = never> = PlainEnv &
  Granted<WithIncluded<N>> & {
    /** An environment at a directory under this workdir, made where it is missing; same role, same grant. */
    deriveSubdir(path: string): Promise<Env<N>>;
  } & Methods<N>;

/** Any environment, whatever it was granted. */
export interface AnyEnv extends PlainEnv {}
