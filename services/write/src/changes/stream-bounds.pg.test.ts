// What bounds streams of changes, and what happens to them when something is wrong. Over real connections, with short times.
import { describe, expect, test } from "@jest/globals";
import { until } from "@linkfence/testkit";
import { type FeedWorld, startFeedWorld } from "./feed-world.fixture.ts";
import type { StreamReader } from "./reader.fixture.ts";

async function untilCount(read: () => number, least: number): Promise<void> {
  await until(() => read() >= least);
}

/** Far more than the kernel takes for the two ends of a connection. */
const append = (world: FeedWorld, code: string) => world.database.sql`
  INSERT INTO link_change (code, version, changed_by, owner)
  SELECT ${code}, 2, 'k', 'ann' FROM generate_series(1, 80000)`;

describe("a reader that does not read", () => {
  test("is cut off, and another one of the same owner gets everything", async () => {
    const world = await startFeedWorld();
    const key = await world.addKey("ann");
    const [code = ""] = await world.revokeNew("ann");
    const slow = await world.read({ key });
    slow.pause();
    await append(world, code);
    const good = await world.read({ key, path: "/v1/changes?after=0" });
    await untilCount(() => world.counts.ended.slow, 1);
    await good.received(80_001);
    const seqs = good.events.map(({ data }) => Number(data.seq));
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
    expect(new Set(seqs).size).toBe(80_001);
    slow.resume();
    await slow.ended();
    expect(slow.state.broken).toBe(true);
    await world.stop();
  });
});

describe("the number of streams", () => {
  test("is bounded for an owner and for the process; who goes makes room, and pages are read without a place", async () => {
    const small = await startFeedWorld({ maxStreams: 3, maxPerOwner: 2 });
    const [ann, bob] = [await small.addKey("ann"), await small.addKey("bob")];
    const stream = { headers: { Accept: "text/event-stream" } };
    const readers = [await small.read({ key: ann }), await small.read({ key: ann })];
    const refused = await small.get("/v1/changes", ann, stream);
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(refused.headers.get("content-type")).toMatch(/^application\/problem\+json/);
    expect(await refused.json()).toMatchObject({
      code: "overloaded",
      detail: expect.stringContaining("you have 2 streams"),
    });
    readers.push(await small.read({ key: bob }));
    const full = await small.get("/v1/changes", bob, stream);
    expect(await full.json()).toMatchObject({
      status: 503,
      code: "overloaded",
      detail: expect.stringContaining("process has 3"),
    });
    expect(small.counts.refused).toEqual({ process: 1, owner: 1 });
    expect((await small.get("/v1/changes", ann)).status).toBe(200);
    expect((await small.get("/v1/changes", ann, { ...stream, method: "HEAD" })).status).toBe(200);
    readers.shift()?.close();
    await untilCount(() => small.counts.ended.client, 1);
    readers.push(await small.read({ key: bob }));
    expect(readers.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const reader of readers) reader.close();
    await untilCount(() => small.counts.ended.client, 4);
    expect(small.streams.stats().open).toBe(0);
    await small.stop();
  });
});

test("a page that cannot be read is read later; nothing is missed and nothing comes twice", async () => {
  let calls = 0;
  const failing = await startFeedWorld({}, ({ glance, readRange }) => ({
    glance: (ids) => (calls++ % 3 === 1 ? Promise.reject(new Error("no head")) : glance(ids)),
    readRange: (range, timeoutMs) =>
      calls++ % 2 === 0 ? Promise.reject(new Error("no page")) : readRange(range, timeoutMs),
  }));
  let reader: StreamReader | undefined;
  const key = await failing.addKey("ann");
  while (reader?.status !== 200) reader = await failing.read({ key });
  const codes: string[] = [];
  for (let n = 0; n < 10; n += 1) codes.push(...(await failing.revokeNew("ann", 150)));
  await reader.received(1500);
  expect(reader.codes()).toEqual(codes);
  expect(failing.counts.failures.head).toBeGreaterThan(0);
  expect(failing.counts.failures.page).toBeGreaterThan(0);
  reader.close();
  await failing.stop();
});

test("the log is looked at by one statement for all streams, whosever they are", async () => {
  const glances: number[] = [];
  const watched = await startFeedWorld({}, ({ glance, readRange }) => ({
    readRange,
    glance(ids) {
      glances.push(ids.length);
      return glance(ids);
    },
  }));
  const keys = await Promise.all(["ann", "bob", "ann"].map((owner) => watched.addKey(owner)));
  const { head } = await watched.changes.glance([]);
  const readers = await Promise.all(
    keys.flatMap((key) => [key, key]).map((key) => watched.read({ key, path: `/v1/changes?after=${head}` })),
  );
  glances.length = 0;
  await untilCount(() => glances.length, 3);
  const codes = await watched.revokeNew("ann", 2);
  await Promise.all(readers.filter((_, i) => i < 2 || i > 3).map((reader) => reader.received(2)));
  expect(readers.map((reader) => reader.codes())).toEqual([codes, codes, [], [], codes, codes]);
  expect(new Set(glances)).toEqual(new Set([3]));
  for (const reader of readers) reader.close();
  await watched.stop();
});

test("a stop ends all streams in good order, lets no more in, and does not wait for who does not read", async () => {
  const stopping = await startFeedWorld({ drainMs: 60_000 });
  const key = await stopping.addKey("ann");
  const [code = ""] = await stopping.revokeNew("ann");
  const [good, slow] = [await stopping.read({ key }), await stopping.read({ key })];
  slow.pause();
  await append(stopping, code);
  await good.received(80_000);
  stopping.streams.stop();
  await good.ended();
  expect(good.state.broken).toBe(false);
  expect(stopping.counts.ended.stopped).toBe(2);
  const late = await stopping.get("/v1/changes", key, { headers: { Accept: "text/event-stream" } });
  expect(await late.json()).toMatchObject({ status: 503, code: "unavailable" });
  slow.resume();
  await slow.ended();
  await stopping.stop();
});
