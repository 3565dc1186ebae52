import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { Permission, permission, PERMISSION_KINDS, type PermissionLike } from "hmz/flows";

const kinds = fc.constantFrom(...PERMISSION_KINDS);
const rank = (kind: string): number => (PERMISSION_KINDS as readonly string[]).indexOf(kind);
const valid = fc
  .record({ local: kinds, user: kinds, system: kinds, online: fc.constantFrom("none" as const, "all" as const) })
  .filter(({ local, user, system }) => rank(local) >= rank(user) && rank(user) >= rank(system));

describe("permission", () => {
  it("defaults to writing the workdir, reading the rest, and the network", () => {
    assert.equal(String(permission()), "local=all, user=read, system=read, online=all");
  });

  it("is frozen, and is itself when given one", () => {
    const given = permission({ online: "none" });
    assert.ok(Object.isFrozen(given));
    assert.equal(permission(given), given);
    assert.ok(given instanceof Permission);
  });

  const refused: readonly (readonly [PermissionLike, string])[] = [
    [{ local: "some" as never }, "local=some is not a permission kind"],
    [{ system: null as never }, "system=null is not a permission kind"],
    [
      { local: "none" },
      "a wider scope may not be granted more than a narrower one: local=none, user=read, system=read",
    ],
    [{ user: "none" }, "a wider scope may not be granted more than a narrower one: local=all, user=none, system=read"],
    [{ system: "all" }, "a wider scope may not be granted more than a narrower one: local=all, user=read, system=all"],
    [{ online: "read" }, "online is all or nothing: NONE or ALL, not READ"],
    [{ onlin: "none" } as never, "'onlin' is not a scope of a permission: one of local, user, system, online"],
  ];
  for (const [scopes, message] of refused) {
    it(`refuses ${JSON.stringify(scopes)}`, () => {
      assert.throws(() => permission(scopes), { name: "RangeError", message });
    });
  }

  it("covers another where each scope is at least as much", () => {
    fc.assert(
      fc.property(valid, valid, (one, other) => {
        const scopes = ["local", "user", "system", "online"] as const;
        const expected = scopes.every((scope) => rank(one[scope]) >= rank(other[scope]));
        assert.equal(permission(one).covers(other), expected);
        assert.equal(permission(one).covers(permission(other)), expected);
      }),
    );
  });

  it("covers itself, and is covered by everything at all", () => {
    const everything = permission({ local: "all", user: "all", system: "all", online: "all" });
    fc.assert(
      fc.property(valid, (given) => {
        assert.ok(permission(given).covers(given));
        assert.ok(everything.covers(given));
      }),
    );
  });
});
