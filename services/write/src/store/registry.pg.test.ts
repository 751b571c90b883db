// What a look at the registry says of its rows.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { hasApplied } from "../domain/registry.ts";
import { createRegistryStore } from "./registry.ts";

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase("main");
  db = createDatabase({ url: database.url, applicationName: "test", max: 2, queryTimeoutMs: 10_000 });
});
afterAll(async () => {
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
