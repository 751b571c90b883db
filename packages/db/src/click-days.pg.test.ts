// The migration of clicks that were stored before they had days and were added up.
import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { createTestDatabase, findRollupFaults } from "@linkfence/testkit";

const FOLDER = new URL("../migrations/stats/", import.meta.url);

test("clicks of the earlier schema move into their days, are added up, and lose their user agents", async () => {
  const database = await createTestDatabase("empty");
  const { sql } = database;
  const files = (await readdir(FOLDER)).sort();
  const run = async (name: string) => sql.unsafe(await readFile(new URL(name, FOLDER), "utf8")).simple();
  for (const name of files.filter((file) => file < "0003")) await run(name);
  // Over two days and more than one portion, with every quarter of an hour among them.
  await sql`
    INSERT INTO click (click_id, code, link_version, clicked_at, referrer_host, user_agent)
    SELECT (left(rpad(lpad(to_hex(ms), 12, '0'), 32, '0'), 12) || '7' || lpad(to_hex(n), 19, '0'))::uuid, 'code' || n % 7, 1,
           timestamptz 'epoch' + ms * interval '1 ms', nullif('host' || n % 3, 'host0'), 'Mozilla/5.0'
      FROM (SELECT n, 1790000000000 + n * 7001::bigint AS ms FROM generate_series(1, 12000) AS n) AS numbered`;
  for (const name of files.filter((file) => file >= "0003")) await run(name);
  const [row] = await sql`
    SELECT count(*)::int AS rows, count(DISTINCT code)::int AS codes, count(*) FILTER (WHERE referrer_host = '')::int AS bare,
           count(DISTINCT tableoid)::int AS days FROM click`;
  expect(row).toEqual({ rows: 12_000, codes: 7, bare: 4000, days: 2 });
  expect(await findRollupFaults(database)).toEqual([]);
  const columns = await sql`
    SELECT FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'user_agent'`;
  expect(columns).toHaveLength(0);
  await database.drop();
});
