// GET /v1/changes as JSON: what it answers, to whom, and what it refuses.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { ChangePage } from "@linkfence/contracts";
import { type FeedWorld, startFeedWorld } from "../changes/feed-world.fixture.ts";

let world: FeedWorld;
let key: string;
let seqs: number[];
let codes: string[];
beforeAll(async () => {
  world = await startFeedWorld();
  key = await world.addKey("ann");
  codes = await world.createLinks("ann", 25);
  seqs = [];
  for (const code of codes) {
    seqs.push(...(await world.revoke("ann", [code], "by-key")));
    await world.revokeNew("bob");
  }
});
afterAll(() => world.stop());

async function page(query: string, by = key) {
  const response = await world.get(`/v1/changes${query}`, by);
  return { status: response.status, headers: response.headers, json: (await response.json()) as ChangePage };
}
const stream = { headers: { Accept: "text/event-stream" } };

describe("a page of changes", () => {
  test("has the caller's own, in order, and says where its reader stands and whether there are more", async () => {
    const first = await page("?limit=10");
    expect(first.status).toBe(200);
    expect(first.json.items.map(({ code }) => code)).toEqual(codes.slice(0, 10));
    expect(first.json.items[0]).toEqual({
      seq: seqs[0],
      type: "revoked",
      code: codes[0],
      version: 2,
      changedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      changedBy: "by-key",
    });
    expect([first.json.next, first.json.position]).toEqual([seqs[9], seqs[9]]);
    const last = await page(`?limit=15&after=${first.json.next}`);
    expect(last.json.items.map(({ seq }) => seq)).toEqual(seqs.slice(10));
    expect([last.json.next, last.json.position]).toEqual([null, seqs[24]]);
    expect(first.headers.get("vary")).toBe("Accept");
    expect(first.headers.get("cache-control")).toBe("no-store");
  });

  test("behind the last change is empty, and leaves its reader where it was", async () => {
    for (const after of [seqs[24], 9_000_000, Number.MAX_SAFE_INTEGER])
      expect((await page(`?after=${after}`)).json).toEqual({ items: [], next: null, position: after });
    expect((await page("", await world.addKey("nobody"))).json).toEqual({ items: [], next: null, position: 0 });
  });

  test("has a hundred where it is not said how many, and a thousand at the most", async () => {
    const own = await world.addKey("carl");
    await world.revokeNew("carl", 1001);
    expect((await page("", own)).json.items).toHaveLength(100);
    const all = await page("?limit=1000", own);
    expect(all.json.items).toHaveLength(1000);
    expect((await page(`?after=${all.json.next}`, own)).json.items).toHaveLength(1);
  });

  test("needs the right to read links", async () => {
    const refused = await world.get("/v1/changes", await world.addKey("ann", ["links:create", "links:revoke", "keys"]));
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([403, "insufficient-scope"]);
    expect((await world.get("/v1/changes", "nonsense", stream)).status).toBe(401);
    expect((await page("?limit=1", await world.addKey("ann", ["admin"]))).json.items).toHaveLength(1);
  });

  test("may be asked for without its content", async () => {
    for (const fields of [{}, stream]) {
      const head = await world.get("/v1/changes", key, { ...fields, method: "HEAD" });
      expect([head.status, await head.text()]).toEqual([200, ""]);
    }
    expect(world.streams.stats().open).toBe(0);
    const posted = await world.get("/v1/changes", key, { method: "POST" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});

describe("what the caller likes best", () => {
  test.each([
    ["", "application/json"],
    ["*/*", "application/json"],
    ["application/json", "application/json"],
    ["text/event-stream", "text/event-stream"],
    ["text/*", "text/event-stream"],
    ["TEXT/Event-Stream", "text/event-stream"],
    ["text/event-stream, */*;q=0.1", "text/event-stream"],
    ["text/event-stream;q=0.5, application/json;q=0.4", "text/event-stream"],
    ["text/event-stream;q=0.4, application/json;q=0.5", "application/json"],
    ["text/event-stream, application/json", "text/event-stream"],
    ["application/json, text/event-stream", "application/json"],
    ["text/event-stream;q=0, */*", "application/json"],
    ["application/json;q=0, */*", "text/event-stream"],
    ["text/html", "application/json"],
    [", ;;; q=, =/=", "application/json"],
    [`${"a/b,".repeat(1500)}x`, "application/json"],
  ])("where it says Accept: %.60s, is %s", async (accept, type) => {
    const response = await world.get("/v1/changes", key, { method: "HEAD", headers: { Accept: accept } });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")?.split(";")[0]).toBe(type);
    expect(response.headers.get("vary")).toBe("Accept");
  });
});

describe("nonsense", () => {
  const long = "9".repeat(6000);
  const bad = [
    "",
    " ",
    "-1",
    "+1",
    "01",
    "1.5",
    "1e3",
    "0x10",
    "abc",
    "%00",
    "%ud800",
    "%ed%a0%80",
    "%",
    "null",
    "1,2",
  ];
  const beyond = ["9007199254740992", "9007199254740993", long, `${long}x`, "[]", "{}", "%F0%9F%8D%9E"];
  const query = [
    ...[...bad, ...beyond].flatMap((value) => [`after=${value}`, `limit=${value}`]),
    ...[
      "limit=0",
      "limit=1001",
      "after=1&after=1",
      "after[]=1",
      "after[x]=1",
      "limit=1&limit=2",
      "since=1",
      "cursor=",
      "=",
      "%00=1",
    ],
  ];
  test.each(query)("is refused as a parameter, of a page and of a stream: %.40s", async (text) => {
    for (const fields of [{}, stream]) {
      const { status, headers, body } = await world.get(`/v1/changes?${text}`, key, fields);
      await body?.cancel();
      expect([status, headers.get("content-type")]).toEqual([400, "application/problem+json; charset=utf-8"]);
    }
    expect(world.streams.stats().open).toBe(0);
  });

  test("a stream has no limit, and says so", async () => {
    const refused = await world.get("/v1/changes?limit=5", key, stream);
    expect(await refused.json()).toMatchObject({ status: 400, errors: [{ field: "limit", rule: "stream" }] });
  });

  test.each([...bad.filter((text) => !text.includes("%")), "9007199254740992", long, "\u00ff\u0080"])(
    "is refused as Last-Event-ID: %.40s",
    async (id) => {
      const fields = { headers: { ...stream.headers, "Last-Event-ID": id } };
      const refused = await world.get("/v1/changes?after=1", key, fields);
      expect(await refused.json()).toMatchObject({
        status: 400,
        code: "invalid-request",
        errors: [{ field: "Last-Event-ID", rule: "position" }],
      });
    },
  );
});
