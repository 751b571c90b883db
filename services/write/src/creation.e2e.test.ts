// Creation through the admin API: a real process, a real database, and everything that people really sent.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type ApiWorld, type Body, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

describe("creation", () => {
  test("answers with the link as it is stored, and says where it is", async () => {
    const body = JSON.stringify({ target: "https://example.com/?abc#123", title: "T", tags: ["a", "b"] });
    const answer = await world.raw("/v1/links", {
      method: "POST",
      headers: world.authorized({ "Content-Type": "application/json" }),
      body,
    });
    const link = JSON.parse(answer.body) as Body;
    expect(answer.status).toBe(201);
    expect(answer.headers).toMatchObject({ location: `/v1/links/${String(link.code)}`, "cache-control": "no-store" });
    expect(link).toEqual({
      code: expect.stringMatching(/^[A-HJ-NP-Za-km-z2-9]{8}$/),
      shortUrl: `https://sho.example/${String(link.code)}`,
      target: "https://example.com/?abc#123",
      kind: "RANDOM",
      state: "ACTIVE",
      expired: false,
      version: 1,
      owner: "admin",
      title: "T",
      tags: ["a", "b"],
      note: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      createdBy: world.adminKey.split("_")[1],
      expiresAt: null,
      revokedAt: null,
      revokedBy: null,
    });
    expect((await world.api("GET", `/v1/links/${String(link.code)}`)).json).toEqual(link);
  });

  test.each([
    "a?b",
    "a/b",
    "     ",
    "🍞",
    "",
    "/",
    "   ",
    "a%20b",
    "ab",
    "a".repeat(65),
    "api",
    "METRICS",
    "a\u0000b",
    "a\nb",
  ])("refuses the alias %j with 422, and the next ordinary creation works", async (alias) => {
    const before = await world.linkCount();
    const { status, json } = await world.create({ target: "https://example.com/", alias });
    expect([status, json.code]).toEqual([422, "invalid-alias"]);
    expect(await world.linkCount()).toBe(before);
    expect((await world.create({ target: "https://example.com/" })).status).toBe(201);
  });

  test("takes null for absent", async () => {
    const { status, json } = await world.create({
      target: "https://example.com/",
      alias: null,
      title: null,
      tags: null,
      expiresAt: null,
    });
    expect([status, json.kind]).toEqual([201, "RANDOM"]);
  });

  test("tells codes apart by letter case", async () => {
    const [upper, lower] = [
      await world.create({ target: "https://a.example/", alias: "Promo" }),
      await world.create({ target: "https://b.example/", alias: "promo" }),
    ];
    expect([upper.status, lower.status]).toEqual([201, 201]);
    expect((await world.api("GET", "/v1/links/Promo")).json.target).toBe("https://a.example/");
    expect((await world.api("GET", "/v1/links/PROMO")).status).toBe(404);
  });

  test("with an expiry is the same instant however its offset is written, whatever this machine's own time zone is", async () => {
    const at = new Date(Date.now() + 90_000).toISOString().replace(/\.\d+Z$/, "");
    const shifted = new Date(Date.parse(`${at}Z`) + 3 * 3_600_000).toISOString().replace(/\.\d+Z$/, "");
    const links = await Promise.all(
      [`${at}Z`, `${shifted}+03:00`].map((expiresAt) => world.create({ target: "https://example.com/", expiresAt })),
    );
    expect(links.map(({ json }) => json.expiresAt)).toEqual([`${at}.000000Z`, `${at}.000000Z`]);
    const { json } = await world.create({ target: "https://example.com/", expiresInSeconds: 60 });
    expect(Date.parse(String(json.expiresAt)) - Date.parse(String(json.createdAt))).toBe(60_000);
  });

  test.each([
    [{ expiresAt: "2030-01-01T00:00:00" }, "expiresAt"],
    [{ expiresAt: "2001-01-01T00:00:00Z" }, "expiresAt"],
    [{ expiresInSeconds: 5, expiresAt: "2030-01-01T00:00:00Z" }, "expiresAt"],
    [{ expiresInSeconds: 0 }, "expiresInSeconds"],
    [{ expiresInSeconds: 1.5 }, "expiresInSeconds"],
    [{ codeLength: 7 }, "codeLength"],
    [{ codeLength: 33 }, "codeLength"],
    [{ codeLength: 8, alias: "both-of" }, "codeLength"],
    [{ title: "x\u0000" }, "title"],
    [{ tags: ["ok", "\ud800"] }, "tags[1]"],
    [{ tags: Array(21).fill("t") }, "tags"],
    [{ surprise: 1 }, "surprise"],
    [{ target: 7 }, "target"],
    [{ target: ["https://example.com/"] }, "target"],
    [{ alias: 7 }, "alias"],
  ])("refuses %j with 400 that names %s", async (over, field) => {
    const before = await world.linkCount();
    const { status, json } = await world.create({ target: "https://example.com/", ...over });
    expect([status, json.code]).toEqual([400, "invalid-request"]);
    expect((json.errors as { field: string }[])[0]?.field).toBe(field);
    expect(await world.linkCount()).toBe(before);
  });
});
