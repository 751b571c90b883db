// The service with the rights of its own role, as it is deployed.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  createTestDatabase,
  type RunningService,
  runRights,
  startService,
  type TestDatabase,
} from "@linkfence/testkit";
import { postBatch } from "./test-support/resending-sender.ts";
import { sampleClicks } from "./test-support/sample-clicks.ts";
import { scrapeSums } from "./test-support/scrape.ts";

let database: TestDatabase;
let service: RunningService;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  await runRights(database.sql, "roles");
  await runRights(database.sql, "grants-stats");
  const url = `${database.url}?options=${encodeURIComponent("-c role=linkfence_ingest")}`;
  service = await startService("click-ingest", { STATS_DATABASE_URL: url });
});
afterAll(async () => {
  await service.stop();
  await database.drop();
});

test("it stores, adds up, keeps dead letters, makes days, and reads, with no right to anything else", async () => {
  const clicks = sampleClicks(20);
  const account = { received: 21, inserted: 20, duplicate: 0, deadLettered: 1, refused: 0 };
  expect(await postBatch(service.url, [...clicks, "bad"])).toEqual(account);
  expect(await (await fetch(`${service.url}/v1/links/sample/stats`)).json()).toMatchObject({
    code: "sample",
    total: 20,
  });
  const sum = await scrapeSums(service.opsUrl);
  expect(sum("linkfence_ingest_dead_clicks")).toBe(1);
  expect(sum("linkfence_ingest_chores_failed_total")).toBe(0);
});

test.each([
  "INSERT INTO click DEFAULT VALUES",
  "UPDATE click SET code = code",
  "DELETE FROM click",
  "UPDATE click_hour SET people_q0 = 0",
  "DELETE FROM owner_hour",
  "UPDATE click_day SET people = 0",
  "DELETE FROM click_day_value",
  "UPDATE click_day_added SET people = 0",
  "INSERT INTO click_drop DEFAULT VALUES",
  "DELETE FROM click_drop_report",
  "UPDATE click_retention SET oldest_day = now()",
  "SELECT payload FROM dead_click",
  "DELETE FROM dead_click",
  "SELECT attach_click_day(date '2000-01-01')",
  "SELECT roll_up_clicks('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 1)",
  "CREATE TABLE mine (x int)",
  "CREATE TEMP TABLE click (x int)",
])("its role may not: %s", async (statement) => {
  const asRole = database.sql.begin(async (sql) => {
    await sql`SET LOCAL ROLE linkfence_ingest`;
    await sql.unsafe(statement);
  });
  await expect(asRole).rejects.toMatchObject({ code: "42501" });
});
