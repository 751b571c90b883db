// The rules of keys that only the database can keep: how many, which is the last, and who is still allowed to ask.
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { parseKey } from "../domain/api-key.ts";
import { matchesSecret } from "./key-secret.ts";
import { KEY_LOCK, type KeyWorld, outcomeOf, startKeyWorld } from "./keys.fixture.ts";

let world: KeyWorld;
beforeEach(async () => {
  world = await startKeyWorld();
});
afterEach(() => world.stop());

const own = (id: string) => ({ id, reach: null });
const DAY = 86_400;

/** Runs two calls of which the second begins before the first is committed, and says how each ended. */
async function overlap(first: string, second: string): Promise<string[]> {
  const [one, two] = [await world.sql.reserve(), await world.sql.reserve()];
  try {
    const outcome = async (sql: typeof one, statement: string) => {
      const [row] = await sql.unsafe<{ outcome: string }[]>(statement);
      return String(row?.outcome);
    };
    await one`BEGIN`;
    const before = await outcome(one, first);
    const after = outcome(two, second);
    // With the lock, the second stands still; without it, it is over.
    await Promise.race([after, world.waiting(1)]);
    await one`COMMIT`;
    return [before, await after];
  } finally {
    one.release();
    two.release();
  }
}

describe("a key that is made", () => {
  test("works, ends by the clock of the database, and is stored as a digest", async () => {
    const by = await world.add("admin", ["admin"]);
    const key = await world.management.create(world.draft("ann", { expiry: { kind: "after", seconds: 60 } }), by);
    const { secret = "" } = parseKey(key.secret) ?? {};
    expect(key).toEqual({
      id: expect.stringMatching(/^[A-Za-z0-9]{12}$/),
      owner: "ann",
      name: "n",
      scopes: ["keys"],
      state: "active",
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      createdBy: by,
      expiresAt: expect.any(String),
      revokedAt: null,
      revokedBy: null,
      replacedBy: null,
      lastUsedAt: null,
      secret: expect.stringMatching(new RegExp(`^linkfence_${key.id}_`)),
    });
    expect(Date.parse(key.expiresAt ?? "") - Date.parse(key.createdAt)).toBe(60_000);
    const found = await world.keys.findActive(key.id);
    expect(matchesSecret(secret, found?.secretHash)).toBe(true);
    const [row] = await world.sql`SELECT k::text AS text FROM api_key k WHERE id = ${key.id}`;
    expect(row?.text).not.toContain(secret.slice(0, 20));
  });

  test("is none when the key that asks was revoked or has expired by then", async () => {
    const revoked = await world.add("ann");
    await world.add("admin", ["admin"]);
    await world.management.revoke(own(revoked), revoked);
    const expired = await world.add("ann", ["keys"], "2020-01-01T00:00:00Z");
    const victim = await world.add("ann");
    for (const by of [revoked, expired, "NoSuchKeyAtA"]) {
      expect(await outcomeOf(world.management.create(world.draft("ann"), by))).toBe("unauthorized");
      expect(await outcomeOf(world.management.rotate(own(victim), DAY, by))).toBe("unauthorized");
      expect(await outcomeOf(world.management.revoke(own(victim), by))).toBe("unauthorized");
    }
    expect([await world.usableKeys("ann"), world.counts.keys.unauthorized]).toEqual([1, 9]);
  });
});

describe("a thousand keys", () => {
  const fill = (owner: string, number: number, expiresAt: string | null = null) => world.sql`
    INSERT INTO api_key (id, owner, name, scopes, secret_hash, expires_at)
    SELECT substr(md5(random()::text), 1, 12), ${owner}, 'n', '{keys}', sha256('x'), ${expiresAt}::text::timestamptz
      FROM generate_series(1, ${number}::int)`;

  test("are what an owner may have that are usable, and others do not count", async () => {
    const by = await world.add("ann");
    await fill("ann", 999);
    await fill("ann", 50, "2020-01-01T00:00:00Z");
    await fill("bob", 50);
    expect(await outcomeOf(world.management.create(world.draft("ann"), by))).toBe("too-many-keys");
    expect(await outcomeOf(world.management.create(world.draft("bob"), by))).toBe("done");
    expect(await outcomeOf(world.management.rotate(own(by), DAY, by))).toBe("too-many-keys");
    const { id } = await world.management.rotate(own(by), 0, by);
    const [other] = await world.sql<{ id: string }[]>`
      SELECT id FROM api_key WHERE owner = 'ann' AND id <> ${id} AND expires_at IS NULL LIMIT 1`;
    await world.management.revoke(own(other?.id ?? ""), id);
    expect(await outcomeOf(world.management.create(world.draft("ann"), id))).toBe("done");
    expect(await outcomeOf(world.management.create(world.draft("ann"), id))).toBe("too-many-keys");
    expect([await world.usableKeys("ann"), world.counts.keys["too-many-keys"]]).toEqual([1000, 3]);
  });

  test("do not become more when sixteen calls ask for the last place at once", async () => {
    const by = await world.add("ann");
    await fill("ann", 996);
    const calls = Array.from({ length: 16 }, () => outcomeOf(world.management.create(world.draft("ann"), by)));
    const outcomes = await Promise.all(calls);
    expect(outcomes.filter((outcome) => outcome === "done")).toHaveLength(3);
    expect(outcomes.filter((outcome) => outcome === "too-many-keys")).toHaveLength(13);
    expect(await world.usableKeys("ann")).toBe(1000);
  });

  const create = (id: string, by: string) =>
    `SELECT outcome FROM create_api_key('${id}', sha256('x'), 'ann', 'n', '{keys}', NULL, NULL, '${by}')`;

  test("stay a thousand when two creations overlap", async () => {
    const by = await world.add("ann");
    await fill("ann", 998);
    expect(await overlap(create("aaaaaaaaaaaa", by), create("bbbbbbbbbbbb", by))).toEqual(["created", "too-many-keys"]);
  });

  test("become more without the lock: both creations count what the other has not committed", async () => {
    await world.removeLock();
    const by = await world.add("ann");
    await fill("ann", 998);
    expect(await overlap(create("aaaaaaaaaaaa", by), create("bbbbbbbbbbbb", by))).toEqual(["created", "created"]);
    expect(await world.usableKeys("ann")).toBe(1001);
  });
});

describe("the last usable admin key", () => {
  const revoke = (id: string) => `SELECT revoke_api_key('${id}', NULL, '${id}') AS outcome`;

  test("cannot be revoked; one of two can, and again, and others can at any time", async () => {
    const [first, second] = [await world.add("admin", ["admin"]), await world.add("ann", ["keys", "admin"])];
    await world.add("admin", ["admin"], "2020-01-01T00:00:00Z");
    const plain = await world.add("ann");
    expect(await outcomeOf(world.management.revoke(own(first), second))).toBe("done");
    expect(await outcomeOf(world.management.revoke(own(second), second))).toBe("last-admin-key");
    expect(await outcomeOf(world.management.revoke(own(first), second))).toBe("done");
    expect(await outcomeOf(world.management.revoke(own(plain), second))).toBe("done");
    expect(await world.usableAdminKeys()).toBe(1);
    expect(world.counts.keys).toMatchObject({ revoked: 2, "already-revoked": 1, "last-admin-key": 1 });
    const [row] = await world.sql`SELECT revoked_by AS by FROM api_key WHERE id = ${first}`;
    expect(row?.by).toBe(second);
  });

  test("may be rotated, and then its successor is the last: the replaced one is about to end and does not count", async () => {
    const old = await world.add("admin", ["admin"]);
    const { id: successor } = await world.management.rotate(own(old), DAY, old);
    expect(await world.usableAdminKeys()).toBe(2);
    expect(await outcomeOf(world.management.revoke(own(successor), old))).toBe("last-admin-key");
    expect(await outcomeOf(world.management.revoke(own(old), successor))).toBe("done");
    expect(await outcomeOf(world.management.revoke(own(successor), successor))).toBe("last-admin-key");
    const { id: third } = await world.management.rotate(own(successor), 0, successor);
    expect([await world.usableAdminKeys(), await outcomeOf(world.management.revoke(own(third), third))]).toEqual([
      1,
      "last-admin-key",
    ]);
  });

  test("is the one that lasts longest: another one that ends before does not take its place", async () => {
    const lasting = await world.add("admin", ["admin"]);
    const ending = await world.add("admin", ["admin"], "2999-01-01T00:00:00Z");
    expect(await outcomeOf(world.management.revoke(own(lasting), ending))).toBe("last-admin-key");
    expect(await outcomeOf(world.management.revoke(own(ending), lasting))).toBe("done");
  });

  test("is left over when all are revoked at once, each by itself", async () => {
    const ids = await Promise.all(Array.from({ length: 16 }, () => world.add("admin", ["admin"])));
    const outcomes = await Promise.all(ids.map((id) => outcomeOf(world.management.revoke(own(id), id))));
    expect(outcomes.filter((outcome) => outcome === "done")).toHaveLength(15);
    expect(outcomes.filter((outcome) => outcome === "last-admin-key")).toHaveLength(1);
    expect(await world.usableAdminKeys()).toBe(1);
  });

  test("is left over when two revocations overlap", async () => {
    const [one, two] = [await world.add("admin", ["admin"]), await world.add("bob", ["admin"])];
    expect(await overlap(revoke(one), revoke(two))).toEqual(["revoked", "last-admin-key"]);
    expect(await world.usableAdminKeys()).toBe(1);
  });

  test("is gone without the lock: each revocation still sees the other's key", async () => {
    await world.removeLock();
    const [one, two] = [await world.add("admin", ["admin"]), await world.add("bob", ["admin"])];
    expect(await overlap(revoke(one), revoke(two))).toEqual(["revoked", "revoked"]);
    expect(await world.usableAdminKeys()).toBe(0);
  });

  test("of two that revoke each other, the second finds itself revoked", async () => {
    const [one, two] = [await world.add("admin", ["admin"]), await world.add("bob", ["admin"])];
    const by = (id: string, key: string) => `SELECT revoke_api_key('${id}', NULL, '${key}') AS outcome`;
    expect(await overlap(by(two, one), by(one, two))).toEqual(["revoked", "unauthorized"]);
    expect(await world.usableAdminKeys()).toBe(1);
  });
});

describe("a rotation", () => {
  test("makes a successor with the same owner, name, scopes and end, and shortens the life of the old key", async () => {
    const by = await world.add("admin", ["admin"]);
    const end = "2999-12-31T23:59:59.123456Z";
    const old = await world.management.create(
      world.draft("ann", { name: "ci", scopes: ["links:create", "keys"], expiry: { kind: "at", time: end } }),
      by,
    );
    const next = await world.management.rotate({ id: old.id, reach: "ann" }, 3600, old.id);
    expect(next).toMatchObject({
      owner: "ann",
      name: "ci",
      scopes: ["links:create", "keys"],
      state: "active",
      createdBy: old.id,
      expiresAt: end,
      replacedBy: null,
    });
    expect([next.id === old.id, next.secret === old.secret]).toEqual([false, false]);
    const after = await world.management.find(own(old.id));
    expect(after).toMatchObject({ state: "active", replacedBy: next.id, revokedAt: null });
    expect(Date.parse(after?.expiresAt ?? "") - Date.parse(next.createdAt)).toBe(3_600_000);
  });

  test("never prolongs the old key, ends it at once without an overlap, and gives no end to a successor of an endless one", async () => {
    const by = await world.add("admin", ["admin"]);
    const brief = await world.management.create(world.draft("ann", { expiry: { kind: "after", seconds: 60 } }), by);
    const next = await world.management.rotate(own(brief.id), 30 * DAY, by);
    expect((await world.management.find(own(brief.id)))?.expiresAt).toBe(brief.expiresAt);
    expect(next.expiresAt).toBe(brief.expiresAt);
    const endless = await world.management.create(world.draft("ann"), by);
    expect((await world.management.rotate(own(endless.id), 0, by)).expiresAt).toBeNull();
    expect((await world.management.find(own(endless.id)))?.state).toBe("expired");
    expect(await world.keys.findActive(endless.id)).toBeUndefined();
  });

  test("of a key that is revoked, expired, replaced, unknown or somebody else's is refused", async () => {
    const by = await world.add("admin", ["admin"]);
    const expired = await world.add("ann", ["keys"], "2020-01-01T00:00:00Z");
    const revoked = await world.add("ann");
    await world.management.revoke(own(revoked), by);
    for (const id of [expired, revoked])
      expect(await outcomeOf(world.management.rotate(own(id), DAY, by))).toBe("key-not-usable");
    const replaced = await world.add("ann");
    const { id: successor } = await world.management.rotate(own(replaced), DAY, by);
    await expect(world.management.rotate(own(replaced), DAY, by)).rejects.toMatchObject({
      code: "key-not-usable",
      message: expect.stringContaining("successor"),
    });
    expect(await outcomeOf(world.management.rotate({ id: successor, reach: "bob" }, DAY, by))).toBe("not-found");
    expect(await outcomeOf(world.management.revoke({ id: successor, reach: "bob" }, by))).toBe("not-found");
    expect(await world.management.find({ id: successor, reach: "bob" })).toBeUndefined();
    expect(await outcomeOf(world.management.rotate(own("NoSuchKeyAtA"), DAY, by))).toBe("not-found");
    expect(world.counts.keys).toMatchObject({ "not-usable": 2, replaced: 1, "not-found": 3 });
  });

  test("asked for sixteen times at once is carried out once: there are two live keys, never more", async () => {
    const key = await world.add("ann");
    const calls = Array.from({ length: 16 }, () => outcomeOf(world.management.rotate(own(key), DAY, key)));
    const outcomes = await Promise.all(calls);
    expect(outcomes.filter((outcome) => outcome === "done")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "key-not-usable")).toHaveLength(15);
    expect(await world.usableKeys("ann")).toBe(2);
  });

  test("without the lock is still carried out once, by the lock of its row", async () => {
    await world.removeLock();
    const key = await world.add("ann");
    const rotate = (id: string) =>
      `SELECT outcome FROM rotate_api_key('${key}', NULL, '${id}', sha256('x'), ${DAY}, '${key}')`;
    const [one, two] = [await world.sql.reserve(), await world.sql.reserve()];
    await one`BEGIN`;
    expect(await one.unsafe(rotate("aaaaaaaaaaaa"))).toEqual([{ outcome: "rotated" }]);
    const second = two.unsafe(rotate("bbbbbbbbbbbb")).execute();
    await world.waiting(1);
    await one`COMMIT`;
    expect(await second).toEqual([{ outcome: "replaced" }]);
    one.release();
    two.release();
  });

  test("and revocations of the same keys, all at once, leave no key that is usable after its revocation", async () => {
    const by = await world.add("admin", ["admin"]);
    const keys = await Promise.all(Array.from({ length: 16 }, () => world.add("ann")));
    await Promise.all(
      keys.flatMap((id) => [
        outcomeOf(world.management.rotate(own(id), DAY, by)),
        outcomeOf(world.management.revoke(own(id), by)),
      ]),
    );
    const found = await Promise.all(keys.map((id) => world.management.find(own(id))));
    expect(found.map((key) => key?.state)).toEqual(keys.map(() => "revoked"));
    expect(await world.usableKeys("ann")).toBe(found.filter((key) => key?.replacedBy !== null).length);
  });
});

test("a change of keys that cannot begin ends within its own wait, and says that nothing was done", async () => {
  const by = await world.add("ann");
  await world.sql.begin(async (holder) => {
    await holder`SELECT pg_advisory_xact_lock(${KEY_LOCK})`;
    expect(await outcomeOf(world.management.create(world.draft("ann"), by))).toBe("55P03");
  });
  expect(await world.usableKeys("ann")).toBe(1);
});
