// What the schema does for listings by itself: the index of tags, the secrets of cursors, and who may touch them.
import { expect, test } from "@jest/globals";
import { createTestDatabase } from "@linkfence/testkit";
import { runMigrations, setUpAsDeployed } from "./main-schema.fixture.ts";

const listing = "0005_listing.sql";

test("tags that links had before are found like those of new ones", async () => {
  const database = await createTestDatabase("empty");
  const { sql } = database;
  const insert = (code: string, tags: string[]) => sql`
    INSERT INTO link (code, target, owner, kind, created_by, tags)
    VALUES (${code}, 'https://a.example/', 'ann', 'ALIAS', 'k', ${tags})`;
  await runMigrations(sql, (name) => name < listing);
  await insert("before", ["t", "t", "u"]);
  await insert("without", []);
  await runMigrations(sql, (name) => name === listing);
  await insert("behind", ["t"]);
  const rows =
    await sql`SELECT tag, code FROM link_tag t WHERE created_at = (SELECT created_at FROM link l WHERE l.code = t.code COLLATE "default")
    ORDER BY 1, 2`;
  expect(rows.map(({ tag, code }) => `${tag} ${code}`)).toEqual(["t before", "t behind", "u before"]);
  await database.drop();
});

test("no two databases have the same secret for cursors, and a new one is as long", async () => {
  const secrets = [];
  for (let i = 0; i < 2; i++) {
    const database = await createTestDatabase("empty");
    await runMigrations(database.sql);
    await database.sql`INSERT INTO cursor_key DEFAULT VALUES`;
    secrets.push(...(await database.sql`SELECT encode(secret, 'hex') AS secret FROM cursor_key`));
    await database.drop();
  }
  expect(new Set(secrets.map(({ secret }) => secret)).size).toBe(4);
  for (const { secret } of secrets) expect(secret).toMatch(/^[0-9a-f]{64}$/);
});

test("the write service edits titles, tags and notes with the rights that it has, and nothing else of a link", async () => {
  const database = await createTestDatabase("empty");
  const sql = await database.sql.reserve();
  await setUpAsDeployed(sql);
  await sql`SET SESSION AUTHORIZATION linkfence_write`;
  await sql`INSERT INTO link (code, target, owner, kind, created_by, tags, note)
    VALUES ('first', 'https://a.example/', 'ann', 'ALIAS', 'k', '{old}', 'N')`;
  await sql`UPDATE link SET title = 'T', tags = '{new}', note = NULL WHERE code = 'first'`;
  expect([...(await sql`SELECT tag, code FROM link_tag`)]).toEqual([{ tag: "new", code: "first" }]);
  expect(await sql`SELECT id FROM cursor_key`).toHaveLength(1);
  const refused = async (...statements: string[]) => {
    for (const statement of statements) await expect(sql.unsafe(statement)).rejects.toMatchObject({ code: "42501" });
  };
  await refused(
    ...["target", "owner", "state", "version", "expires_at"].map((column) => `UPDATE link SET ${column} = ${column}`),
    "DELETE FROM link_tag",
    "INSERT INTO link_tag VALUES ('bob', 't', now(), 'first')",
    "INSERT INTO cursor_key DEFAULT VALUES",
    "DELETE FROM cursor_key",
  );
  await sql`SET SESSION AUTHORIZATION linkfence_redirect`;
  await refused("SELECT secret FROM cursor_key", "SELECT code FROM link_tag", "SELECT note FROM link");
  await sql`RESET SESSION AUTHORIZATION`;
  sql.release();
  await database.drop();
});

test("before there are statistics, a link is looked up and revoked by its code, not by way of all links of its owner", async () => {
  const database = await createTestDatabase("main");
  const { sql } = database;
  await sql`INSERT INTO link (code, target, owner, kind, created_by)
    SELECT 'code' || n, 'https://a.example/', 'ann', 'RANDOM', 'k' FROM generate_series(1, 1000) AS n`;
  const condition = "WHERE code = 'code5' AND owner = 'ann'";
  for (const statement of [
    `SELECT * FROM link ${condition}`,
    `UPDATE link SET title = NULL ${condition}`,
    `UPDATE link SET state = 'REVOKED' ${condition} AND state = 'ACTIVE'`,
  ]) {
    const plan = await sql.unsafe(`EXPLAIN ${statement}`);
    expect(plan.map((row) => row["QUERY PLAN"]).join()).toMatch(/link_pkey/);
  }
  await database.drop();
});
