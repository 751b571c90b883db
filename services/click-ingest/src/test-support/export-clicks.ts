import { createDatabase } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { openClickStore } from "./open-store.ts";
import { SAMPLE_AT } from "./sample-clicks.ts";

/** A statistics database in which clicks of the sample's day can be stored. */
export async function openClickDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase("stats");
  const pool = createDatabase({ url: database.url, applicationName: "test", max: 1, queryTimeoutMs: 10_000 });
  await openClickStore(pool).days.maintain();
  await pool.close();
  return database;
}

/**
 * Puts clicks of one millisecond into the table, each of a quarter of a KiB. Their day has to have its partition.
 * @param from how many of that millisecond are there already
 */
export async function fillClicks(
  { sql }: Pick<TestDatabase, "sql">,
  { count, at = SAMPLE_AT, owner = "ann", from = 0 }: { count: number; at?: number; owner?: string; from?: number },
): Promise<void> {
  const time = at.toString(16).padStart(12, "0");
  await sql`
    INSERT INTO click (click_id, link_version, clicked_at, code, owner, referrer_host, browser, os, device, country, bot,
                       prefetch)
    SELECT (${`${time.slice(0, 8)}-${time.slice(8)}-7000-8000-`} || lpad(to_hex(number), 12, '0'))::uuid, 1,
           ${new Date(at)}, 'sample', ${owner}, repeat('x', 200), '', '', '', '', false, false
      FROM generate_series(${from + 1}::int, ${from + count}::int) AS number`;
}
