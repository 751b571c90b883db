// The statistics routes, with a click-ingest that the test controls.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { ClickPage, ClickRecord, LinkStats, OwnerStats } from "@linkfence/contracts";
import { until } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { type FakeIngest, startFakeIngest } from "./fake-ingest.fixture.ts";

let ingest: FakeIngest;
let world: ApiWorld;

beforeAll(async () => {
  ingest = await startFakeIngest();
  world = await startApiWorld({ CLICK_INGEST_URL: ingest.url });
  for (const alias of ["measured", "berlin", "paged"]) await world.create({ target: "https://example.com/", alias });
  ingest.click("measured", Date.now(), Date.now() - 86_400_000);
  ingest.click("berlin", ...hours("2026-03-27T23:00:00Z", 71));
});
beforeEach(() => {
  ingest.state.mood = null;
});
afterAll(async () => {
  await world.stop();
  ingest.close();
});

const hours = (first: string, count: number) =>
  Array.from({ length: count }, (_, n) => Date.parse(first) + n * 3_600_000);
const statsOf = async (code: string, query = "") =>
  (await world.api<LinkStats>("GET", `/v1/links/${code}/stats${query}`)).json;

describe("the statistics of a link", () => {
  test("are those of the last thirty days, also of a revoked one", async () => {
    const stats = await statsOf("measured");
    expect(stats).toMatchObject({
      code: "measured",
      total: 2,
      bots: 0,
      prefetches: 0,
      timezone: "UTC",
      interval: "day",
    });
    expect(stats.series).toHaveLength(30);
    expect(stats.series.at(-1)?.start).toMatch(/T00:00:00Z$/);
    expect(stats.top.browsers).toEqual({ items: [{ value: "Firefox", total: 2 }], others: 0 });
    expect(stats.dropped).toEqual([{ reason: "ring-full", total: 3 }]);
    expect(stats.killed).toEqual({ atMost: 1000, unknown: 1 });
    await world.api("DELETE", "/v1/links/measured?wait=committed");
    expect((await statsOf("measured")).total).toBe(2);
  });

  test("are cut at the days of a time zone, also of those without 24 hours", async () => {
    const stats = await statsOf("berlin", "?from=2026-03-28&to=2026-03-31&timezone=Europe/Berlin");
    expect(stats.series).toEqual([
      { start: "2026-03-28T00:00:00+01:00", total: 24, bots: 0, prefetches: 0 },
      { start: "2026-03-29T00:00:00+01:00", total: 23, bots: 0, prefetches: 0 },
      { start: "2026-03-30T00:00:00+02:00", total: 24, bots: 0, prefetches: 0 },
    ]);
    expect(stats).toMatchObject({ total: 71, from: "2026-03-28T00:00:00+01:00", to: "2026-03-31T00:00:00+02:00" });
    const byHour = await statsOf("berlin", "?from=2026-03-29&to=2026-03-30&timezone=Europe/Berlin&interval=hour");
    expect(byHour.series.map(({ total }) => total)).toEqual(Array(23).fill(1));
  });

  test.each([
    ["from=yesterday", "from", "date-time"],
    ["from=2026-01-02&to=2026-01-01", "from", "order"],
    ["from=2020-01-01&interval=hour", "from", "points"],
    ["timezone=Mars/Base", "timezone", "timezone"],
    ["interval=week", "interval", "enum"],
    ["since=2026-01-01", "since", "unknown"],
  ])("are refused for ?%s, by field and rule", async (query, field, rule) => {
    const { status, json } = await world.api<{ errors: unknown }>("GET", `/v1/links/measured/stats?${query}`);
    expect([status, json.errors]).toEqual([400, [expect.objectContaining({ field, rule })]]);
  });

  test("that is not the caller's are not even asked for", async () => {
    ingest.asked.length = 0;
    const bob = await world.addKey("bob", ["stats:read"]);
    for (const code of ["measured", "no-such-code", "a%2F..%2Fb"])
      for (const what of ["stats", "clicks"])
        expect((await world.api("GET", `/v1/links/${code}/${what}`, undefined, bob)).status).toBe(404);
    expect(ingest.asked).toEqual([]);
  });
});

describe("the statistics of an owner", () => {
  test.each([
    ["text/event-stream", 406],
    ["text/event-stream, */*;q=0.1", 200],
    ["text/html", 200],
  ])("are no stream: who takes %s is answered %d", async (accept, status) => {
    const answer = await world.raw("/v1/stats", { headers: { ...world.authorized(), Accept: accept } });
    expect([answer.status, answer.headers.vary]).toEqual([status, expect.stringContaining("Accept")]);
    if (status === 406) expect(JSON.parse(answer.body)).toMatchObject({ code: "not-acceptable" });
  });

  test("are asked for by the owner of the key", async () => {
    ingest.asked.length = 0;
    const bob = await world.addKey("Bob & Söhne", ["stats:read"]);
    const { status, json } = await world.api<OwnerStats>("GET", "/v1/stats?from=2026-03-28", undefined, bob);
    expect([status, json.from]).toEqual([200, "2026-03-28T00:00:00Z"]);
    expect(json.links?.map(({ code }) => code)).toContain("berlin");
    expect(new URL(ingest.asked[0] ?? "", "http://x").searchParams.get("owner")).toBe("Bob & Söhne");
  });
});

describe("the clicks of a link", () => {
  const record = (n: number): ClickRecord => ({
    id: `0199f1e8-0000-7000-8000-${String(n).padStart(12, "0")}`,
    clickedAt: "2026-03-28T00:00:00.000000Z",
    version: 1,
    referrer: null,
    browser: null,
    system: null,
    device: null,
    country: null,
    bot: false,
    prefetch: false,
  });
  const page = (query: string, key = world.adminKey) =>
    world.api<ClickPage & { code: string }>("GET", `/v1/links/paged/clicks?limit=3${query}`, undefined, key);

  test("come page by page, each once", async () => {
    ingest.state.records = Array.from({ length: 8 }, (_, n) => record(8 - n));
    const seen: string[] = [];
    let next: string | null = "";
    for (let pages = 0; next !== null && pages < 5; pages += 1) {
      const { status, json }: Awaited<ReturnType<typeof page>> = await page(next === "" ? "" : `&after=${next}`);
      expect(status).toBe(200);
      seen.push(...json.items.map(({ id }) => id));
      next = json.next;
    }
    expect(seen).toEqual(ingest.state.records.map(({ id }) => id));
    expect(next).toBeNull();
  });

  test("have cursors of their own link and owner", async () => {
    ingest.state.records = Array.from({ length: 8 }, (_, n) => record(8 - n));
    const cursor = (await page("")).json.next;
    const elsewhere = await world.api("GET", `/v1/links/berlin/clicks?after=${cursor}`);
    expect([elsewhere.status, elsewhere.json.code]).toEqual([400, "invalid-cursor"]);
    expect((await world.api("GET", `/v1/links?after=${cursor}`)).json.code).toBe("invalid-cursor");
    expect((await page(`&after=${cursor?.replace("~", "-")}`)).json.code).toBe("invalid-cursor");
  });
});

test("a click-ingest that hangs is a 503 of these routes, within its deadline, while every other route answers", async () => {
  const hanging: unknown[] = [];
  ingest.state.mood = (response) => void hanging.push(response);
  const paths = ["/v1/links/measured/stats", "/v1/links/measured/clicks", "/v1/stats"];
  const reads = Array.from({ length: 21 }, (_, n) => world.api("GET", paths[n % 3] ?? ""));
  await until(() => hanging.length >= 21);
  expect((await world.create({ target: "https://example.com/" })).status).toBe(201);
  expect((await world.api("GET", "/v1/links/measured")).status).toBe(200);
  for (const { status, json } of await Promise.all(reads))
    expect([status, json.code]).toEqual([503, "statistics-unavailable"]);
  ingest.state.mood = null;
  expect((await statsOf("measured")).total).toBe(2);
  const told = world.write.records().filter(({ message }) => message.startsWith("statistics can"));
  expect(told.map(({ message }) => message)).toEqual(["statistics cannot be read", "statistics can be read again"]);
});
