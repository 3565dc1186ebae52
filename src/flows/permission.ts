/** What a session may touch: four scopes, each at one of three kinds. */

/** What a scope may be granted, least first. */
export const PERMISSION_KINDS = ["none", "read", "all"] as const;

/** `none` < `read` < `all`. */
export type PermissionKind = (typeof PERMISSION_KINDS)[number];

/** The scopes, each left out taking its default. */
export interface PermissionLike {
  /** The workdir of the environment the turn works in. Default `all`. */
  readonly local?: PermissionKind | undefined;
  /** The rest of the home directory of the user the CLI runs as. Default `read`; at most `local`. */
  readonly user?: PermissionKind | undefined;
  /** Everything else on the machine. Default `read`; at most `user`. */
  readonly system?: PermissionKind | undefined;
  /** The network, the CLI's own web search and fetch included: `none` or `all`. Default `all`. */
  readonly online?: PermissionKind | undefined;
}

/** A frozen permission. Made by {@link permission}; a plain object is taken wherever one is. */
export class Permission implements Required<PermissionLike> {
  readonly local: PermissionKind;
  readonly user: PermissionKind;
  readonly system: PermissionKind;
  readonly online: PermissionKind;

  /**
   * @throws RangeError where a scope is not a permission kind, a wider scope is granted more than a narrower one, or
   * `online` is `read`.
   */
  constructor(scopes: PermissionLike = {}) {
    const { local = "all", user = "read", system = "read", online = "all", ...unknown } = scopes;
    // A misspelt scope would otherwise be granted its default.
    for (const key of Object.keys(unknown)) {
      throw new RangeError(`'${key}' is not a scope of a permission: one of local, user, system, online`);
    }
    for (const [field, value] of Object.entries({ local, user, system, online })) {
      if (!PERMISSION_KINDS.includes(value)) {
        throw new RangeError(`${field}=${String(value)} is not a permission kind`);
      }
    }
    if (rank(local) < rank(user) || rank(user) < rank(system)) {
      throw new RangeError(
        `a wider scope may not be granted more than a narrower one: local=${local}, user=${user}, system=${system}`,
      );
    }
    if (online === "read") throw new RangeError("online is all or nothing: NONE or ALL, not READ");
    this.local = local;
    this.user = user;
    this.system = system;
    this.online = online;
    Object.freeze(this);
  }

  /** Whether each of the four scopes is at least the other's. */
  covers(other: PermissionLike): boolean {
    const wanted = other instanceof Permission ? other : new Permission(other);
    return (
      rank(this.local) >= rank(wanted.local) &&
      rank(this.user) >= rank(wanted.user) &&
      rank(this.system) >= rank(wanted.system) &&
      rank(this.online) >= rank(wanted.online)
    );
  }

  /** As messages write it: `local=all, user=read, system=read, online=all`. */
  toString(): string {
    return `local=${this.local}, user=${this.user}, system=${this.system}, online=${this.online}`;
  }
}

function rank(kind: PermissionKind): number {
  return PERMISSION_KINDS.indexOf(kind);
}

/** A permission, each scope left out taking its default. */
export function permission(scopes: PermissionLike = {}): Permission {
  return scopes instanceof Permission ? scopes : new Permission(scopes);
}
