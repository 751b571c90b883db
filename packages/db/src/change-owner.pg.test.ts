// Whose change each row of the log is, and what it costs to read one owner's among those of all others.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import type postgres from "postgres";
import { runMigrations, setUpAsDeployed } from "./main-schema.fixture.ts";

const OWNERS = "0008_change_owner.sql";

const insertLinks = (sql: postgres.Sql | postgres.ReservedSql, prefix: string, owner: string, count: number) => sql`
  INSERT INTO link (code, target, owner, kind, created_by)
  SELECT ${prefix} || n, 'https://a.example/', ${owner}, 'ALIAS', 'k' FROM generate_series(1, ${count}) n`;

test("changes that were there before belong to the owners of their links, and so do those put in by hand", async () => {
  const database = await createTestDatabase("empty");
  const { sql } = database;
  await runMigrations(sql, (name) => name < OWNERS);
  await insertLinks(sql, "ann-", "ann", 4);
  await insertLinks(sql, "bob-", "bob", 2);
  await sql`SELECT revoke_links('{ann-1,ann-2}', 'ann', 'k'), revoke_links('{bob-1}', 'bob', 'k')`;
  await runMigrations(sql, (name) => name === OWNERS);
  await sql`SELECT revoke_links('{ann-3}', 'ann', 'k')`;
  await sql`INSERT INTO link_change (code, version, changed_by) VALUES ('bob-2', 2, 'by hand')`;
  await sql`UPDATE link SET revoked_seq = NULL WHERE code = 'bob-1'`;
  await sql`DELETE FROM link_change WHERE code = 'bob-1'`;
  await sql`SELECT revoke_links('{bob-1}', 'bob', 'k')`;
  const rows = await sql`SELECT owner, code FROM link_change ORDER BY owner, seq`;
  expect(rows.map(({ owner, code }) => `${owner} ${code}`)).toEqual([
    ...["ann ann-1", "ann ann-2", "ann ann-3"],
    ...["bob bob-2", "bob bob-1"],
  ]);
  await expect(
    sql`INSERT INTO link_change (code, version, changed_by) VALUES ('nobodys', 2, 'by hand')`,
  ).rejects.toMatchObject({ code: "23502" });
  await database.drop();
});

test("the write service reads an owner's changes with the rights that it has; a redirect process may not", async () => {
  const database = await createTestDatabase("empty");
  const sql = await database.sql.reserve();
  await setUpAsDeployed(sql);
  await insertLinks(sql, "ann-", "ann", 1);
  const read = () => sql`SELECT code FROM owner_changes('ann', 0, 9, 9)`;
  await sql`SET SESSION AUTHORIZATION linkfence_write`;
  await sql`SELECT revoke_links('{ann-1}', 'ann', 'k')`;
  expect([...(await read())]).toEqual([{ code: "ann-1" }]);
  await expect(sql`UPDATE link_change SET owner = 'bob'`).rejects.toMatchObject({ code: "42501" });
  await sql`SET SESSION AUTHORIZATION linkfence_redirect`;
  await expect(read()).rejects.toMatchObject({ code: "42501" });
  await sql`RESET SESSION AUTHORIZATION`;
  sql.release();
  await database.drop();
});

describe("in a long log, most of it somebody else's", () => {
  const LENGTH = 60_000;
  let database: TestDatabase;
  let one: postgres.ReservedSql;

  /** Blocks that a statement looks at, in memory or not. Run once before, so that catalogues have been read. */
  async function blocksOf(statement: string) {
    await one.unsafe(statement);
    const [row] = await one.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement}`);
    const plan = row?.["QUERY PLAN"][0].Plan ?? {};
    return Number(plan["Shared Hit Blocks"]) + Number(plan["Shared Read Blocks"]);
  }
  const page = (owner: string, after: number, limit = 100) =>
    `SELECT * FROM owner_changes('${owner}', ${after}, 9007199254740991, ${limit})`;
  const append = (owner: string, count: number) => database.sql`
    INSERT INTO link_change (code, version, changed_by, owner)
    SELECT 'long1', 2, 'k', ${owner} FROM generate_series(1, ${count})`;

  beforeAll(async () => {
    database = await createTestDatabase("main");
    await insertLinks(database.sql, "long", "ann", 1);
    one = await database.sql.reserve();
    await database.sql`ALTER TABLE link_change SET (autovacuum_enabled = off)`;
    await database.sql`
      INSERT INTO link_change (code, version, changed_by, owner)
      SELECT 'long1', 2, 'k', CASE WHEN n % 300 = 0 THEN 'rare' WHEN n < 100 THEN 'early' ELSE 'ann' END
        FROM generate_series(1, ${LENGTH}) n`;
  });
  afterAll(async () => {
    one.release();
    await database.drop();
  });

  /** Each row may lie on a block of its own; three levels of the index, and its leaves. */
  const bound = (limit: number) => limit + 3 + Math.ceil(limit / 50);

  async function expectBounded(): Promise<void> {
    for (const owner of ["ann", "rare", "early", "late", "nobody"])
      for (const after of [0, LENGTH / 2, LENGTH - 10, 2 * LENGTH])
        for (const limit of [1, 100, 1001]) {
          const blocks = await blocksOf(page(owner, after, limit));
          expect({ owner, after, limit, within: blocks <= bound(limit) || blocks }).toMatchObject({ within: true });
        }
  }

  test("a page looks at a bounded number of blocks: without statistics, with them, and with those of yesterday", async () => {
    await expectBounded();
    await database.sql`ANALYZE link_change`;
    await expectBounded();
    await append("late", 20_000);
    await append("ann", 20_000);
    await expectBounded();
  });

  test("control: asked for by owner and number, as one would, a page looks at nearly all of the log", async () => {
    const plain = (owner: string) =>
      `SELECT * FROM link_change WHERE owner = '${owner}' AND seq > 100 ORDER BY seq LIMIT 100`;
    const blocks = [await blocksOf(plain("early")), await blocksOf(plain("nobody"))];
    const [log] = await one`SELECT (pg_relation_size('link_change') / 8192)::int AS blocks`;
    expect(Math.min(...blocks)).toBeGreaterThan(log?.blocks * 0.9);
  });

  test("what redirects ask of the log costs what it did before there were owners", async () => {
    const sync = `SELECT * FROM sync_instance('00000000-0000-4000-8000-000000000001', ${LENGTH}, 1, NULL, false, 0, 'e')`;
    const head = "SELECT max(seq) FROM link_change";
    const withOwners = [await blocksOf(sync), await blocksOf(head)];
    await one`BEGIN`;
    await one`DROP INDEX link_change_owner`;
    const without = [await blocksOf(sync), await blocksOf(head)];
    await one`ROLLBACK`;
    expect(withOwners).toEqual(without);
    expect(withOwners[1]).toBeLessThanOrEqual(5);
  });
});
