// What the seeding writes beside the triggers is what they would have written, and a second run finds it.
import { expect, test } from "@jest/globals";
import { openOwnServer, withSql } from "./own-server.ts";
import { BIG_OWNER, openSeeded } from "./seed.ts";

test("a seeded database has the migrations' schema and what its triggers keep, and is seeded once", async () => {
  const server = await openOwnServer(null);
  try {
    const told: string[] = [];
    const seed = () => openSeeded(server, { links: 20_000, owners: 100 }, (text) => told.push(text));
    const url = await seed();
    await withSql(url, 1, async (sql) => {
      const [counts] = await sql`
        SELECT count(*)::int AS links, count(*) FILTER (WHERE owner = ${BIG_OWNER})::int AS big,
               count(DISTINCT owner)::int AS owners, count(*) FILTER (WHERE state = 'REVOKED') > 100 AS revoked
          FROM link`;
      expect(counts).toEqual({ links: 20_000, big: 2000, owners: 100, revoked: true });
      const [tags] = await sql`
        SELECT count(*)::int AS wrong FROM link_tag t
          FULL JOIN (SELECT DISTINCT owner, tag, created_at, code FROM link, unnest(tags) AS tag) AS l
            ON (t.owner, t.tag, t.created_at, t.code) = (l.owner, l.tag, l.created_at, l.code COLLATE "C")
         WHERE t.code IS NULL OR l.code IS NULL`;
      expect(tags?.wrong).toBe(0);
      await expect(sql`DELETE FROM link`).rejects.toMatchObject({ code: "23001" });
    });
    told.length = 0;
    expect(new URL(await seed()).pathname).toBe(new URL(url).pathname);
    expect(told).toEqual(["links_20000_100 is there already"]);
  } finally {
    await server.close();
  }
});
