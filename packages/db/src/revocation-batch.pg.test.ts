// Many codes in one call come to what the loop of the third migration made of them, one after the other.
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase, until } from "@linkfence/testkit";
import fc from "fast-check";
import type postgres from "postgres";

const OWNERS = ["ann", "bob"];
const CODES = ["aaa", "bbb", "ccc", "ddd", "eee", "fff"];

let now: TestDatabase;
let before: TestDatabase;
beforeAll(async () => {
  [now, before] = await Promise.all([createTestDatabase("main"), createTestDatabase("main")]);
  const numbers = await readFile(new URL("../migrations/main/0003_revocation_numbers.sql", import.meta.url), "utf8");
  const [loop] = /CREATE OR REPLACE FUNCTION revoke_links.*?END \$\$;/s.exec(numbers) ?? [];
  if (loop === undefined) throw new Error("the loop is not where it was");
  await before.sql.unsafe(loop);
});
afterAll(() => Promise.all([now.drop(), before.drop()]));

type Step = { what: "revoke"; codes: string[]; owner: string } | { what: "trim" | "forget" };
const codes = fc.array(fc.constantFrom(...CODES, "unknown", "nobody's"), { maxLength: 10 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ what: fc.constant("revoke" as const), codes, owner: fc.constantFrom(...OWNERS) }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom("trim" as const, "forget" as const) }) },
);

/** Runs the steps on links of two owners, and returns all that can be seen of it but the times. */
async function run({ sql }: TestDatabase, steps: readonly Step[]): Promise<unknown[]> {
  await sql`TRUNCATE link, link_change RESTART IDENTITY CASCADE`;
  await sql`INSERT INTO link (code, target, owner, kind, created_by)
    SELECT code, 'https://a.example/', CASE WHEN code < 'ddd' THEN 'ann' ELSE 'bob' END, 'ALIAS', 'k'
      FROM unnest(${CODES}::text[]) AS code`;
  const seen: unknown[] = [];
  for (const each of steps) {
    if (each.what === "revoke") seen.push(await revoke(sql, each.codes, each.owner));
    else if (each.what === "trim") await sql`DELETE FROM link_change`;
    else await sql`UPDATE link SET revoked_seq = NULL`;
    seen.push(
      await sql`SELECT code, state, version, revoked_seq, revoked_by, revoked_at IS NULL AS active FROM link ORDER BY code`,
    );
    seen.push(await sql`SELECT seq, code, version, changed_by FROM link_change ORDER BY seq`);
  }
  return seen.map((rows) => JSON.parse(JSON.stringify(rows)));
}

const revoke = (sql: postgres.Sql, wanted: readonly string[], owner: string) =>
  sql`SELECT * FROM revoke_links(${[...wanted]}::text[], ${owner}, 'k')`;

test("whatever is revoked, by whom, how often and after what was done to the log", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      expect(await run(now, steps)).toEqual(await run(before, steps));
    }),
    { numRuns: 100 },
  );
});

test("one call is one notification, with the greatest number; a call that changes nothing is none", async () => {
  const heard: string[] = [];
  await run(now, []);
  const { unlisten } = await now.sql.listen("link_change", (payload) => heard.push(payload));
  await revoke(now.sql, ["aaa", "bbb", "ccc"], "ann");
  await revoke(now.sql, ["ccc", "ddd", "unknown"], "ann");
  await revoke(now.sql, [], "ann");
  await revoke(now.sql, ["ddd"], "bob");
  await until(() => heard.at(-1) === "4");
  await unlisten();
  expect(heard).toEqual(["3", "4"]);
});

test("before there are statistics, each code of many is looked up by itself, however many links its owner has", async () => {
  const { sql } = now;
  await sql`TRUNCATE link, link_change RESTART IDENTITY CASCADE`;
  await sql`INSERT INTO link (code, target, owner, kind, created_by)
    SELECT 'code' || n, 'https://a.example/', 'ann', 'RANDOM', 'k' FROM generate_series(1, 20000) AS n`;
  const wanted = Array.from({ length: 100 }, (_, n) => `code${n * 150 + 1}`);
  await sql.begin(async (tx) => {
    // What this session counted in the transactions before, and did not hand over yet, is among it.
    const count = async () => {
      const [row] = await tx<{ readInOrder: number; byOwner: number; byCode: number }[]>`
        SELECT pg_stat_get_xact_tuples_returned('link'::regclass)::int AS "readInOrder",
               pg_stat_get_xact_numscans('link_listing'::regclass)::int AS "byOwner",
               pg_stat_get_xact_numscans('link_pkey'::regclass)::int AS "byCode"`;
      return row ?? { readInOrder: -1, byOwner: -1, byCode: -1 };
    };
    const before = await count();
    await tx`SELECT * FROM revoke_links(${wanted}::text[], 'ann', 'k')`;
    const after = await count();
    expect([after.readInOrder - before.readInOrder, after.byOwner - before.byOwner]).toEqual([0, 0]);
    expect(after.byCode - before.byCode).toBeGreaterThanOrEqual(200);
  });
});
