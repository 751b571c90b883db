// The log as an owner reads it, page by page, against a model; and what a page costs.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import fc from "fast-check";
import { type ChangeStore, createChangeStore } from "./changes.ts";

let database: TestDatabase;
let db: Database;
let changes: ChangeStore;
beforeAll(async () => {
  database = await createTestDatabase("main");
  db = createDatabase({ url: database.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 });
  changes = createChangeStore(db);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

let numbers = 0;
const newOwner = () => `owner-${numbers++}`;

async function createLinks(owner: string, count: number): Promise<string[]> {
  const codes = Array.from({ length: count }, () => `link-${numbers++}`);
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    SELECT code, 'https://example.com/', ${owner}, 'ALIAS', 'k' FROM unnest(${codes}::text[]) AS code`;
  return codes;
}
const revoke = (owner: string, codes: readonly string[], by = "k") =>
  database.sql`SELECT * FROM revoke_links(${[...codes]}::text[], ${owner}, ${by})`;

describe("a reader that goes on after the last change it saw", () => {
  const step = fc.record({
    who: fc.nat({ max: 2 }),
    count: fc.integer({ min: 1, max: 4 }),
    gap: fc.boolean(),
    read: fc.boolean(),
  });

  test("gets each change of its owner once and in order, and nobody else's, whatever happens between the pages", async () => {
    const scenario = fc.record({ steps: fc.array(step, { maxLength: 12 }), limit: fc.integer({ min: 1, max: 5 }) });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ steps, limit }) => {
        const owners = [newOwner(), newOwner(), newOwner()];
        const model = owners.map((): string[] => []);
        const seen = owners.map((): string[] => []);
        const positions = owners.map(() => 0);
        const read = async (i: number) => {
          const owner = owners[i] ?? "";
          const page = await changes.readRange({ owner, after: positions[i] ?? 0, limit });
          seen[i]?.push(...page.map(({ code }) => code));
          positions[i] = page.at(-1)?.seq ?? positions[i] ?? 0;
          return page.length;
        };
        for (const { who, count, gap, read: reads } of steps) {
          const owner = owners[who] ?? "";
          const codes = await createLinks(owner, count);
          await revoke(owner, codes);
          // Again, and by somebody whose they are not: neither is a change.
          await revoke(owner, codes);
          await revoke(owners[(who + 1) % 3] ?? "", codes);
          model[who]?.push(...codes);
          if (gap) await database.sql`SELECT nextval('link_change_seq_seq')`;
          if (reads) for (const i of owners.keys()) await read(i);
        }
        for (const i of owners.keys()) while ((await read(i)) > 0);
        expect(seen).toEqual(model);
      }),
      { numRuns: 40 },
    );
  });

  test("is told which link, which version, when to the microsecond, and by which key", async () => {
    const owner = newOwner();
    const [code = ""] = await createLinks(owner, 1);
    await revoke(owner, [code], "key-of-ann");
    const [row] = await database.sql`
      SELECT seq::int AS seq, to_char(changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at
        FROM link_change WHERE code = ${code}`;
    expect(await changes.readRange({ owner, after: 0, limit: 10 })).toEqual([
      { seq: row?.seq, type: "revoked", code, version: 2, changedAt: row?.at, changedBy: "key-of-ann" },
    ]);
  });

  test("beyond the head gets nothing; at both ends of what a number can be, too", async () => {
    const owner = newOwner();
    await revoke(owner, await createLinks(owner, 3));
    const { head } = await changes.glance([]);
    for (const after of [head, head + 1, Number.MAX_SAFE_INTEGER])
      expect(await changes.readRange({ owner, after, limit: 1 })).toEqual([]);
    expect(await changes.readRange({ owner, after: 0, until: head - 1, limit: 10 })).toHaveLength(2);
  });

  test("misses nothing while sixteen revoke at once, for several owners", async () => {
    const owners = [newOwner(), newOwner()];
    const codes = await Promise.all(owners.map((owner) => createLinks(owner, 100)));
    const writers = createDatabase({ url: database.url, applicationName: "writers", max: 16, queryTimeoutMs: 30_000 });
    let writing = true;
    const readers = owners.map(async (owner) => {
      const seen: string[] = [];
      for (let after = 0, last = false; !last; ) {
        last = !writing;
        const page = await changes.readRange({ owner, after, limit: 1000 });
        seen.push(...page.map(({ code }) => code));
        after = page.at(-1)?.seq ?? after;
      }
      return seen;
    });
    await Promise.all(
      codes.flatMap((own, i) =>
        own.map((code) =>
          writers.run((sql) => sql`SELECT FROM revoke_links(${[code]}::text[], ${owners[i] ?? ""}, 'k')`),
        ),
      ),
    );
    writing = false;
    const seen = await Promise.all(readers);
    await writers.close();
    for (const [i, own] of codes.entries()) expect([...(seen[i] ?? [])].sort()).toEqual([...own].sort());
  });

  test("control: where it goes on after the last time that it saw, it misses what was committed late", async () => {
    const owner = newOwner();
    const [late = "", soon = ""] = await createLinks(owner, 2);
    const append = (sql: TestDatabase["sql"], code: string) =>
      sql`INSERT INTO link_change (code, version, changed_by, changed_at) VALUES (${code}, 2, 'k', clock_timestamp())`;
    const slow = await database.sql.reserve();
    await slow`BEGIN`;
    await append(slow as unknown as TestDatabase["sql"], late);
    await append(database.sql, soon);
    const byTime = (after: Date) => database.sql<{ code: string; changed_at: Date }[]>`
      SELECT code, changed_at FROM link_change WHERE owner = ${owner} AND changed_at > ${after} ORDER BY changed_at`;
    const first = await byTime(new Date(0));
    await slow`COMMIT`;
    slow.release();
    expect(first.map(({ code }) => code)).toEqual([soon]);
    const [{ changed_at: last } = { changed_at: new Date(0) }] = first;
    expect((await byTime(new Date(last.getTime() + 1))).map(({ code }) => code)).toEqual([]);
    expect(await changes.readRange({ owner, after: 0, limit: 10 })).toHaveLength(2);
  });
});

describe("a glance", () => {
  test("sees the head and the keys that can be used, and of others nothing", async () => {
    const owner = newOwner();
    await revoke(owner, await createLinks(owner, 1));
    const insert = (id: string, columns: Record<string, unknown>) =>
      database.sql`INSERT INTO api_key ${database.sql({ id, owner, name: "n", scopes: ["links:read"], secret_hash: Buffer.alloc(32), ...columns })}`;
    await insert("usableusable", { expires_at: new Date(Date.now() + 3_600_000) });
    await insert("revokedrevok", { revoked_at: new Date() });
    await insert("expiredexpir", { expires_at: new Date(0) });
    await insert("notaskedforr", {});
    const { head, keys } = await changes.glance(["usableusable", "revokedrevok", "expiredexpir", "no such key"]);
    const [row] = await database.sql`SELECT max(seq)::int AS head FROM link_change`;
    expect(head).toBe(row?.head);
    expect(keys).toMatchObject([{ id: "usableusable", owner, scopes: ["links:read"] }]);
    expect(keys).toHaveLength(1);
    expect(await changes.glance([])).toEqual({ head, keys: [] });
  });
});
