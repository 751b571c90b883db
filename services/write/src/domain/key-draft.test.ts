import { describe, expect, test } from "@jest/globals";
import { Problem, SCOPES } from "@linkfence/contracts";
import fc from "fast-check";
import { allows, isKeyId } from "./api-key.ts";
import { draftKey, type Holder, reachOf, reachOwner, refuseEscalation } from "./key-draft.ts";

const NOW = Date.parse("2026-06-01T00:00:00Z");
const ADMIN: Holder = { owner: "admin", scopes: ["admin"] };
const ANN: Holder = { owner: "ann", scopes: ["keys", "links:read"] };

const scopes = fc.uniqueArray(fc.constantFrom(...SCOPES), { minLength: 1 });
const owner = fc.constantFrom("ann", "bob", "admin");
const holder = fc.record({ owner, scopes });

function problemOf(work: () => unknown): Problem | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
const faultOf = (work: () => unknown) => {
  const problem = problemOf(work);
  return problem && `${problem.code} ${problem.errors[0]?.field} ${problem.errors[0]?.rule}`;
};

describe("a new key", () => {
  test("never has a scope that its maker lacks, nor another owner, unless an admin made it", () => {
    fc.assert(
      fc.property(holder, scopes, fc.option(owner), (maker, wanted, named) => {
        const isAdmin = maker.scopes.includes("admin");
        const may =
          isAdmin || (wanted.every((scope) => maker.scopes.includes(scope)) && [null, maker.owner].includes(named));
        const problem = problemOf(() => draftKey({ name: "n", scopes: wanted, owner: named }, maker, NOW));
        expect(problem?.code).toBe(may ? undefined : "insufficient-scope");
        if (may)
          expect(draftKey({ name: "n", scopes: wanted, owner: named }, maker, NOW)).toEqual({
            owner: named ?? maker.owner,
            name: "n",
            scopes: wanted,
            expiry: { kind: "never" },
          });
      }),
    );
  });

  test("by however many hands it goes never has more than the first had", () => {
    fc.assert(
      fc.property(holder, fc.array(scopes, { maxLength: 5 }), (first, wishes) => {
        let last = first;
        for (const wanted of wishes) {
          if (problemOf(() => refuseEscalation(last, wanted)) === null) last = { owner: last.owner, scopes: wanted };
        }
        for (const scope of SCOPES) if (allows(last.scopes, scope)) expect(allows(first.scopes, scope)).toBe(true);
      }),
    );
  });

  test.each<[string, Parameters<typeof draftKey>[0], Holder, string]>([
    [
      "a scope its maker lacks",
      { name: "n", scopes: ["keys", "links:create"] },
      ANN,
      "insufficient-scope scopes[1] held",
    ],
    ["admin, which its maker lacks", { name: "n", scopes: ["admin"] }, ANN, "insufficient-scope scopes[0] held"],
    ["another owner", { name: "n", scopes: ["keys"], owner: "bob" }, ANN, "insufficient-scope owner admin"],
    ["a name that cannot be stored", { name: "a\0b", scopes: ["keys"] }, ANN, "invalid-request name text"],
    ["half a surrogate pair for a name", { name: "\ud800", scopes: ["keys"] }, ANN, "invalid-request name text"],
    [
      "two ends",
      { name: "n", scopes: ["keys"], expiresInSeconds: 1, expiresAt: "2030-01-01T00:00:00Z" },
      ANN,
      "invalid-request expiresAt exclusive",
    ],
    [
      "an end in the past",
      { name: "n", scopes: ["keys"], expiresAt: "2020-01-01T00:00:00Z" },
      ANN,
      "invalid-request expiresAt past",
    ],
    ...[
      "",
      " bob",
      "bob ",
      "a  b",
      "a\tb",
      "a\nb",
      "a\u00a0b",
      "a\u200bb",
      "a\u202eb",
      "e\u0301",
      "\0",
      "\ud800",
      "\ue000",
    ].map((name): [string, Parameters<typeof draftKey>[0], Holder, string] => [
      `the owner ${JSON.stringify(name)}`,
      { name: "n", scopes: ["keys"], owner: name },
      ADMIN,
      "invalid-request owner text",
    ]),
  ])("with %s is refused, and told why", (_what, request, maker, fault) => {
    expect(faultOf(() => draftKey(request, maker, NOW))).toBe(fault);
  });

  test.each(["bob", "team a", "ann@example.org", "\u00e9", "\u5f20\u4e09", "https://idp.example/u/1", "🦊"])(
    "may be given to the owner %s by an admin",
    (name) => {
      expect(draftKey({ name: "n", scopes: ["keys"], owner: name }, ADMIN, NOW).owner).toBe(name);
    },
  );

  test("takes its end in seconds or as a time, like a link", () => {
    const expiryOf = (over: object) => draftKey({ name: "n", scopes: ["keys"], ...over }, ANN, NOW).expiry;
    expect(expiryOf({ expiresInSeconds: 60, expiresAt: null })).toEqual({ kind: "after", seconds: 60 });
    expect(expiryOf({ expiresAt: "2030-01-01T01:00:00.1+01:00" })).toEqual({
      kind: "at",
      time: "2030-01-01T00:00:00.100000Z",
    });
  });

  test("of an owner whose name is older than the rule can be made by that owner", () => {
    const old: Holder = { owner: "old  owner ", scopes: ["keys"] };
    for (const named of [undefined, old.owner])
      expect(draftKey({ name: "n", scopes: ["keys"], owner: named ?? null }, old, NOW).owner).toBe(old.owner);
  });
});

describe("what a key reaches", () => {
  test("are its owner's keys, and everybody's with admin", () => {
    expect([reachOf(ANN), reachOf(ADMIN)]).toEqual(["ann", null]);
    expect([reachOwner(ANN, undefined), reachOwner(ANN, "ann"), reachOwner(ADMIN, undefined)]).toEqual([
      "ann",
      "ann",
      "admin",
    ]);
    expect(reachOwner(ADMIN, "bob")).toBe("bob");
    expect(faultOf(() => reachOwner(ANN, "bob"))).toBe("insufficient-scope owner admin");
    for (const maker of [ANN, ADMIN])
      expect(faultOf(() => reachOwner(maker, "a\0b"))).toBe("invalid-request owner text");
  });

  test("is never looked up by what cannot be an id", () => {
    expect(isKeyId("AAAAbbbb0000")).toBe(true);
    for (const text of ["", "AAAAbbbb000", "AAAAbbbb00000", "AAAAbbbb000-", "AAAAbbbb000\n", "\u00e4AAAAbbbb000"])
      expect(isKeyId(text)).toBe(false);
  });
});
