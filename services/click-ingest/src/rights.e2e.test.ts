// The service with the rights of its own role, as it is deployed.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type ExportJob, hasEnded } from "@linkfence/contracts";
import {
  createTestDatabase,
  type RunningService,
  runRights,
  startService,
  type TestDatabase,
  waitFor,
} from "@linkfence/testkit";
import { refuseBanned } from "./test-support/refusing-table.ts";
import { postBatch } from "./test-support/resending-sender.ts";
import { SAMPLE_AT, sampleClick, sampleClicks } from "./test-support/sample-clicks.ts";
import { scrapeSums } from "./test-support/scrape.ts";

let database: TestDatabase;
let service: RunningService;
let directory: string;

beforeAll(async () => {
  database = await createTestDatabase("stats");
  await refuseBanned(database);
  await runRights(database.sql, "roles");
  await runRights(database.sql, "grants-stats");
  const url = `${database.url}?options=${encodeURIComponent("-c role=linkfence_ingest")}`;
  directory = await mkdtemp(join(tmpdir(), "linkfence-exports-"));
  service = await startService("click-ingest", { STATS_DATABASE_URL: url, EXPORT_DIR: directory });
});
afterAll(async () => {
  await service.stop();
  await rm(directory, { recursive: true });
  await database.drop();
});

test("it stores, adds up, keeps dead letters, parts and counts what is refused, makes days, and reads, with no right to anything else", async () => {
  const clicks = sampleClicks(20);
  const account = { received: 23, inserted: 20, duplicate: 0, deadLettered: 2, refused: 1 };
  const others = [sampleClick({ code: "banned" }), sampleClick({ at: SAMPLE_AT - 500 * 86_400_000 })];
  expect(await postBatch(service.url, [...clicks, "bad", ...others])).toEqual(account);
  const dropped = { incarnation: "one", since: 0, totals: [{ reason: "stopped", total: 3 }] };
  const body = JSON.stringify({ sender: "test", dropped });
  const headers = { "Content-Type": "application/json" };
  expect((await fetch(`${service.url}/v1/drops`, { method: "POST", headers, body })).status).toBe(200);
  expect(await database.sql`SELECT reason, dropped::int FROM click_drop ORDER BY reason`).toEqual([
    { reason: "late", dropped: 1 },
    { reason: "stopped", dropped: 3 },
  ]);
  expect(await (await fetch(`${service.url}/v1/links/sample/stats`)).json()).toMatchObject({
    code: "sample",
    total: 20,
  });
  const sum = await scrapeSums(service.opsUrl);
  expect(sum("linkfence_ingest_dead_clicks")).toBe(2);
  expect(sum("linkfence_ingest_chores_failed_total")).toBe(0);
});

test("it takes orders of exports, writes their files, cancels and tidies up", async () => {
  const order = { owner: "ann", orderedBy: "k", idempotencyKey: null, digest: "0".repeat(64), codes: null, from: null };
  const body = JSON.stringify({ ...order, to: 4_000_000_000_000, format: "csv", gzip: false });
  const ask = async (path: string, init: RequestInit = {}) => {
    const headers = { "Content-Type": "application/json" };
    return (await (await fetch(`${service.url}/v1/exports${path}`, { headers, ...init })).json()) as ExportJob;
  };
  const { id } = await ask("", { method: "POST", body });
  const job = await waitFor("the export", async () => {
    const found = await ask(`/${id}?owner=ann`);
    return hasEnded(found) && found;
  });
  expect([job.state, job.error]).toEqual(["SUCCEEDED", null]);
  expect(await ask(`/${id}?owner=ann`, { method: "DELETE" })).toMatchObject({ outcome: "finished" });
  const sum = await scrapeSums(service.opsUrl);
  expect(sum("linkfence_ingest_chores_failed_total")).toBe(0);
});

test.each([
  "UPDATE export_job SET owner = 'bob'",
  "DELETE FROM export_job",
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
  "DELETE FROM refused_click",
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
