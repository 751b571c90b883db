// The follower on a real server while others revoke: nothing missed, nothing doubled, order kept.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import type { Change } from "./cursor.ts";
import { createFollower, type Follower } from "./follow.ts";
import { readChanges } from "./read-changes.ts";

const WRITERS = 8;

let fresh: TestDatabase;
let database: Database;
let writers: Database;

beforeAll(async () => {
  fresh = await createTestDatabase("main");
  database = createDatabase({ url: fresh.url, applicationName: "follower", max: 1, queryTimeoutMs: 10_000 });
  writers = createDatabase({ url: fresh.url, applicationName: "writers", max: WRITERS, queryTimeoutMs: 30_000 });
  // A reader that begins with an empty log forgets everything when it sees that the first number is missing.
  await createLinks("first", 1);
  await fresh.sql`SELECT revoke_links('{first1}', 'ann', 'k')`;
});
afterAll(async () => {
  await Promise.all([database.close(), writers.close()]);
  await fresh.drop();
});

const createLinks = (prefix: string, count: number) => fresh.sql`
  INSERT INTO link (code, target, owner, kind, created_by)
  SELECT ${prefix} || n, 'https://example.com/', 'ann', 'ALIAS', 'k' FROM generate_series(1, ${count}) n`;

/** A follower of the log, and what it said. `caughtUp` resolves at the first sync that was asked for after the call. */
function follow() {
  const seen: Change[] = [];
  const flushes: string[] = [];
  let synced = (_sentAt: number) => {};
  const follower: Follower = createFollower({
    pollIntervalMs: 1,
    ttlMs: 1000,
    now: () => ({ mono: performance.now(), wall: Date.now() }),
    random: Math.random,
    newInstanceId: randomUUID,
    register: async (id) => {
      await database.run((sql) => sql`SELECT register_instance(${id}::uuid, 'here', 1000, true)`);
    },
    sync: (request) => readChanges(database, request),
    apply: (changes) => void seen.push(...changes),
    flush: (cause) => void flushes.push(cause),
    onSynced: ({ mono }) => synced(mono),
    onTrouble: () => {},
    onRecovered: () => {},
  });
  const caughtUp = () => {
    const from = performance.now();
    return new Promise<void>((resolve) => {
      synced = (sentAt) => sentAt > from && resolve();
      follower.wake();
    });
  };
  return { follower, seen, flushes, caughtUp };
}

const logFrom = async (seq: number) => {
  const rows = await fresh.sql`SELECT seq::int AS seq, code, version::int AS version
    FROM link_change WHERE seq > ${seq} ORDER BY seq`;
  return rows.map(({ seq: number, code, version }) => ({ seq: number, code, version }));
};

describe("a follower of a log to which eight writers append", () => {
  test("applies every change once, in the order of the log, single ones and batches alike", async () => {
    const { follower, seen, flushes, caughtUp } = follow();
    await caughtUp();
    const start = follower.stats().appliedSeq;
    await createLinks("busy", 400);
    const revoke = (codes: string[]) =>
      writers.run((sql) => sql`SELECT * FROM revoke_links(${codes}::text[], 'ann', 'k')`);
    const code = (n: number) => `busy${n + 1}`;
    const singles = Array.from({ length: 200 }, (_, n) => revoke([code(n)]));
    const batches = Array.from({ length: 20 }, (_, n) =>
      revoke(Array.from({ length: 10 }, (_x, i) => code(200 + n * 10 + i))),
    );
    await Promise.all([...singles, ...batches]);
    await caughtUp();
    expect(seen).toEqual(await logFrom(start));
    expect(seen).toHaveLength(400);
    expect(flushes).toEqual(["started"]);
    await follower.stop();
  });

  test("has acknowledged in the registry what it applied, by the time it is asked", async () => {
    const { follower, caughtUp } = follow();
    await caughtUp();
    await createLinks("acked", 1);
    const [revoked] = await fresh.sql`SELECT seq::int AS seq FROM revoke_links(ARRAY['acked1'], 'ann', 'k')`;
    let applied = 0;
    while (applied < revoked?.seq) {
      const [row] = await fresh.sql`SELECT applied_seq::int AS applied, epoch = feed_epoch() AS current
        FROM redirect_instance WHERE id = ${follower.instance()}`;
      // Before its first read it knows of no history, and so acknowledges nothing.
      applied = row?.current ? row.applied : 0;
      expect(follower.stats().appliedSeq).toBeGreaterThanOrEqual(row?.applied);
    }
    await follower.stop();
  });

  test("forgets everything and comes back under another id when its row was removed", async () => {
    const { follower, flushes, caughtUp } = follow();
    await caughtUp();
    const first = follower.instance();
    await fresh.sql`DELETE FROM redirect_instance WHERE id = ${first}`;
    await caughtUp();
    expect(flushes).toEqual(["started", "registration-lost", "started"]);
    expect(follower.instance()).not.toBe(first);
    await follower.stop();
    expect(await fresh.sql`SELECT 1 FROM redirect_instance WHERE id = ${follower.instance()}`).toHaveLength(1);
  });
});

describe("control: a revocation that takes no lock", () => {
  test("commits late with an early number, the follower passes it, and its link is never told of", async () => {
    await fresh.sql.unsafe(`
      CREATE FUNCTION revoke_unlocked(p_code text) RETURNS void LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE link SET state = 'REVOKED', version = version + 1, revoked_at = now(), revoked_by = 'k' WHERE code = p_code;
        INSERT INTO link_change (code, version, changed_by) VALUES (p_code, 2, 'k');
      END $$`);
    await createLinks("loose", 2);
    const { follower, seen, caughtUp } = follow();
    await caughtUp();
    const late = await fresh.sql.reserve();
    await late`BEGIN`;
    await late`SELECT revoke_unlocked('loose1')`;
    await fresh.sql`SELECT revoke_unlocked('loose2')`;
    await caughtUp();
    await late`COMMIT`;
    late.release();
    await caughtUp();
    const rows = await fresh.sql`SELECT code FROM link_change WHERE code LIKE 'loose%' ORDER BY seq`;
    expect(rows.map(({ code }) => code)).toEqual(["loose1", "loose2"]);
    expect(seen.map(({ code }) => code)).toEqual(["loose2"]);
    await follower.stop();
  });
});
