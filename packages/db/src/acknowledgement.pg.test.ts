// Acknowledgements that wake who waits for them: the one by which all instances have come further, and no other.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase, until } from "@linkfence/testkit";
import postgres from "postgres";

const INSTANCES = 8;
const ROUNDS = 25;

let database: TestDatabase;
/** A connection for each instance, so that all of them can acknowledge at the same time. */
let sql: postgres.Sql;
let ids: string[];
let heard: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase("main");
  sql = postgres(database.url, { max: INSTANCES });
  await database.sql.listen("instance_ack", (payload) => heard.push(payload));
});
beforeEach(async () => {
  await sql`DELETE FROM redirect_instance`;
  ids = Array.from({ length: INSTANCES }, () => randomUUID());
  for (const id of ids) await sql`SELECT register_instance(${id}::uuid, 'somewhere:1', 60000, true)`;
  heard = [];
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

let renewals = 0;
const acknowledge = (id: string, seq: number) =>
  sql`SELECT registered FROM sync_instance(${id}::uuid, NULL, 1, ${++renewals}, false, ${seq}::bigint, feed_epoch())`;

/** Returns how many acknowledgements notified since the last call: all notifications arrive in the order of their commits. */
async function notified(): Promise<number> {
  const mark = randomUUID();
  await sql`SELECT pg_notify('instance_ack', ${mark})`;
  await until(() => heard.includes(mark));
  const count = heard.indexOf(mark);
  heard = [];
  return count;
}

test("one that leaves others behind wakes nobody, and the last one does", async () => {
  const [last = "", ...others] = ids;
  for (const id of others) await acknowledge(id, 5);
  expect(await notified()).toBe(0);
  for (const id of others) await acknowledge(id, 9);
  expect(await notified()).toBe(0);
  await acknowledge(last, 5);
  expect(await notified()).toBe(1);
  await acknowledge(last, 5);
  expect(await notified()).toBe(0);
  await acknowledge(last, 9);
  expect(await notified()).toBe(1);
});

test("of several at the same time one wakes, in every round", async () => {
  for (let round = 1; round <= ROUNDS; round += 1) {
    await Promise.all(ids.map((id) => acknowledge(id, round)));
    expect(await notified()).toBe(1);
  }
});
