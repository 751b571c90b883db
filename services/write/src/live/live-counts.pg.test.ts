// Streams of counts over real connections, with short times and counts that the test makes up.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { type LinkSums, Problem, type ProblemBody } from "@linkfence/contracts";
import { createDatabase, type Database } from "@linkfence/db";
import { listen, type RunningServer } from "@linkfence/service-shell";
import { addApiKey, checkFetched, createTestDatabase, type TestDatabase, until } from "@linkfence/testkit";
import { openReader, type StreamReader } from "../changes/reader.fixture.ts";
import { createCounts } from "../counts.ts";
import { createPartialApp } from "../partial-app.fixture.ts";
import { createChangeStore } from "../store/changes.ts";
import { createLiveCounts, type LiveCountsOptions } from "./live-counts.ts";

let database: TestDatabase;
let db: Database;
let key: string;
let people: number;
let reads: string[];
let fails: boolean;
let world: Awaited<ReturnType<typeof open>>;

beforeAll(async () => {
  database = await createTestDatabase("main");
  db = createDatabase({ url: database.url, applicationName: "live", max: 6, queryTimeoutMs: 10_000 });
  key = await addApiKey(database.sql, { owner: "ann", scopes: ["stats:read"] });
  await database.sql`
    INSERT INTO link (code, target, owner, kind, created_by)
    SELECT code, 'https://example.com/', 'ann', 'ALIAS', 'k' FROM unnest('{one,two}'::text[]) AS code`;
});
beforeEach(() => {
  [people, reads, fails] = [0, [], false];
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const sums = (code: string): LinkSums => ({
  code,
  total: people,
  bots: 1,
  prefetches: 2,
  series: [[people, 1, 2]],
  top: null,
  dropped: [],
});

async function open(over: Partial<LiveCountsOptions> = {}) {
  const counts = createCounts();
  const live = createLiveCounts({
    glance: createChangeStore(db).glance,
    async read(code) {
      reads.push(code);
      if (fails) throw new Problem("statistics-unavailable", "away");
      return sums(code);
    },
    counts: counts.live,
    ...{
      maxStreams: 100,
      maxPerOwner: 10,
      maxReads: 2,
      readTimeoutMs: 5000,
      watchMs: 5,
      heartbeatMs: 20,
      drainMs: 300,
    },
    retryMs: 2000,
    onTrouble: () => {},
    ...over,
  });
  const server: RunningServer = await listen(createPartialApp({ db, counts }, { live }), {
    ...{ port: 0, host: "127.0.0.1", maxConnections: 500 },
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    live,
    counts: counts.live,
    read: (path = "/v1/links/one/stats", by = key) => openReader(url, { key: by, path, schema: null }),
    /** Asks for a stream and is refused, or for its head; returns the status and the problem. */
    async get(path: string, headers: Record<string, string> = {}, method = "GET") {
      const fields = { Authorization: `Bearer ${key}`, Accept: "text/event-stream", ...headers };
      const answer = await checkFetched(method, path, await fetch(url + path, { method, headers: fields }));
      const problem = (method === "HEAD" ? {} : await answer.json()) as Partial<ProblemBody>;
      return { status: answer.status, problem };
    },
    async stop() {
      live.stop();
      await server.close(5000);
    },
  };
}

const totals = (reader: StreamReader) => reader.events.map(({ data }) => data.total);

describe("a stream of counts", () => {
  beforeAll(async () => {
    world = await open();
  });
  afterAll(() => world.stop());

  test("begins with the counts, and goes on with each change of them; between those come signs of life", async () => {
    people = 3;
    const reader = await world.read("/v1/links/one/stats?from=2026-01-01&timezone=Europe/Berlin");
    await reader.received(1);
    expect(reader.headers["content-type"]).toBe("text/event-stream");
    expect(reader.events[0]).toEqual({
      id: "",
      event: "counts",
      data: { code: "one", total: 3, bots: 1, prefetches: 2, from: "2026-01-01T00:00:00+01:00" },
    });
    expect(reader.state.retry).toBeGreaterThanOrEqual(2000);
    await reader.until(() => reader.state.heartbeats >= 3);
    people = 4;
    await reader.received(2);
    people = 9;
    await reader.received(3);
    expect(totals(reader)).toEqual([3, 4, 9]);
    reader.close();
    await until(() => world.live.stats().open === 0);
  });

  test("begins as long ago as one likes, as it has no points; what is none of a stream is named", async () => {
    const reader = await world.read("/v1/links/one/stats?from=2020-01-01");
    await reader.received(1);
    expect(reader.events[0]?.data).toMatchObject({ from: "2020-01-01T00:00:00Z" });
    reader.close();
    const refused = async (query: string) => (await world.get(`/v1/links/one/stats?${query}`)).problem.detail;
    expect(await refused("from=2099-01-01")).toBe("the query parameter from must be before now");
    expect(await refused("to=nonsense")).toMatch(/^the query parameter to has no meaning for a stream/);
  });

  test("that cannot be read for a while goes on when it can", async () => {
    const reader = await world.read();
    await reader.received(1);
    fails = true;
    await until(() => world.counts.failures.page >= 2);
    [people, fails] = [5, false];
    await reader.received(2);
    expect(totals(reader)).toEqual([0, 5]);
    reader.close();
  });

  test("does not begin where there are no counts: that is a refusal as of any call", async () => {
    fails = true;
    const answer = await world.get("/v1/links/one/stats");
    expect([answer.status, answer.problem.code]).toEqual([503, "statistics-unavailable"]);
  });

  test("ends with its key, and tells nothing any more", async () => {
    const other = await addApiKey(database.sql, { owner: "ann", scopes: ["stats:read"] });
    const reader = await world.read(undefined, other);
    await reader.received(1);
    await database.sql`UPDATE api_key SET revoked_at = now() WHERE id = ${other.split("_")[1] ?? ""}`;
    await reader.ended();
    expect([reader.state.broken, world.counts.ended.key]).toEqual([false, 1]);
  });

  test("has no end and no steps, and is of the caller's own links alone", async () => {
    for (const query of ["to=2026-01-01", "interval=day"]) {
      const answer = await world.get(`/v1/links/one/stats?${query}`);
      expect(answer.problem.errors).toEqual([expect.objectContaining({ rule: "stream" })]);
    }
    expect((await world.get("/v1/links/three/stats")).status).toBe(404);
    expect((await world.get("/v1/links/one/stats", {}, "HEAD")).status).toBe(200);
    expect(reads).toEqual([]);
  });

  test("of one link is read once for all its readers, at a time", async () => {
    const readers = await Promise.all(
      ["one", "one", "one", "two"].map((code) => world.read(`/v1/links/${code}/stats`)),
    );
    await Promise.all(readers.map((reader) => reader.received(1)));
    reads.length = 0;
    people = 7;
    await Promise.all(readers.map((reader) => reader.received(2)));
    expect(reads.filter((code) => code === "one").length).toBeLessThanOrEqual(
      2 * reads.filter((code) => code === "two").length + 2,
    );
    for (const reader of readers) reader.close();
    await until(() => world.live.stats().open === 0);
  });
});

test("the number of streams is bounded for an owner and for the process; who goes makes room", async () => {
  const small = await open({ maxStreams: 3, maxPerOwner: 2 });
  const bob = await addApiKey(database.sql, { owner: "bob", scopes: ["stats:read"] });
  await database.sql`
    INSERT INTO link (code, target, owner, kind, created_by) VALUES ('bobs', 'https://example.com/', 'bob', 'ALIAS', 'k')`;
  const readers = [await small.read(), await small.read()];
  const refused = await small.get("/v1/links/one/stats");
  expect([refused.status, refused.problem.detail]).toEqual([
    503,
    expect.stringContaining("you have 2 streams of counts"),
  ]);
  readers.push(await small.read("/v1/links/bobs/stats", bob));
  expect((await small.read("/v1/links/bobs/stats", bob)).status).toBe(503);
  expect(small.counts.refused).toEqual({ process: 1, owner: 1 });
  readers.shift()?.close();
  await until(() => small.live.stats().open === 2);
  readers.push(await small.read("/v1/links/bobs/stats", bob));
  expect(readers.map(({ status }) => status)).toEqual([200, 200, 200]);
  for (const reader of readers) reader.close();
  await until(() => small.live.stats().open === 0);
  await small.stop();
});

test("a stop ends all streams in good order, and lets no more in", async () => {
  const stopping = await open();
  const reader = await stopping.read();
  await reader.received(1);
  stopping.live.stop();
  await reader.ended();
  expect([reader.state.broken, stopping.counts.ended.stopped]).toEqual([false, 1]);
  expect((await stopping.get("/v1/links/one/stats")).problem).toMatchObject({ status: 503, code: "unavailable" });
  await stopping.stop();
});
