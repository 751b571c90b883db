import { expect, test } from "@jest/globals";
import { createTestDatabase } from "@linkfence/testkit";
import { createArrayTypes } from "./array-types.ts";
import { createDatabase } from "./connect.ts";

test.each(["main", "stats"] as const)(
  "every array in the schema of %s is of a type that is read as an array",
  async (kind) => {
    const { sql, drop } = await createTestDatabase(kind);
    const rows = await sql`
    SELECT DISTINCT t.oid::int AS oid, t.typname AS name
      FROM pg_type t
      JOIN (SELECT a.atttypid AS oid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
             WHERE c.relnamespace = 'public'::regnamespace
            UNION SELECT unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]) || p.prorettype) FROM pg_proc p
             WHERE p.pronamespace = 'public'::regnamespace) used ON used.oid = t.oid
     WHERE t.typcategory = 'A'`;
    const known = Object.values(createArrayTypes(Number)).flatMap(({ from }) => from);
    expect(rows.filter(({ oid }) => !known.includes(oid))).toEqual([]);
    expect(rows.length).toBeGreaterThan(0);
    await drop();
  },
);

test("arrays of each of these types come back as what they are", async () => {
  const { url, drop } = await createTestDatabase("empty");
  const db = createDatabase({ url, applicationName: "arrays", max: 1, queryTimeoutMs: 5000 });
  const [row] = await db.run(
    (sql) =>
      sql`SELECT '{t,f}'::bool[] AS flags, '{1,2}'::int[] AS numbers, '{3}'::bigint[] AS long, '{"a,b"}'::text[] AS texts`,
  );
  expect(row).toEqual({ flags: [true, false], numbers: [1, 2], long: [3], texts: ["a,b"] });
  await db.close();
  await drop();
});
