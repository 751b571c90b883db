// Bodies, paths, methods and keys that the admin API refuses.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await startApiWorld();
});
afterAll(() => world.stop());

describe("a body", () => {
  const post = (body: string | undefined, headers: Record<string, string>) =>
    world.raw("/v1/links", {
      method: "POST",
      headers: world.authorized(headers),
      ...(body === undefined ? {} : { body }),
    });
  const json = { "Content-Type": "application/json" };

  test.each<[string, string | undefined, Record<string, string>, number]>([
    ["without a type", "{}", {}, 415],
    ["of text", "{}", { "Content-Type": "text/plain" }, 415],
    ["of a problem", "{}", { "Content-Type": "application/problem+json" }, 415],
    ["of a form", "target=x", { "Content-Type": "application/x-www-form-urlencoded" }, 415],
    ["in UTF-16", "{}", { "Content-Type": "application/json; charset=utf-16" }, 415],
    ["in UTF-16, spelled oddly", "{}", { "Content-Type": "application/json; CHARSET = utf-16" }, 415],
    ["that is compressed", "{}", { ...json, "Content-Encoding": "gzip" }, 415],
    ["that is an array", "[]", json, 400],
    ["that is null", "null", json, 400],
    ["that is a text", '"x"', json, 400],
    ["that is broken", "{bad", json, 400],
    ["that is missing", undefined, json, 400],
    ["that is too large", JSON.stringify({ target: "x".repeat(120_000) }), json, 413],
    ["that is nested a thousand deep", `${"[".repeat(1000)}${"]".repeat(1000)}`, json, 400],
    ["that aims at the prototype", '{"__proto__":{"x":1},"target":"https://example.com/"}', json, 400],
  ])("%s is refused as a problem, never as a page", async (_what, body, headers, status) => {
    const answer = await post(body, headers);
    expect(answer.status).toBe(status);
    expect(answer.headers["content-type"]).toBe("application/problem+json; charset=utf-8");
    expect(JSON.parse(answer.body)).toMatchObject({ status, code: expect.any(String), detail: expect.any(String) });
    // Which field and which rule; what is no body for this call at all has neither.
    if (status === 400) expect(JSON.parse(answer.body).errors).toMatchObject([{ field: expect.any(String) }]);
  });
});

describe("a path or method that does not exist", () => {
  test.each([
    ["GET", "/nothing", 404],
    ["GET", "/v1/links/a%00b", 404],
    ["GET", "/v1/links/..%2f..%2fetc", 404],
    ["GET", "/v1/links/unknown1", 404],
    ["GET", "/v1/links/%zz", 400],
    ["PUT", "/v1/links/abc", 405],
    ["GET", "/v1/links:batch", 405],
    ["DELETE", "/v1/links/abc?wait=forever", 400],
    ["DELETE", "/v1/links/abc?timeoutMs=10001", 400],
    ["DELETE", "/v1/links/abc?timeoutMs=-1", 400],
    ["DELETE", "/v1/links/abc?wait=committed&wait=committed", 400],
    ["DELETE", "/v1/links/abc?surprise=1", 400],
  ])("%s %s is a problem with status %d", async (method, path, status) => {
    const answer = await world.raw(path, { method, headers: world.authorized() });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ status });
    if (status === 405) expect(answer.headers.allow).toBeDefined();
    expect(answer.headers["cache-control"]).toBe("no-store");
  });
});

test("a number out of its range is told the range", async () => {
  for (const timeoutMs of ["-1", "10001", "1.5", "x"]) {
    const { json } = await world.api("DELETE", `/v1/links/abc?timeoutMs=${timeoutMs}`);
    expect(json.detail).toBe("timeoutMs: must be a whole number from 0 to 10000");
  }
});

describe("a key", () => {
  const ask = async (authorization: string | undefined) => {
    const answer = await world.raw("/v1/links/unknown1", {
      headers: authorization === undefined ? {} : { Authorization: authorization },
    });
    return { status: answer.status, challenge: answer.headers["www-authenticate"] };
  };

  test.each([
    ["missing", undefined],
    ["empty", ""],
    ["without a token", "Bearer"],
    ["of another scheme", "Basic YTpi"],
    ["that is no key", "Bearer nonsense"],
    ["that is shorter", () => `Bearer ${world.adminKey.slice(0, -1)}`],
    ["that is longer", () => `Bearer ${world.adminKey}a`],
    [
      "of the right id and a wrong secret",
      () => `Bearer ${world.adminKey.slice(0, -4)}${world.adminKey.endsWith("AAAA") ? "BBBB" : "AAAA"}`,
    ],
    ["of an unknown id", () => `Bearer ${world.adminKey.replace(/_[^_]{12}_/, "_AAAAAAAAAAAA_")}`],
    ["of two tokens", () => `Bearer ${world.adminKey} ${world.adminKey}`],
    ["with bytes beyond ASCII", () => `Bearer ${world.adminKey.slice(0, -2)}\u00e9\u00e9`],
  ])("%s is answered with 401 and a challenge", async (_what, value) => {
    const { status, challenge } = await ask(typeof value === "function" ? value() : value);
    expect(status).toBe(401);
    expect(challenge).toMatch(/^Bearer/);
  });

  test("is taken with the scheme in any letter case", async () => {
    expect((await ask(`bearer ${world.adminKey}`)).status).toBe(404);
    expect((await ask(`BEARER  ${world.adminKey}`)).status).toBe(404);
  });

  test("that expired or was revoked stops at once", async () => {
    expect((await ask(`Bearer ${await world.addKey("ann", ["admin"], { expired: true })}`)).status).toBe(401);
    const key = await world.addKey("ann", ["links:read"]);
    expect((await ask(`Bearer ${key}`)).status).toBe(404);
    await world.database.sql`UPDATE api_key SET revoked_at = now() WHERE id = ${key.split("_")[1] ?? ""}`;
    expect((await ask(`Bearer ${key}`)).status).toBe(401);
  });

  test("does what its scopes say and nothing else", async () => {
    const key = await world.addKey("ann", ["links:read"]);
    const { status, json } = await world.api("POST", "/v1/links", { target: "https://example.com/" }, key);
    expect([status, json.code]).toEqual([403, "insufficient-scope"]);
  });

  test("of one owner does not reach the links of another", async () => {
    const bob = await world.addKey("bob", ["links:create", "links:read", "links:revoke", "stats:read"]);
    const { json } = await world.create({ target: "https://example.com/", alias: "of-the-admin" });
    expect(json.owner).toBe("admin");
    for (const [method, path] of [
      ["GET", "/v1/links/of-the-admin"],
      ["DELETE", "/v1/links/of-the-admin"],
      ["GET", "/v1/links/of-the-admin/stats"],
    ] as const)
      expect((await world.api(method, path, undefined, bob)).status).toBe(404);
    const { json: batch } = await world.api<{ results: { status: number }[] }>(
      "POST",
      "/v1/links:revoke",
      { codes: ["of-the-admin"] },
      bob,
    );
    expect(batch.results[0]?.status).toBe(404);
    expect((await world.api("GET", "/v1/links/of-the-admin")).json.state).toBe("ACTIVE");
  });

  test("never reaches the log, nor does anything that looks like one", () => {
    expect(world.write.output()).not.toContain(world.adminKey.slice(-43));
    for (const line of world.write.output().split("\n").filter(Boolean))
      expect(JSON.parse(line)).toMatchObject({ service: "write" });
  });
});
