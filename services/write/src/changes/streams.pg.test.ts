// Streams of changes over real connections, with short times.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import fc from "fast-check";
import { type FeedWorld, startFeedWorld } from "./feed-world.fixture.ts";
import type { StreamReader } from "./reader.fixture.ts";

let world: FeedWorld;
let owners = 0;
const open = new Set<StreamReader>();
beforeAll(async () => {
  world = await startFeedWorld();
});
afterAll(() => world.stop());
afterEach(async () => {
  for (const reader of open) reader.close();
  open.clear();
  await until(() => world.streams.stats().open === 0);
});

const newOwner = () => `owner-${owners++}`;
async function read(key: string, path?: string, headers: Record<string, string> = {}): Promise<StreamReader> {
  const reader = await world.read({ key, headers, ...(path === undefined ? {} : { path }) });
  open.add(reader);
  return reader;
}

describe("a stream", () => {
  test("is what the HTML standard says of event streams, and no proxy keeps or collects it", async () => {
    const owner = newOwner();
    const reader = await read(await world.addKey(owner));
    expect(reader.status).toBe(200);
    expect(reader.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      vary: "Accept",
    });
    const [code] = await world.revokeNew(owner);
    await reader.received(1);
    const [row] = await world.database.sql`SELECT seq::int AS seq FROM link_change WHERE code = ${code ?? ""}`;
    expect(reader.events).toEqual([
      {
        id: String(row?.seq),
        event: "revoked",
        data: { seq: row?.seq, type: "revoked", code, version: 2, changedAt: expect.any(String), changedBy: "k" },
      },
    ]);
    expect(reader.state.retry).toBeGreaterThanOrEqual(2000);
    expect(reader.state.retry).toBeLessThanOrEqual(4000);
  });

  test("without a position begins with what comes, and says at once where that is", async () => {
    const owner = newOwner();
    await world.revokeNew(owner, 3);
    const { head } = await world.changes.glance([]);
    const reader = await read(await world.addKey(owner));
    await reader.until(() => reader.state.lastId !== "");
    expect(reader.state.lastId).toBe(String(head));
    const codes = await world.revokeNew(owner, 2);
    await reader.received(2);
    expect(reader.codes()).toEqual(codes);
  });

  test.each([
    ["after", 2, undefined, 2],
    ["Last-Event-ID", undefined, 3, 3],
    ["Last-Event-ID rather than after", 0, 4, 4],
  ])("begins after %s", async (_what, after, lastId, known) => {
    const owner = newOwner();
    const codes = await world.createLinks(owner, 6);
    const seqs = await world.revoke(owner, codes);
    const at = (n: number | undefined) => (n === undefined ? undefined : (seqs[n - 1] ?? 0));
    const reader = await read(
      await world.addKey(owner),
      after === undefined ? "/v1/changes" : `/v1/changes?after=${at(after)}`,
      lastId === undefined ? {} : { "Last-Event-ID": String(at(lastId)) },
    );
    await reader.received(6 - known);
    expect(reader.codes()).toEqual(codes.slice(known));
  });

  test("beyond the head waits there, and gets what is above its position", async () => {
    const owner = newOwner();
    const { head } = await world.changes.glance([]);
    const reader = await read(await world.addKey(owner), `/v1/changes?after=${head + 2}`);
    const codes = await world.revokeNew(owner, 4);
    await reader.received(2);
    expect(reader.codes()).toEqual(codes.slice(2));
  });

  test("brings a batch of a thousand once and in order, to each of five readers", async () => {
    const owner = newOwner();
    const key = await world.addKey(owner);
    const readers = await Promise.all(Array.from({ length: 5 }, () => read(key)));
    const codes = await world.revokeNew(owner, 1000);
    for (const reader of readers) {
      await reader.received(1000);
      expect(reader.codes()).toEqual(codes);
    }
  });

  test("is resumed wherever it broke: each change once, in order, and never another owner's", async () => {
    const scenario = fc.record({
      batches: fc.array(fc.record({ count: fc.integer({ min: 1, max: 30 }), other: fc.boolean() }), { maxLength: 8 }),
      breaks: fc.array(fc.nat({ max: 40 }), { maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ batches, breaks }) => {
        const [owner, stranger] = [newOwner(), newOwner()];
        const key = await world.addKey(owner);
        const model: unknown[] = [];
        const seen: unknown[] = [];
        let reader = await read(key);
        const total = batches.reduce((sum, { count, other }) => sum + (other ? 0 : count), 0);
        const write = async () => {
          for (const { count, other } of batches) {
            const codes = await world.revokeNew(other ? stranger : owner, count);
            if (!other) model.push(...codes);
          }
        };
        // A stream that breaks before it said anything has no position yet: its reader would begin anew.
        await reader.until(() => reader.state.lastId !== "");
        let { lastId } = reader.state;
        const writing = write();
        for (const count of breaks) {
          if (seen.length + count > total) break;
          await reader.received(count);
          reader.close();
          seen.push(...reader.codes());
          lastId = reader.state.lastId || lastId;
          reader = await read(key, "/v1/changes", { "Last-Event-ID": lastId });
        }
        await writing;
        await reader.received(total - seen.length);
        expect([...seen, ...reader.codes()]).toEqual(model);
        reader.close();
        await until(() => world.streams.stats().open === 0);
      }),
      { numRuns: 15 },
    );
  });

  test("shows a sign of life while nothing changes, and its reader's position moves past the changes of others", async () => {
    const reader = await read(await world.addKey(newOwner()));
    await reader.until(() => reader.state.heartbeats >= 2);
    await world.revokeNew(newOwner());
    const { head } = await world.changes.glance([]);
    await reader.until(() => reader.state.lastId === String(head));
    expect(reader.events).toEqual([]);
  });
});

describe("a key", () => {
  const id = (key: string) => key.split("_")[1] ?? "";
  /** What the triggers of the table forbid, and a person with enough rights can do all the same. */
  const force = (statement: (sql: typeof world.database.sql) => unknown) =>
    world.database.sql.begin(async (sql) => {
      await sql`SET LOCAL session_replication_role = replica`;
      await statement(sql as unknown as typeof world.database.sql);
    });
  test.each<[string, (key: string) => Promise<unknown>]>([
    ["revoked", async (key) => world.database.sql`UPDATE api_key SET revoked_at = now() WHERE id = ${id(key)}`],
    ["expired", async (key) => world.database.sql`UPDATE api_key SET expires_at = now() WHERE id = ${id(key)}`],
    ["less than it was", (key) => force((sql) => sql`UPDATE api_key SET scopes = '{exports}' WHERE id = ${id(key)}`)],
    ["somebody else's", (key) => force((sql) => sql`UPDATE api_key SET owner = 'x' WHERE id = ${id(key)}`)],
    ["gone", (key) => force((sql) => sql`DELETE FROM api_key WHERE id = ${id(key)}`)],
  ])(
    "that is %s has its streams ended, and they never bring a change that came after; other keys go on",
    async (_what, end) => {
      const owner = newOwner();
      const [key, other] = [await world.addKey(owner), await world.addKey(owner)];
      const [reader, second, witness] = [await read(key), await read(key), await read(other)];
      const before = world.counts.ended.key;
      const codes = await world.revokeNew(owner);
      await Promise.all([reader, second, witness].map((each) => each.received(1)));
      await end(key);
      const later = await world.revokeNew(owner, 300);
      await Promise.all([reader.ended(), second.ended(), witness.received(301)]);
      expect([reader.codes(), second.codes()]).toEqual([codes, codes]);
      expect(reader.state.broken).toBe(false);
      expect(witness.codes()).toEqual([...codes, ...later]);
      expect(world.counts.ended.key - before).toBe(2);
    },
  );

  test("control: where keys are remembered, one that has ended brings what came after", async () => {
    const weak = await startFeedWorld({}, ({ glance, readRange }) => {
      let remembered: Awaited<ReturnType<typeof glance>>["keys"] = [];
      return {
        readRange,
        async glance(ids) {
          const { head, keys } = await glance(ids);
          if (remembered.length === 0) remembered = keys;
          return { head, keys: remembered };
        },
      };
    });
    const key = await weak.addKey("ann");
    const reader = await weak.read({ key });
    const before = await weak.revokeNew("ann");
    await reader.received(1);
    await weak.database.sql`UPDATE api_key SET revoked_at = now() WHERE id = ${id(key)}`;
    const after = await weak.revokeNew("ann");
    await reader.received(2);
    expect(reader.codes()).toEqual([...before, ...after]);
    reader.close();
    await weak.stop();
  });
});
