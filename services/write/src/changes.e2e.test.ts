// Streams of changes from real processes, with their real times.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createApiClient,
  createHttpClient,
  type RunningService,
  readMetric,
  startService,
  waitUntilReady,
} from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { openReader, type StreamReader } from "./changes/reader.fixture.ts";

let world: ApiWorld;
let second: RunningService;
const http = createHttpClient(8);
beforeAll(async () => {
  world = await startApiWorld();
  second = await startWrite();
});
afterAll(async () => {
  http.close();
  await second.stop();
  await world.stop();
});

async function startWrite(env: Record<string, string> = {}): Promise<RunningService> {
  const service = await startService("write", {
    DATABASE_URL: world.database.url,
    PUBLIC_BASE_URL: "https://sho.example",
    CLICK_INGEST_URL: "http://127.0.0.1:1",
    ...env,
  });
  await waitUntilReady(service);
  return service;
}

type Results = { results: { link?: { code: string }; code?: string }[] };
/** Creates links and revokes them in one call each, by one process. Returns their codes. */
async function revokeNew(by: RunningService, key: string, count: number): Promise<string[]> {
  const api = createApiClient(http, by.url, key);
  const links = Array(count).fill({ target: "https://example.com/" });
  const created = await api<Results>("POST", "/v1/links:batch", { links });
  const codes = created.json.results.map(({ link }) => link?.code ?? "");
  await api<Results>("POST", "/v1/links:revoke", { codes });
  return codes;
}
const scopes = ["links:create", "links:read", "links:revoke"];

describe("a stream", () => {
  test("brings what this process and another one revoke, a batch of a thousand too, and nothing of another owner", async () => {
    const [ann, bob] = [await world.addKey("ann", scopes), await world.addKey("bob", scopes)];
    const readers = await Promise.all([world.write, second].map(({ url }) => openReader(url, { key: ann })));
    const codes: string[] = [];
    for (const [by, count] of [
      [world.write, 1],
      [second, 1],
      [second, 1000],
      [world.write, 30],
    ] as const) {
      await revokeNew(by, bob, 3);
      codes.push(...(await revokeNew(by, ann, count)));
    }
    for (const reader of readers) {
      await reader.received(codes.length);
      expect(reader.codes()).toEqual(codes);
      expect(new Set(reader.events.map(({ data }) => data.changedBy))).toEqual(new Set([ann.split("_")[1]]));
      reader.close();
    }
    const page = await world.api<{ items: { code: string }[] }>("GET", "/v1/changes?limit=1000", undefined, ann);
    expect(page.json.items.map(({ code }) => code)).toEqual(codes.slice(0, 1000));
  });

  test("goes on at another process, and at one that was killed and started anew, where it broke", async () => {
    const key = await world.addKey("carl", scopes);
    let service = await startWrite();
    let reader = await openReader(service.url, { key });
    const codes = await revokeNew(second, key, 20);
    await reader.received(20);
    const seen = reader.codes();
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      service.kill(signal);
      await reader.ended();
      expect(reader.state.broken).toBe(signal === "SIGKILL");
      await service.exited;
      const { lastId } = reader.state;
      codes.push(...(await revokeNew(second, key, 20)));
      service = await startWrite();
      reader = await openReader(service.url, { key, headers: { "Last-Event-ID": lastId } });
      codes.push(...(await revokeNew(second, key, 20)));
      await reader.received(40);
      seen.push(...reader.codes());
    }
    expect(seen).toEqual(codes);
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    await reader.ended();
  });

  test("outlives the time after which a silent connection is cut off, by its heartbeats", async () => {
    const key = await world.addKey("dora", scopes);
    const reader = await openReader(world.write.url, { key });
    // The third comes after 45 s; a connection on which nothing moves is cut off after 30 s.
    await Promise.race([reader.until(() => reader.state.heartbeats >= 2), reader.ended()]);
    await reader.until(() => reader.state.heartbeats >= 3);
    const codes = await revokeNew(second, key, 1);
    await reader.received(1);
    expect(reader.codes()).toEqual(codes);
    reader.close();
  }, 90_000);
});

test("ten streams of an owner and a hundred of a process are the most; both bounds are counted, and a stop ends them all", async () => {
  const service = await startWrite();
  const readers: StreamReader[] = [];
  for (let owner = 0; owner < 10; owner += 1) {
    const key = await world.addKey(`many-${owner}`, scopes);
    readers.push(...(await Promise.all(Array.from({ length: 10 }, () => openReader(service.url, { key })))));
  }
  const refused = async (owner: string) => {
    const reader = await openReader(service.url, { key: await world.addKey(owner, scopes) });
    await reader.ended();
    return [reader.status, reader.headers["retry-after"]];
  };
  expect(readers.map(({ status }) => status)).toEqual(Array(100).fill(200));
  expect([await refused("many-0"), await refused("one-more")]).toEqual([
    [503, "2"],
    [503, "2"],
  ]);
  const count = (bound: string) => readMetric(service, `linkfence_change_streams_refused_total{bound="${bound}"}`);
  expect([await count("owner"), await count("process")]).toEqual([1, 1]);
  expect(await readMetric(service, "linkfence_change_streams")).toBe(100);
  const codes = await revokeNew(second, await world.addKey("many-3", scopes), 5);
  const own = readers.slice(30, 40);
  await Promise.all(own.map((reader) => reader.received(5)));
  expect(own.map((reader) => reader.codes())).toEqual(Array(10).fill(codes));
  expect(await readMetric(service, "linkfence_change_stream_events_total")).toBe(50);
  const before = performance.now();
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  // Requests may take 12 s to end; streams must not be what they are waited for.
  expect(performance.now() - before).toBeLessThan(12_000);
  await Promise.all(readers.map((reader) => reader.ended()));
  expect(readers.every(({ state }) => !state.broken)).toBe(true);
});
