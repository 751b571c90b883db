// What an owner says about a link, and may change: title, tags and note.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type ApiWorld, type Body, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

let count = 0;
async function newLink(over: Body = {}): Promise<Body> {
  const full = { target: "https://example.com/", title: "T", tags: ["a"], note: "N", alias: `link-${count++}` };
  return (await world.create({ ...full, ...over })).json;
}
const patch = (code: unknown, body: unknown, key?: string) =>
  world.api("PATCH", `/v1/links/${String(code)}`, body, key);
const find = async (code: unknown) => (await world.api("GET", `/v1/links/${String(code)}`)).json;

describe("a change", () => {
  test.each<[string, Body, Body]>([
    ["a title alone", { title: "new" }, {}],
    ["tags alone", { tags: ["b", "c"] }, {}],
    ["a note alone", { note: "🍞".repeat(2000) }, {}],
    ["everything", { title: "", tags: [], note: "" }, {}],
    ["nothing", {}, {}],
    ["by null to nothing", { title: null, tags: null, note: null }, { tags: [] }],
    [
      "hostile text",
      { title: "<script>alert(1)</script>", note: "'; DROP TABLE link; --\r\n\u202e", tags: ['{"x"}'] },
      {},
    ],
  ])("of %s is answered with the link, of which nothing else changes", async (_what, change, over) => {
    const link = await newLink();
    const changed = { ...link, ...change, ...over };
    expect(await patch(link.code, change)).toEqual({ status: 200, json: changed });
    expect(await find(link.code)).toEqual(changed);
    const [row] = await world.database
      .sql`SELECT count(*)::int AS n FROM link_change WHERE code = ${String(link.code)}`;
    expect(row?.n).toBe(0);
  });

  test("may come as a merge patch, and as nothing but JSON", async () => {
    const { code } = await newLink();
    const send = async (type: string) => {
      const headers = world.authorized({ "Content-Type": type });
      return (await world.raw(`/v1/links/${String(code)}`, { method: "PATCH", headers, body: '{"title":"x"}' })).status;
    };
    expect(await send("application/merge-patch+json; charset=utf-8")).toBe(200);
    expect(await send("application/json")).toBe(200);
    expect(await send("application/json-patch+json")).toBe(415);
    expect(await send("text/plain")).toBe(415);
  });

  test("of a revoked link is possible: it stays revoked", async () => {
    const { code } = await newLink();
    await world.api("DELETE", `/v1/links/${String(code)}`);
    const { status, json } = await patch(code, { note: "taken back: wrong address" });
    expect([status, json.state, json.version, json.note]).toEqual([200, "REVOKED", 2, "taken back: wrong address"]);
  });

  test.each(["target", "expiresAt", "expiresInSeconds", "alias", "code"])(
    "of %s is refused with 422",
    async (field) => {
      const link = await newLink();
      for (const value of [link[field] ?? null, "x", null, 7]) {
        const { status, json } = await patch(link.code, { title: "new", [field]: value });
        expect([status, json.code, json.errors]).toEqual([
          422,
          "immutable-field",
          [expect.objectContaining({ field, rule: "immutable" })],
        ]);
      }
      expect(await find(link.code)).toEqual(link);
    },
  );

  test.each<[Body, string]>([
    [{ surprise: 1 }, "surprise"],
    [{ state: "ACTIVE" }, "state"],
    [{ version: 7 }, "version"],
    [{ owner: "bob" }, "owner"],
    [{ title: 7 }, "title"],
    [{ title: "x".repeat(201) }, "title"],
    [{ title: "a\u0000b" }, "title"],
    [{ tags: "a" }, "tags"],
    [{ tags: [""] }, "tags[0]"],
    [{ tags: ["ok", null] }, "tags[1]"],
    [{ tags: ["ok", "\udfff"] }, "tags[1]"],
    [{ tags: Array(21).fill("t") }, "tags"],
    [{ note: ["N"] }, "note"],
    [{ note: "x".repeat(2001) }, "note"],
    [{ note: "\ud800" }, "note"],
    [{ note: "\u0000" }, "note"],
  ])("%j is refused with 400 that names %s", async (change, field) => {
    const link = await newLink();
    const { status, json } = await patch(link.code, change);
    expect([status, json.code]).toEqual([400, "invalid-request"]);
    expect((json.errors as { field: string }[])[0]?.field).toBe(field);
    expect(await find(link.code)).toEqual(link);
  });

  test("of somebody else's link, or an unknown one, is 404; without the right it is 403", async () => {
    const link = await newLink();
    const bob = await world.addKey("bob", ["links:create"]);
    const reader = await world.addKey("admin", ["links:read", "links:revoke"]);
    expect((await patch(link.code, { title: "mine" }, bob)).status).toBe(404);
    expect((await patch("no-such-code", { title: "mine" })).status).toBe(404);
    expect((await patch("a%00b", { title: "mine" })).status).toBe(404);
    expect((await patch(link.code, { title: "mine" }, reader)).status).toBe(403);
    expect(await find(link.code)).toEqual(link);
  });
});

test("a note comes back as it was given, from a creation alone and in a batch", async () => {
  const note = 'first line\r\nsecond\t"quoted" \\ 🍞 \u2028 NULL';
  expect(await newLink({ note })).toMatchObject({ note });
  expect(await newLink({ note: null })).toMatchObject({ note: null });
  const links = [
    { target: "https://example.com/", note },
    { target: "https://example.com/", note: "x".repeat(2001) },
  ];
  const { json } = await world.api<{ results: { status: number; link?: Body }[] }>("POST", "/v1/links:batch", {
    links,
  });
  expect(json.results.map(({ status, link }) => [status, link?.note])).toEqual([
    [201, note],
    [400, undefined],
  ]);
});
