// The log on a real server: paging, renewal, and the order that the lock in revoke_links keeps.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase, until } from "@linkfence/testkit";
import { type Change, judgePage, type Position, readFrom } from "./cursor.ts";
import { PAGE_LIMIT, readChanges } from "./read-changes.ts";

let test_: TestDatabase;
let database: Database;
const instance = randomUUID();

beforeAll(async () => {
  test_ = await createTestDatabase("main");
  database = createDatabase({ url: test_.url, applicationName: "test", max: 2, queryTimeoutMs: 10_000 });
  await test_.sql`SELECT register_instance(${instance}::uuid, 'here', 1000, true)`;
  // A reader that begins with an empty log forgets everything when it sees that the first number is missing.
  await createLinks("first", 1);
  await revokeAll("first");
});
afterAll(async () => {
  await database.close();
  await test_.drop();
});

const createLinks = (prefix: string, count: number) => test_.sql`
  INSERT INTO link (code, target, owner, kind, created_by)
  SELECT ${prefix} || n, 'https://example.com/', 'ann', 'ALIAS', 'k' FROM generate_series(1, ${count}) n`;
const read = (from: number | null) => readChanges(database, { instance, from, renewal: null });
const revokeAll = (prefix: string) => test_.sql`
  SELECT * FROM revoke_links(ARRAY(SELECT code FROM link WHERE code LIKE ${`${prefix}%`} ORDER BY code), 'ann', 'k')`;

/** Reads until complete, as the follower does. */
async function catchUp(from: Position | null): Promise<{ fresh: Change[]; position: Position }> {
  const fresh: Change[] = [];
  for (let position = from; ; ) {
    const verdict = judgePage(position, (await read(readFrom(position))).page);
    if (verdict.kind === "flush") throw new Error(verdict.cause);
    fresh.push(...verdict.fresh);
    position = verdict.position;
    if (verdict.complete) return { fresh, position };
  }
}

describe("the change log", () => {
  test("pages over more changes than one read brings, without losing one", async () => {
    const start = await catchUp(null);
    await createLinks("page", PAGE_LIMIT * 2 + 10);
    await revokeAll("page");
    const { fresh } = await catchUp(start.position);
    expect(fresh).toHaveLength(PAGE_LIMIT * 2 + 10);
    expect(new Set(fresh.map(({ code }) => code)).size).toBe(fresh.length);
    expect(fresh.every(({ version }) => version === 2)).toBe(true);
  });

  test("records a renewal with what was applied, and says when the row is gone", async () => {
    const { page } = await read(null);
    const renew = (count: number, appliedSeq: number) =>
      readChanges(database, { instance, from: 0, renewal: { count, lasting: true, appliedSeq, epoch: page.epoch } });
    const readRow = async () =>
      (await test_.sql`SELECT applied_seq, epoch, renewals FROM redirect_instance WHERE id = ${instance}`)[0];
    const last = { applied_seq: String(page.head), epoch: page.epoch, renewals: "7" };
    expect((await renew(7, page.head)).registered).toBe(true);
    expect(await readRow()).toEqual(last);
    // One that was given up, and comes late.
    expect((await renew(6, page.head - 1)).registered).toBe(true);
    expect(await readRow()).toEqual(last);
    const gone = await readChanges(database, { instance: randomUUID(), from: null, renewal: null });
    expect(gone.registered).toBe(false);
  });

  test("is followed by a reader that misses nothing while sixteen writers revoke", async () => {
    const { position: start } = await catchUp(null);
    await createLinks("many", 320);
    let position = start;
    const seen: Change[] = [];
    let writing = true;
    const reader = (async () => {
      while (writing) {
        const step = await catchUp(position);
        seen.push(...step.fresh);
        position = step.position;
      }
    })();
    const writers = createDatabase({ url: test_.url, applicationName: "writers", max: 16, queryTimeoutMs: 30_000 });
    const revoke = (n: number) =>
      writers.run((sql) => sql`SELECT * FROM revoke_links(ARRAY[${`many${n}`}], 'ann', 'k')`);
    await Promise.all(Array.from({ length: 320 }, (_, n) => revoke(n + 1)));
    writing = false;
    await reader;
    seen.push(...(await catchUp(position)).fresh);
    await writers.close();
    expect(new Set(seen.map(({ code }) => code)).size).toBe(320);
    expect(seen).toHaveLength(320);
  });

  test("keeps a later revocation waiting while an earlier one has not committed", async () => {
    await createLinks("stall", 2);
    const first = await test_.sql.reserve();
    await first`BEGIN`;
    await first`SELECT * FROM revoke_links(ARRAY['stall1'], 'ann', 'k')`;
    const second = test_.sql`SELECT * FROM revoke_links(ARRAY['stall2'], 'ann', 'k')`.execute();
    let waiting = 0;
    while (waiting === 0) {
      const rows = await test_.sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      waiting = rows.length;
    }
    await first`COMMIT`;
    first.release();
    await second;
    const rows = await test_.sql`SELECT code FROM link_change WHERE code LIKE 'stall%' ORDER BY seq`;
    expect(rows.map(({ code }) => code)).toEqual(["stall1", "stall2"]);
  });

  test("control: without the lock a reader passes a change that commits late, and never sees it", async () => {
    await createLinks("loose", 2);
    const { position } = await catchUp(null);
    const append = (sql: typeof test_.sql, code: string) =>
      sql`INSERT INTO link_change (code, version, changed_by) VALUES (${code}, 2, 'k')`;
    const first = await test_.sql.reserve();
    await first`BEGIN`;
    await append(first as unknown as typeof test_.sql, "loose1");
    await append(test_.sql, "loose2");
    const before = await catchUp(position);
    expect(before.fresh.map(({ code }) => code)).toEqual(["loose2"]);
    await first`COMMIT`;
    first.release();
    const after = await catchUp(before.position);
    expect(after.fresh).toEqual([]);
    expect(await test_.sql`SELECT 1 FROM link_change WHERE code = 'loose1'`).toHaveLength(1);
  });

  test("sends one notification for a batch, and none when nothing was revoked", async () => {
    const heard: string[] = [];
    const { unlisten } = await test_.sql.listen("link_change", (payload) => heard.push(payload));
    await createLinks("batch", 100);
    await revokeAll("batch");
    await revokeAll("batch");
    await test_.sql`SELECT pg_notify('link_change', 'last')`;
    await until(() => heard.at(-1) === "last");
    const { page } = await read(null);
    expect(heard).toEqual([String(page.head), "last"]);
    await unlisten();
  });
});
