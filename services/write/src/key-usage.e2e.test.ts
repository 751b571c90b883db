// The last use of keys: written now and then by whoever notices, and never in the way of a call.
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  mapConcurrently,
  type RunningService,
  readMetric,
  sendChecked,
  startService,
  until,
} from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
let key: string;
beforeEach(async () => {
  world = await startApiWorld({ DATABASE_POOL_MAX: "2" });
  key = await world.addKey("ann", ["links:read"]);
  // Counts every row that is written, also where it stays as it is.
  await world.database.sql.unsafe(`
    CREATE TABLE written (id text);
    CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
      BEGIN INSERT INTO written VALUES (NEW.id); RETURN NULL; END $$;
    CREATE TRIGGER note_write AFTER UPDATE OF last_used_at ON api_key FOR EACH ROW EXECUTE FUNCTION note_write()`);
});
afterEach(() => world.stop());

const id = () => key.split("_")[1] ?? "";
const writes = async () => (await world.database.sql`SELECT FROM written WHERE id = ${id()}`).length;
async function lastUse(): Promise<Date | null> {
  const [row] = await world.database.sql<
    { at: Date | null }[]
  >`SELECT last_used_at AS at FROM api_key WHERE id = ${id()}`;
  return row?.at ?? null;
}
async function written(times: number): Promise<void> {
  await until(async () => (await writes()) >= times);
}
const ask = async () => (await world.api("GET", "/v1/links/unknown1", undefined, key)).status;

describe("a key that is used", () => {
  test("a thousand times in two processes is written once; and again once five minutes have gone by", async () => {
    const other: RunningService = await startService("write", { DATABASE_URL: world.database.url });
    const http = createHttpClient(16);
    const urls = [world.write.url, other.url];
    const statuses = await mapConcurrently(Array.from({ length: 1000 }), 16, async (_, i) => {
      const headers = { Authorization: `Bearer ${key}` };
      return (await sendChecked(http, urls[i % 2] ?? "", "/v1/links/unknown1", { headers })).status;
    });
    expect(new Set(statuses)).toEqual(new Set([404]));
    await written(1);
    http.close();
    // Writes what it had noted last, if anything.
    await other.stop();
    expect(await writes()).toBe(1);
    await world.database.sql`ALTER TABLE api_key DISABLE TRIGGER note_write`;
    await world.database
      .sql`UPDATE api_key SET last_used_at = now() - interval '4 minutes 50 seconds' WHERE id = ${id()}`;
    await world.database.sql`ALTER TABLE api_key ENABLE TRIGGER note_write`;
    const before = await lastUse();
    expect(await ask()).toBe(404);
    expect(await lastUse()).toEqual(before);
    await world.database.sql`ALTER TABLE api_key DISABLE TRIGGER note_write`;
    await world.database
      .sql`UPDATE api_key SET last_used_at = now() - interval '5 minutes 1 second' WHERE id = ${id()}`;
    await world.database.sql`ALTER TABLE api_key ENABLE TRIGGER note_write`;
    expect(await ask()).toBe(404);
    await written(2);
    expect(Number(await lastUse())).toBeGreaterThan(Number(before));
  });

  test("is written even where it lacks the scope, and not where its secret is wrong", async () => {
    const wrong = `${key.slice(0, -4)}${key.endsWith("AAAA") ? "BBBB" : "AAAA"}`;
    expect((await world.api("GET", "/v1/keys", undefined, wrong)).status).toBe(401);
    expect((await world.api("GET", "/v1/keys", undefined, key)).status).toBe(403);
    await written(1);
    expect(await writes()).toBe(1);
  });
});

describe("a key whose row", () => {
  const failures = () => readMetric(world.write, "linkfence_key_use_failures_total");
  const hundred = () => mapConcurrently(Array.from({ length: 100 }), 4, ask);

  test("is locked keeps nobody waiting: all calls are answered while the lock is held, and it is written afterwards", async () => {
    await world.database.sql.begin(async (holder) => {
      await holder`SELECT FROM api_key WHERE id = ${id()} FOR UPDATE`;
      expect(new Set(await hundred())).toEqual(new Set([404]));
      expect([await writes(), await failures()]).toEqual([0, 0]);
    });
    while ((await writes()) === 0) expect(await ask()).toBe(404);
  });

  test("is in a table that nobody may write keeps nobody waiting: what cannot be written is counted", async () => {
    await world.database.sql.begin(async (holder) => {
      await holder`LOCK TABLE api_key IN SHARE MODE`;
      while ((await failures()) === 0) expect(new Set(await hundred())).toEqual(new Set([404]));
    });
    while ((await writes()) === 0) expect(await ask()).toBe(404);
    expect(world.write.output()).toContain("the last use of keys could not be written");
  });

  test("is in a database that is read-only can still be used", async () => {
    await world.database.sql.unsafe(`ALTER DATABASE ${world.database.name} SET default_transaction_read_only = on`);
    const own = await startService("write", { DATABASE_URL: world.database.url });
    const http = createHttpClient(4);
    const headers = { Authorization: `Bearer ${key}` };
    const answer = await sendChecked(http, own.url, "/v1/links/unknown1", { headers });
    expect(answer.status).toBe(404);
    await until(async () => (await readMetric(own, "linkfence_key_use_failures_total")) !== 0);
    expect((await sendChecked(http, own.url, "/v1/links/unknown1", { headers })).status).toBe(404);
    http.close();
    await own.stop();
    expect(await lastUse()).toBeNull();
  });
});
