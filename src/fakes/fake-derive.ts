/** Worktrees, copies, scratch directories and snapshots of a machine in memory. */

import { createHash } from "node:crypto";
import { posix } from "node:path";
import { EnvError, RewindError, TempCloneBusy, WorktreeError } from "../flows/errors.ts";
import type { Derive, Holding } from "../engine/ports.ts";

/** The files of a machine in memory, as derived directories need them. Paths are absolute. */
export interface FakeTree {
  readonly refs: ReadonlySet<string>;
  /** Whether its workdir is in a git repository. */
  readonly repo: boolean;
  /** Its workdir: the top of the git worktree. */
  readonly workdir: string;
  isDirectory(path: string): boolean;
  makeDirectory(path: string): void;
  /** The files under a directory, by path relative to it. */
  under(directory: string): ReadonlyMap<string, Uint8Array>;
  put(path: string, data: Uint8Array): void;
  /** Removes a directory and all that is in it. */
  remove(directory: string): void;
}

type Kind = "clones" | "scratch";

interface Held {
  readonly kind: Kind;
  readonly id: string;
  readonly path: string;
  holder: object | undefined;
}

const SNAPSHOTS = "refs/hmz/snapshots/";

export class FakeDerive implements Derive {
  readonly #tree: FakeTree;
  readonly #held = new Map<string, Held>();
  readonly #snapshots = new Map<string, ReadonlyMap<string, Uint8Array>>();
  /** What is committed: what the workdir held at first. */
  readonly #committed: ReadonlyMap<string, Uint8Array>;
  #worktrees = 0;

  constructor(tree: FakeTree) {
    this.#tree = tree;
    this.#committed = tree.under(tree.workdir);
  }

  /** Ids of what is not removed yet. */
  ids(kind: Kind): readonly string[] {
    return [...this.#held.values()].filter((held) => held.kind === kind).map(({ id }) => id);
  }

  async worktree(workdir: string, { ref = "HEAD", dir }: { readonly ref?: string; readonly dir?: string }) {
    const tree = this.#tree;
    if (!tree.repo) throw new WorktreeError(`${workdir} is not in a git repository`);
    if (!tree.refs.has(ref) && !this.#snapshots.has(ref)) {
      throw new WorktreeError(`no worktree of ${workdir} can be made: git knows no ref '${ref}'`);
    }
    const target = dir ?? `${envsOf(workdir)}/worktrees/${++this.#worktrees}`;
    const at = posix.resolve(target);
    if (tree.isDirectory(at) && tree.under(at).size > 0) {
      throw new WorktreeError(`no worktree of ${workdir} can be made: ${target} is taken`);
    }
    this.#lay(this.#snapshots.get(ref) ?? this.#committed, at);
    return target;
  }

  async tempClone(workdir: string, id: string, holding: Holding): Promise<string> {
    const path = holding.earlier ?? `${envsOf(workdir)}/clones/${nameOf(id)}`;
    const known = this.#held.get(path);
    if (known?.holder && known.holder !== holding.holder) {
      throw new TempCloneBusy(`the copy '${id}' of ${workdir} is held by another environment`);
    }
    if (!known?.holder && holding.earlier === undefined) {
      const tree = this.#tree;
      if (!tree.isDirectory(workdir)) throw new EnvError(`${workdir} cannot be copied: it is not a directory`);
      tree.remove(path);
      this.#lay(tree.under(workdir), path);
    }
    this.#held.set(path, { kind: "clones", id, path, holder: holding.holder });
    return path;
  }

  async destroyTempClone(_workdir: string, id: string, holder: object): Promise<void> {
    this.#destroy("clones", id, holder);
  }

  async scratch(workdir: string, id: string, holding: Holding): Promise<string> {
    let path = holding.earlier ?? `${envsOf(workdir)}/scratch/${nameOf(id)}`;
    for (let other = 2; this.#isAnothers(path, holding); other++)
      path = `${envsOf(workdir)}/scratch/${nameOf(id)}~${other}`;
    const known = this.#held.get(path);
    if (!known?.holder && holding.earlier === undefined) {
      this.#tree.remove(path);
      this.#tree.makeDirectory(path);
    }
    this.#held.set(path, { kind: "scratch", id, path, holder: holding.holder });
    return path;
  }

  #isAnothers(path: string, { holder }: Holding): boolean {
    const known = this.#held.get(path);
    return known?.holder !== undefined && known.holder !== holder;
  }

  async destroyScratch(_workdir: string, id: string, holder: object): Promise<void> {
    this.#destroy("scratch", id, holder);
  }

  #destroy(kind: Kind, id: string, holder: object): void {
    for (const held of this.#held.values()) {
      if (held.kind !== kind || held.id !== id || held.holder !== holder) continue;
      this.#tree.remove(held.path);
      this.#held.delete(held.path);
    }
  }

  async release(holder: object): Promise<void> {
    for (const held of this.#held.values()) if (held.holder === holder) held.holder = undefined;
  }

  async snapshot(workdir: string, name: string | undefined): Promise<string> {
    this.#assertRepo(workdir, "snapshot");
    const ref = `${SNAPSHOTS}${name ?? defaultName()}`;
    if (!isRefName(ref)) throw new RewindError(`could not snapshot ${workdir}: '${name}' is not a valid ref name`);
    // Set anew, so that one replaced is the newest.
    this.#snapshots.delete(ref);
    this.#snapshots.set(ref, this.#recorded());
    return ref;
  }

  async rewind(workdir: string, ref: string): Promise<void> {
    this.#assertRepo(workdir, "rewind");
    const files = this.#snapshots.get(ref) ?? (this.#tree.refs.has(ref) ? this.#committed : undefined);
    if (!files || ref === "" || ref.startsWith("-")) {
      throw new RewindError(`could not rewind ${workdir}: git knows no ref '${ref}'`);
    }
    const top = this.#tree.workdir;
    const kept = [...this.#tree.under(top)].filter(([path]) => isLeft(path));
    this.#tree.remove(top);
    this.#lay(files, top);
    for (const [path, data] of kept) this.#tree.put(posix.join(top, path), data);
  }

  async snapshots(workdir: string): Promise<string[]> {
    this.#assertRepo(workdir, "list the snapshots of");
    return [...this.#snapshots.keys()];
  }

  #recorded(): ReadonlyMap<string, Uint8Array> {
    return new Map([...this.#tree.under(this.#tree.workdir)].filter(([path]) => !isLeft(path)));
  }

  #assertRepo(workdir: string, what: string): void {
    if (!this.#tree.repo) throw new RewindError(`could not ${what} ${workdir}: not a git repository`);
  }

  #lay(files: ReadonlyMap<string, Uint8Array>, at: string): void {
    this.#tree.makeDirectory(at);
    for (const [path, data] of files) this.#tree.put(posix.join(at, path), data);
  }
}

/** What snapshots leave alone. */
function isLeft(path: string): boolean {
  return path.startsWith(".hmz/") || path.startsWith(".humanize/");
}

function envsOf(workdir: string): string {
  return `/envs/${posix.basename(workdir).slice(0, 32)}-${digest(workdir)}`;
}

function nameOf(id: string): string {
  return /^[a-z0-9_][a-z0-9_.-]{0,31}$/.test(id) ? id : digest(id);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

function defaultName(): string {
  const stamp = new Date().toISOString().replace(/[-:]/g, "").replace("Z", "000Z");
  return `${stamp}-${Math.floor(Math.random() * 0x10000)
    .toString(16)
    .padStart(4, "0")}`;
}

/** As `git check-ref-format` has it. */
function isRefName(ref: string): boolean {
  // oxlint-disable-next-line no-control-regex -- git refuses control characters.
  return !/[\u0000-\u0020~^:?*[\\\u007f]|\.\.|@\{|\/\/|\.$|\/$|(?:^|\/)\.|\.lock(?:\/|$)/.test(ref);
}
