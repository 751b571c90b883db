// What becomes of a look that takes too long, though the garbage is collected meanwhile as it is in any process that works.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createTestDatabase, meanwhile, type TestDatabase, until } from "@linkfence/testkit";
import { withSnapshot } from "./snapshot.ts";

const APPLICATION = "snapshot-test";
setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase("stats");
});
afterAll(() => database.drop());

const take = <T>(work: Parameters<typeof withSnapshot<T>>[1], timeoutMs = 500, signal = new AbortController().signal) =>
  withSnapshot({ url: database.url, applicationName: APPLICATION, connectTimeoutMs: 10_000, timeoutMs, signal }, work);
const taken = () =>
  database.sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = ${APPLICATION}`;

test("a look ends at its deadline, whatever was collected before it", async () => {
  const looking = take(({ rows }) => rows("SELECT pg_sleep(60)"));
  await meanwhile(
    async () => collect(),
    () => expect(looking).rejects.toMatchObject({ name: "TimeoutError" }),
  );
  await until(async () => (await taken()).length === 0);
});

test("one whose signal is aborted ends with the reason, whatever was collected before", async () => {
  const broken = new AbortController();
  const looking = take(({ rows }) => rows("SELECT pg_sleep(60)"), 60_000, broken.signal);
  const ended = expect(looking).rejects.toThrow("enough");
  await until(async () => (await taken()).length === 1);
  for (let times = 0; times < 3; times += 1) collect();
  broken.abort(new Error("enough"));
  await ended;
  await until(async () => (await taken()).length === 0);
});

test("who has not taken yet what was sent is not ended as idle: its deadline is the one that holds", async () => {
  const settings = await take(
    ({ rows }) => rows("SELECT current_setting('idle_in_transaction_session_timeout')"),
    60_000,
  );
  expect(settings).toEqual([{ current_setting: "1min" }]);
});

test("one that is done in time keeps no deadline behind it", async () => {
  expect(await take(({ rows }) => rows("SELECT 1 AS one"))).toEqual([{ one: 1 }]);
  await until(async () => (await taken()).length === 0);
});
