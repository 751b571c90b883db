// What the table of API keys refuses, whoever asks, and what the role of the write service may do with it.
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { runMigrations, setUpAsDeployed } from "./main-schema.fixture.ts";

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase("empty");
});
afterEach(() => database.drop());

const insert = (id: string, over = "") =>
  `INSERT INTO api_key (id, owner, name, scopes, secret_hash) VALUES ('${id}', 'ann', 'n', '{admin}', sha256('x')) ${over}`;

test("a key that was there before is usable, and nobody's in particular made it", async () => {
  const { sql } = database;
  await runMigrations(sql, (name) => name < "0006");
  await sql.unsafe(insert("aaaaaaaaaaaa"));
  await runMigrations(sql, (name) => name >= "0006");
  const [made] = await sql`SELECT outcome, (made).created_by AS by
    FROM create_api_key('bbbbbbbbbbbb', sha256('y'), 'bob', 'n', '{keys}', NULL, NULL, 'aaaaaaaaaaaa')`;
  expect(made).toEqual({ outcome: "created", by: "aaaaaaaaaaaa" });
  const [old] = await sql`SELECT created_by, revoked_by, replaced_by FROM api_key WHERE id = 'aaaaaaaaaaaa'`;
  expect(old).toEqual({ created_by: null, revoked_by: null, replaced_by: null });
});

test("a key keeps its owner, its scopes and its secret, ends no later, comes back from no revocation and is never deleted", async () => {
  const { sql } = database;
  await runMigrations(sql);
  await sql.unsafe(insert("aaaaaaaaaaaa"));
  await sql`UPDATE api_key SET expires_at = '2999-01-01', name = 'other', last_used_at = now()`;
  await sql`UPDATE api_key SET expires_at = '2998-01-01'`;
  const refuse = async (...statements: string[]) => {
    for (const statement of statements) await expect(sql.unsafe(statement)).rejects.toMatchObject({ code: "23001" });
  };
  await refuse(
    "UPDATE api_key SET owner = 'bob'",
    "UPDATE api_key SET scopes = '{admin,keys}'",
    "UPDATE api_key SET secret_hash = sha256('z')",
    "UPDATE api_key SET id = 'bbbbbbbbbbbb'",
    "UPDATE api_key SET created_by = 'bbbbbbbbbbbb'",
    "UPDATE api_key SET expires_at = '2998-01-02'",
    "UPDATE api_key SET expires_at = NULL",
    "DELETE FROM api_key",
  );
  await sql`UPDATE api_key SET revoked_at = now(), revoked_by = id`;
  await refuse(
    "UPDATE api_key SET revoked_at = NULL, revoked_by = NULL",
    "UPDATE api_key SET revoked_at = '2999-01-01'",
  );
});

test("the write service makes, rotates, revokes and touches keys by functions alone, and the redirect service by none", async () => {
  const sql = await database.sql.reserve();
  await setUpAsDeployed(sql);
  await sql`SET SESSION AUTHORIZATION linkfence_write`;
  await sql.unsafe(insert("aaaaaaaaaaaa"));
  const create = "create_api_key('bbbbbbbbbbbb', sha256('y'), 'bob', 'n', '{keys}', NULL, NULL, 'aaaaaaaaaaaa')";
  const rotate = "rotate_api_key('bbbbbbbbbbbb', 'bob', 'cccccccccccc', sha256('z'), 60, 'aaaaaaaaaaaa')";
  const calls = [
    `SELECT outcome FROM ${create}`,
    `SELECT outcome FROM ${rotate}`,
    "SELECT revoke_api_key('cccccccccccc', NULL, 'aaaaaaaaaaaa') AS outcome",
    "SELECT touch_api_keys('{aaaaaaaaaaaa}') AS outcome",
  ];
  const outcomes = [];
  for (const call of calls) outcomes.push(...(await sql.unsafe(call)).map(({ outcome }) => outcome));
  expect(outcomes).toEqual(["created", "rotated", "revoked", 1]);
  const deny = async (...statements: string[]) => {
    for (const statement of statements) await expect(sql.unsafe(statement)).rejects.toMatchObject({ code: "42501" });
  };
  await deny(
    ...["name", "scopes", "owner", "expires_at", "revoked_at", "last_used_at"].map(
      (column) => `UPDATE api_key SET ${column} = ${column}`,
    ),
    "INSERT INTO api_key (id, owner, name, scopes, secret_hash, created_by) VALUES ('dddddddddddd', 'x', 'n', '{admin}', sha256('x'), 'aaaaaaaaaaaa')",
    "DELETE FROM api_key",
    "SELECT begin_key_change('aaaaaaaaaaaa')",
    "SELECT has_room_for_keys('ann', 1, now())",
  );
  await sql`SET SESSION AUTHORIZATION linkfence_redirect`;
  await deny("SELECT id FROM api_key", ...calls);
  await sql`RESET SESSION AUTHORIZATION`;
  sql.release();
});

test("a page of keys, their number and the last admin key are found by an index, however many keys are over", async () => {
  const { sql } = database;
  await runMigrations(sql);
  await sql`INSERT INTO api_key (id, owner, name, scopes, secret_hash, expires_at)
    SELECT lpad(n::text, 12, '0'), 'owner-' || n % 3, 'n', '{admin}', sha256('x'), '2020-01-01'
      FROM generate_series(1, 20000) AS n`;
  await sql`ANALYZE api_key`;
  for (const [query, index] of [
    [
      'SELECT * FROM api_key WHERE owner COLLATE "C" = \'owner-1\' ORDER BY created_at DESC, id COLLATE "C" DESC LIMIT 21',
      "api_key_listing",
    ],
    [
      "SELECT FROM api_key k WHERE k.owner COLLATE \"C\" = 'owner-1' AND k.revoked_at IS NULL AND coalesce(k.expires_at, 'infinity') > now() LIMIT 1001",
      "api_key_usable",
    ],
    [
      "SELECT FROM api_key k WHERE k.revoked_at IS NULL AND 'admin' = ANY (k.scopes) AND k.id <> 'x' AND k.replaced_by IS NULL AND coalesce(k.expires_at, 'infinity') > now()",
      "api_key_(admin|usable)",
    ],
  ] as const) {
    const plan = await sql.unsafe(`EXPLAIN ${query}`);
    expect(plan.map((row) => row["QUERY PLAN"]).join("\n")).toMatch(new RegExp(`Index.* ${index}`));
  }
});
