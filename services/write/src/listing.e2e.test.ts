// Listing through the admin API: pages, cursors that were tampered with, and parameters that mean nothing.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readMetric } from "@linkfence/testkit";
import { type ApiWorld, type Body, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
let bob: string;
beforeAll(async () => {
  world = await startApiWorld();
  bob = await world.addKey("bob", ["links:read", "links:create"]);
  for (const n of [1, 2, 3, 4, 5])
    await world.create({ target: "https://example.com/", alias: `link-${n}`, tags: ["t"] });
  await world.api("DELETE", "/v1/links/link-2");
  await world.create({ target: "https://example.com/", alias: "brief", expiresInSeconds: 3600, note: "N" });
  await world.database.sql`INSERT INTO link (code, target, owner, kind, created_by, expires_at, created_at)
    VALUES ('over', 'https://example.com/', 'admin', 'ALIAS', 'k', now(), '2020-01-01T00:00:00.000001Z')`;
  for (const n of [1, 2])
    await world.api("POST", "/v1/links", { target: "https://bob.example/", alias: `bob-${n}` }, bob);
});
afterAll(() => world.stop());

type Page = { items: Body[]; next: string | null; code?: string; errors?: { field: string; rule: string }[] };
const list = (query: string, key?: string) => world.api<Page>("GET", `/v1/links${query}`, undefined, key);
const codesOf = ({ json }: { json: Page }) => json.items.map(({ code }) => code);
async function cursorOf(query: string, key?: string): Promise<string> {
  const { next } = (await list(query, key)).json;
  if (next === null) throw new Error("there is no next page");
  return next;
}
const withCursor = (query: string, cursor: string) => `${query}&after=${encodeURIComponent(cursor)}`;

describe("a listing", () => {
  test("shows the caller's own links, newest first, as they are shown alone", async () => {
    const all = await list("");
    expect(all.status).toBe(200);
    expect(codesOf(all)).toEqual(["brief", "link-5", "link-4", "link-3", "link-2", "link-1", "over"]);
    expect(all.json.next).toBeNull();
    expect(all.json.items[0]).toEqual((await world.api("GET", "/v1/links/brief")).json);
    expect(all.json.items[0]).toMatchObject({ note: "N", expired: false });
    expect(codesOf(await list("", bob))).toEqual(["bob-2", "bob-1"]);
  });

  test("goes on page by page, by the cursor or by the Link field, which keeps the filters", async () => {
    const answer = await world.raw("/v1/links?limit=2&tag=t", { headers: world.authorized() });
    const { next } = JSON.parse(answer.body) as Page;
    const [, path] = /^<(\/v1\/links\?[^>]+)>; rel="next"$/.exec(String(answer.headers.link)) ?? [];
    expect(path).toBe(`/v1/links?${new URLSearchParams({ limit: "2", tag: "t", after: String(next) })}`);
    const second = await world.raw(String(path), { headers: world.authorized() });
    expect((JSON.parse(second.body) as Page).items.map(({ code }) => code)).toEqual(["link-3", "link-2"]);
    const last = await world.raw(withCursor("/v1/links?tag=t&limit=100", String(next)), {
      headers: world.authorized(),
    });
    expect([last.headers.link, (JSON.parse(last.body) as Page).next]).toEqual([undefined, null]);
  });

  test("by state parts the links", async () => {
    expect(codesOf(await list("?state=active"))).toEqual(["brief", "link-5", "link-4", "link-3", "link-1"]);
    expect(codesOf(await list("?state=revoked"))).toEqual(["link-2"]);
    expect(codesOf(await list("?state=expired"))).toEqual(["over"]);
    expect(codesOf(await list("?createdAfter=2020-01-01T00:00:00Z&createdBefore=2020-01-01T01:00:00%2B01:00"))).toEqual(
      [],
    );
    expect(codesOf(await list("?createdBefore=2020-01-01T00:00:00.000002Z"))).toEqual(["over"]);
    expect(codesOf(await list("?createdBefore=2020-01-01T00:00:00.000001Z"))).toEqual([]);
    expect(await readMetric(world.write, "linkfence_listings_cut_total")).toBe(0);
  });

  test("needs the right to read", async () => {
    const key = await world.addKey("ann", ["links:create"]);
    expect((await list("", key)).status).toBe(403);
  });
});

describe("a cursor", () => {
  test("with any of its bits changed is refused", async () => {
    const cursor = await cursorOf("?limit=2");
    const bytes = Buffer.from(cursor, "latin1");
    const answers = new Map<string, number>();
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const { status, json } = await list(withCursor("?limit=2", changed.toString("latin1")));
      const answer = `${status} ${json.code} ${json.errors?.[0]?.field}`;
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
    expect([...answers]).toEqual([["400 invalid-cursor after", bytes.length * 8]]);
    expect((await list(withCursor("?limit=2", cursor))).status).toBe(200);
  });

  test("of another owner, another filter or nobody is refused", async () => {
    const cursor = await cursorOf("?limit=1");
    const ofTag = await cursorOf("?limit=1&tag=t");
    const ofBob = await cursorOf("?limit=1", bob);
    const refused: string[] = [
      withCursor("?limit=1", ofBob),
      withCursor("?limit=1", ofTag),
      withCursor("?tag=u", ofTag),
      ...["tag=t", "state=active", "createdAfter=2020-01-01T00:00:00Z", "createdBefore=2030-01-01T00:00:00Z"].map(
        (filter) => withCursor(`?${filter}`, cursor),
      ),
      ...["", "null", "AAAA", "0", "\0", "9223372036854775808", "%", "🍞", "1~", cursor.slice(0, -1), `${cursor}A`].map(
        (text) => withCursor("?limit=1", text),
      ),
      withCursor("?limit=1", "A".repeat(6000)),
      withCursor("?limit=1", cursor.toUpperCase()),
      withCursor("?limit=1", cursor.replace(/^\d+/, "2147483648")),
    ];
    for (const query of refused) {
      const { status, json } = await list(query);
      expect([query, status, json.code]).toEqual([query, 400, "invalid-cursor"]);
    }
    expect((await list(withCursor("?limit=1", cursor), bob)).json.code).toBe("invalid-cursor");
    expect((await list(withCursor("?limit=50", cursor))).status).toBe(200);
  });

  test("of ten thousand characters does not fit into a request", async () => {
    const answer = await world.raw(`/v1/links?after=${"A".repeat(10_240)}`, { headers: world.authorized() });
    expect(answer.status).toBe(431);
  });
});

test.each([
  ["limit=1&limit=2", "limit", "repeated"],
  ["after=x&after=y", "after", "repeated"],
  ["limit[]=1", "limit[]", "unknown"],
  ["tag[x]=1", "tag[x]", "unknown"],
  ["__proto__=1", "__proto__", "unknown"],
  ["offset=20", "offset", "unknown"],
  ["limit=", "limit", "type"],
  ["limit", "limit", "type"],
  ["limit=0", "limit", "minimum"],
  ["limit=-1", "limit", "minimum"],
  ["limit=101", "limit", "maximum"],
  ["limit=1e1", "limit", "type"],
  ["limit=0x10", "limit", "type"],
  ["limit=20abc", "limit", "type"],
  ["limit=%00", "limit", "type"],
  ["limit=1+", "limit", "type"],
  ["limit=1.0", "limit", "type"],
  ["limit=020", "limit", "type"],
  ["limit=+20", "limit", "type"],
  ["limit=1e21", "limit", "type"],
  ["limit=9007199254740993", "limit", "maximum"],
  ["limit=%D9%A2%D9%A0", "limit", "type"],
  ["state=ACTIVE", "state", "enum"],
  ["state=%00", "state", "enum"],
  ["tag=", "tag", "minLength"],
  ["tag=a%00b", "tag", "text"],
  ["tag=%ED%A0%80", "tag", "encoding"],
  ["tag=%ff", "tag", "encoding"],
  ["tag=%", "tag", "encoding"],
  ["tag=%zz", "tag", "encoding"],
  ["%ff=1", "\ufffd", "encoding"],
  [`tag=${"x".repeat(51)}`, "tag", "maxLength"],
  ["createdAfter=2026-01-01T00:00:00+01:00", "createdAfter", "date-time"],
  ["createdBefore=infinity", "createdBefore", "date-time"],
  ["createdBefore=0000-01-01T00:00:00Z", "createdBefore", "range"],
])("a listing with %s is refused, and told which parameter breaks which rule", async (query, field, rule) => {
  const { status, json } = await list(`?${query}`);
  expect([status, json.code, json.errors?.[0]]).toEqual([
    400,
    "invalid-request",
    expect.objectContaining({ field, rule }),
  ]);
});
