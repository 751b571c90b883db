import type { TestDatabase } from "@linkfence/testkit";

type Sql = TestDatabase["sql"];

/** Where the link of a code leads to. */
export const targetOf = (code: string) => `https://example.com/${code}`;

/** Stores active links, named by a prefix and a number from 1 on. Returns their codes. */
export async function insertLinks(sql: Sql, prefix: string, count: number): Promise<string[]> {
  const codes = Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);
  await sql`INSERT INTO link (code, target, owner, kind, created_by)
    SELECT code, ${targetOf("")} || code, 'ann', 'ALIAS', 'k' FROM unnest(${codes}::text[]) AS code`;
  return codes;
}

/** Revokes links in one transaction, committed on return. Returns the numbers of the changes. */
export async function revokeLinks(sql: Sql, ...codes: string[]): Promise<number[]> {
  const rows = await sql<
    { seq: string }[]
  >`SELECT seq FROM revoke_links(${codes}::text[], 'ann', 'k') ORDER BY ordinal`;
  return rows.map(({ seq }) => Number(seq));
}
