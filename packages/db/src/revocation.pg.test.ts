// The SQL functions that revoke and register, where somebody has been at the log, its sequence or the registry by hand.
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import type postgres from "postgres";
import { setUpAsDeployed } from "./main-schema.fixture.ts";

type Sql = postgres.Sql | postgres.ReservedSql;
type Revoked = { outcome: string; version: number; seq: number | null };

const GREATEST = Number.MAX_SAFE_INTEGER;
const MIGRATIONS = ["0001_links", "0002_redirect_instances", "0003_revocation_numbers", "0004_idempotency"];
const migration = (name: string) => readFile(new URL(`../migrations/main/${name}.sql`, import.meta.url), "utf8");

let count = 0;
async function createLink(sql: Sql): Promise<string> {
  const code = `link-${count++}`;
  await sql`INSERT INTO link (code, target, owner, kind, created_by)
    VALUES (${code}, 'https://a.example/', 'ann', 'ALIAS', 'k')`;
  return code;
}

/** Revokes; numbers as numbers. */
async function revoke(sql: Sql, ...codes: string[]): Promise<Revoked[]> {
  const rows = await sql<Revoked[]>`
    SELECT outcome, version::float8 AS version, seq::float8 AS seq
      FROM revoke_links(${codes}::text[], 'ann', 'k') ORDER BY ordinal`;
  return rows.map((row) => ({ ...row }));
}

const revokeNew = async (sql: Sql) => (await revoke(sql, await createLink(sql)))[0]?.seq ?? 0;

async function head(sql: Sql): Promise<number> {
  const [row] = await sql<{ head: number }[]>`SELECT max(seq)::float8 AS head FROM link_change`;
  return row?.head ?? 0;
}

const insertByHand = (sql: Sql, seq: number, code: string) =>
  sql`INSERT INTO link_change (seq, code, version, changed_by) VALUES (${seq}, ${code}, 2, 'by hand')`;

describe("a revocation", () => {
  let database: TestDatabase;
  let sql: postgres.Sql;
  beforeAll(async () => {
    database = await createTestDatabase("main");
    sql = database.sql;
  });
  afterAll(() => database.drop());

  test("that is repeated after the log was trimmed tells the same number, and writes nothing", async () => {
    const code = await createLink(sql);
    const [first] = await revoke(sql, code);
    await sql`DELETE FROM link_change`;
    const again = { outcome: "already-revoked", version: -1, seq: first?.seq };
    expect(await revoke(sql, code, code)).toEqual([again, again]);
    expect(await sql`SELECT seq FROM link_change`).toHaveLength(0);
  });

  test("whose number is known nowhere is given one, once, and readers are told of it", async () => {
    const code = await createLink(sql);
    await revoke(sql, code);
    await sql`DELETE FROM link_change`;
    await sql`UPDATE link SET revoked_seq = NULL WHERE code = ${code}`;
    const [first, again] = await revoke(sql, code, code);
    expect(first).toEqual({ outcome: "already-revoked", version: -1, seq: expect.any(Number) });
    expect(again).toEqual(first);
    const rows = await sql`SELECT seq::float8 AS seq, code, version::int AS version FROM link_change`;
    expect([...rows]).toEqual([{ seq: first?.seq, code, version: 2 }]);
  });

  test.each([
    ["set back to its start", () => sql`SELECT setval('link_change_seq_seq', 1, false)`],
    ["set back a little", () => sql`SELECT setval('link_change_seq_seq', ${2})`],
    ["passed by with a row", async () => insertByHand(sql, (await head(sql)) + 1000, await createLink(sql))],
    ["passed by, one ahead", async () => insertByHand(sql, (await head(sql)) + 1, await createLink(sql))],
  ])("draws a number above all others where the sequence was %s", async (_what, tamper) => {
    for (let n = 0; n < 3; n += 1) await revokeNew(sql);
    await tamper();
    const before = await head(sql);
    const codes = [await createLink(sql), await createLink(sql)];
    const seqs = (await revoke(sql, ...codes)).map(({ seq }) => seq);
    expect(seqs).toEqual([before + 1, before + 2]);
    expect(await revokeNew(sql)).toBe(before + 3);
  });

  test("next to a row beyond what JavaScript counts to is refused, and the sequence is left for when it is gone", async () => {
    const before = await revokeNew(sql);
    const code = await createLink(sql);
    await sql`INSERT INTO link_change (seq, code, version, changed_by) VALUES (9007199254740993, ${code}, 2, 'by hand')`;
    await expect(revoke(sql, code)).rejects.toMatchObject({ code: "2200H" });
    await sql`DELETE FROM link_change WHERE changed_by = 'by hand'`;
    expect(await revoke(sql, code)).toEqual([{ outcome: "revoked", version: 2, seq: before + 1 }]);
  });

  test("takes the last number that JavaScript counts to; beyond it nothing is revoked, and removing the cause helps", async () => {
    const before = await revokeNew(sql);
    await insertByHand(sql, GREATEST - 1, await createLink(sql));
    expect(await revokeNew(sql)).toBe(GREATEST);
    const codes = [await createLink(sql), await createLink(sql)];
    const refused = { code: "2200H", hint: expect.stringContaining("Nothing was revoked") };
    await expect(revoke(sql, ...codes)).rejects.toMatchObject(refused);
    await sql`DELETE FROM link_change WHERE seq = ${GREATEST}`;
    // The sequence alone is beyond it now; and within one call the second of two may be the one too many.
    await expect(revoke(sql, ...codes)).rejects.toMatchObject(refused);
    await sql`SELECT setval('link_change_seq_seq', ${GREATEST - 1})`;
    await expect(revoke(sql, ...codes)).rejects.toMatchObject(refused);
    const active = await sql`SELECT FROM link WHERE code = ANY(${codes}) AND state = 'ACTIVE'`;
    expect(active).toHaveLength(2);
    expect(await head(sql)).toBe(GREATEST - 1);
    await sql`DELETE FROM link_change WHERE seq >= ${GREATEST - 1}`;
    await sql`SELECT setval('link_change_seq_seq', ${before})`;
    expect((await revoke(sql, ...codes)).map(({ seq }) => seq)).toEqual([before + 1, before + 2]);
  });
});

test("links that were revoked before get their numbers from the log; links that live get none", async () => {
  const database = await createTestDatabase("empty");
  const [links = "", instances = "", numbers = ""] = await Promise.all(MIGRATIONS.map(migration));
  await database.sql.unsafe(links + instances);
  const [revoked, active] = [await createLink(database.sql), await createLink(database.sql)];
  const [before] = await revoke(database.sql, revoked);
  await database.sql.unsafe(numbers);
  const rows = await database.sql`SELECT code, revoked_seq::int AS seq FROM link ORDER BY state DESC`;
  expect([...rows]).toEqual([
    { code: revoked, seq: before?.seq },
    { code: active, seq: null },
  ]);
  await database.drop();
});

test("the write service revokes with the rights that it has, and cannot draw or set numbers by itself", async () => {
  const database = await createTestDatabase("empty");
  const sql = await database.sql.reserve();
  await setUpAsDeployed(sql);
  await sql`SET SESSION AUTHORIZATION linkfence_write`;
  const first = await revokeNew(sql);
  await sql`RESET SESSION AUTHORIZATION`;
  await insertByHand(sql, first + 10, await createLink(sql));
  await sql`SET SESSION AUTHORIZATION linkfence_write`;
  expect(await revokeNew(sql)).toBe(first + 11);
  for (const statement of ["SELECT next_change_seq(0)", "SELECT setval('link_change_seq_seq', 1)"])
    await expect(sql.unsafe(statement)).rejects.toMatchObject({ code: "42501" });
  await sql`SET SESSION AUTHORIZATION linkfence_redirect`;
  await expect(revoke(sql, "link-0")).rejects.toMatchObject({ code: "42501" });
  await sql`RESET SESSION AUTHORIZATION`;
  sql.release();
  await database.drop();
});

test("a redirect process may register again in a full registry; one more may not", async () => {
  const database = await createTestDatabase("main");
  const register = (id: string) => database.sql`SELECT register_instance(${id}::uuid, 'a', 1, true)`;
  const [first] = await database.sql<{ id: string }[]>`
    INSERT INTO redirect_instance (id, address, ttl_ms, follows_feed, epoch)
    SELECT gen_random_uuid(), 'a', 1, true, 'e' FROM generate_series(1, 999) RETURNING id`;
  await register("00000000-0000-4000-8000-000000000001");
  await register("00000000-0000-4000-8000-000000000001");
  await register(first?.id ?? "");
  await expect(register("00000000-0000-4000-8000-000000000002")).rejects.toMatchObject({ code: "53400" });
  expect(await database.sql`SELECT FROM redirect_instance`).toHaveLength(1000);
  await database.drop();
});
