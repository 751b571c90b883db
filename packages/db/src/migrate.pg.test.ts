import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createTestDatabase, spawnProcess, type TestDatabase } from "@linkfence/testkit";
import { migrate } from "./migrate.ts";

const ROUNDS = 10;

describe("migrations", () => {
  test("three processes that start at once on an empty database all succeed, and leave one history", async () => {
    for (let round = 0; round < ROUNDS / 2; round += 1) {
      const database = await createTestDatabase("empty");
      const env = { DATABASE_URL: database.url };
      const processes = [1, 2, 3].map(() => spawnProcess("packages/db/dist/migrate-main.js", env));
      const exits = await Promise.all(processes.map((process) => process.exited));
      expect(exits.map((exit) => exit.code)).toEqual([0, 0, 0]);
      const history = await database.sql`SELECT name FROM schema_migration ORDER BY id`;
      expect(history.map((row) => row.name)).toEqual([
        "0001_links",
        "0002_redirect_instances",
        "0003_revocation_numbers",
        "0004_idempotency",
        "0005_listing",
        "0006_keys",
        "0007_imports",
        "0008_change_owner",
        "0009_revocation",
        "0010_acknowledgement",
        "0011_renewals",
        "0012_registry_bounds",
      ]);
      await database.drop();
    }
  });

  test("both sets fit into one database, and a second run does nothing", async () => {
    const database = await createTestDatabase("empty");
    expect(await migrate(database.url, "main")).toHaveLength(12);
    expect(await migrate(database.url, "main")).toEqual([]);
    await database.drop();
  });

  test("a failed run changes nothing", async () => {
    const database = await createTestDatabase("empty");
    await database.sql`CREATE TABLE redirect_instance (id int)`;
    await expect(migrate(database.url, "main")).rejects.toMatchObject({ code: "42P07" });
    const tables = await database.sql`SELECT relname FROM pg_class WHERE relname IN ('link', 'link_change')`;
    expect(tables).toHaveLength(0);
    await database.drop();
  });
});

describe("the schema of links", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase("main");
    await database.sql`INSERT INTO link (code, target, owner, kind, created_by, expires_at)
      VALUES ('first', 'https://a.example/', 'ann', 'ALIAS', 'k', now() + interval '1 hour'),
             ('second', 'https://b.example/', 'ann', 'ALIAS', 'k', NULL)`;
  });
  afterAll(() => database.drop());

  test.each([
    ["target", "UPDATE link SET target = 'https://evil.example/' WHERE code = 'first'"],
    ["owner", "UPDATE link SET owner = 'bob' WHERE code = 'first'"],
    ["code", "UPDATE link SET code = 'other' WHERE code = 'second'"],
    ["expiry", "UPDATE link SET expires_at = NULL WHERE code = 'first'"],
    ["row", "DELETE FROM link WHERE code = 'first'"],
  ])("no statement changes the %s of a link", async (_what, statement) => {
    await expect(database.sql.unsafe(statement)).rejects.toMatchObject({ code: "23001" });
  });

  test("the title may change, and a revoked link cannot come back", async () => {
    await database.sql`UPDATE link SET title = 'x' WHERE code = 'second'`;
    await database.sql`SELECT * FROM revoke_links(ARRAY['second'], 'ann', 'k')`;
    const back = database.sql`UPDATE link SET state = 'ACTIVE', revoked_at = NULL, revoked_by = NULL WHERE code = 'second'`;
    await expect(back).rejects.toMatchObject({ code: "23001" });
  });

  test("the redirect's view hides the target of a revoked link", async () => {
    await database.sql`INSERT INTO link (code, target, owner, kind, created_by) VALUES ('third', 'https://c.example/', 'ann', 'ALIAS', 'k')`;
    await database.sql`SELECT * FROM revoke_links(ARRAY['third'], 'ann', 'k')`;
    const [row] = await database.sql`SELECT * FROM redirect_link WHERE code = 'third'`;
    expect(row).toMatchObject({ state: "REVOKED", target: null, version: "2" });
  });
});
