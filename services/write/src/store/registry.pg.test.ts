// What a look at the registry says of its rows.
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { hasApplied } from "../domain/registry.ts";
import { createRegistryStore } from "./registry.ts";

let database: TestDatabase;
let db: Database;
beforeEach(async () => {
  database = await createTestDatabase("main");
  db = createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 10_000 });
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

test("a look tells of each row what it holds, and believes no acknowledgement of a process that follows nothing", async () => {
  const [follower, deaf] = [randomUUID(), randomUUID()];
  for (const [id, address, follows] of [
    [follower, "one:7000", true],
    [deaf, "two, {f}:7000", false],
  ] as const) {
    await database.sql`SELECT register_instance(${id}::uuid, ${address}, 7000, ${follows})`;
  }
  let clock = 0;
  const sight = await createRegistryStore(db, () => ++clock).look();
  const row = (id: string) => sight.instances.find((instance) => instance.id === id);
  const { epoch } = sight;
  expect(sight).toMatchObject({ sentAt: 1, receivedAt: 2, settled: true, head: 0 });
  const fresh = { ttlMs: 7000, epoch, appliedSeq: 0, renewals: 0 };
  expect(row(follower)).toEqual({ id: follower, address: "one:7000", followsFeed: true, ...fresh });
  expect(row(deaf)).toEqual({ id: deaf, address: "two, {f}:7000", followsFeed: false, ...fresh });
  expect(sight.instances.filter((instance) => hasApplied(instance, 0, epoch)).map(({ id }) => id)).toEqual([follower]);
});

test("trimming ends at the first change that is not old, also where the server's clock was set back after it", async () => {
  const { sql } = database;
  const ages = ["2 days", "2 days", "0 days", "2 days", "2 days", "0 days"];
  for (const [n, age] of ages.entries()) {
    await sql`INSERT INTO link (code, target, owner, kind, created_by)
      VALUES (${`trim${n}`}, 'https://example.com/', 'ann', 'ALIAS', 'k')`;
    await sql`SELECT * FROM revoke_links(ARRAY[${`trim${n}`}], 'ann', 'k')`;
    await sql`UPDATE link_change SET changed_at = now() - ${age}::text::interval WHERE code = ${`trim${n}`}`;
  }
  const store = createRegistryStore(db, () => 0);
  expect(await store.trim(86_400_000, 100)).toBe(2);
  const left = await sql`SELECT code FROM link_change ORDER BY seq`;
  expect(left.map(({ code }) => code)).toEqual(["trim2", "trim3", "trim4", "trim5"]);
  // As a control, old changes behind one that is not: a reader that stands at this one would miss them.
  const [row] = await sql`
    SELECT count(*)::int AS old FROM link_change
     WHERE changed_at < now() - interval '1 day' AND seq < (SELECT max(seq) FROM link_change)`;
  expect(row?.old).toBe(2);
  expect(await store.trim(0, 100)).toBe(3);
  expect(await store.trim(0, 100)).toBe(0);
});

test.each([
  [
    "a TTL of more than an hour",
    (id: string) => database.sql`SELECT register_instance(${id}::uuid, 'x', 3600001, true)`,
  ],
  [
    "a number that nobody can read",
    async (id: string) => {
      await database.sql`SELECT register_instance(${id}::uuid, 'x', 1000, true)`;
      await database.sql`SELECT sync_instance(${id}::uuid, 0, 1, 1, true, 9007199254740992, 'x')`;
    },
  ],
  [
    "a count of renewals that nobody can read",
    async (id: string) => {
      await database.sql`SELECT register_instance(${id}::uuid, 'x', 1000, true)`;
      await database.sql`SELECT sync_instance(${id}::uuid, 0, 1, 9223372036854775807, true, 1, 'x')`;
    },
  ],
])("no process can say %s of itself, so that everybody can look at the registry", async (_what, say) => {
  await expect((async () => say(randomUUID()))()).rejects.toMatchObject({ code: "23514" });
  const { instances } = await createRegistryStore(db, () => 0).look();
  expect(instances.every(({ ttlMs }) => ttlMs <= 3_600_000)).toBe(true);
});
