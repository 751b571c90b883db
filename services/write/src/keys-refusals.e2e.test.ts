// Bodies, parameters, ids and tokens that the calls about keys refuse.
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type ApiWorld, type Body, startApiWorld } from "./api-world.fixture.ts";
import { createKeyCalls, type KeyCalls } from "./key-calls.fixture.ts";

let world: ApiWorld;
let calls: KeyCalls;
beforeAll(async () => {
  world = await startApiWorld();
  calls = createKeyCalls(world);
});
afterAll(() => world.stop());

type Refusal = { code: string; errors?: { field: string; rule: string }[] };
const own = () => world.adminKey.split("_")[1] ?? "";

test.each<[string, Body, string]>([
  ["no name", { scopes: ["keys"] }, "name required"],
  ["an empty name", { name: "", scopes: ["keys"] }, "name minLength"],
  ["a name of 101 characters", { name: "🦊".repeat(101), scopes: ["keys"] }, "name maxLength"],
  ["a NUL in the name", { name: "a\0b", scopes: ["keys"] }, "name text"],
  ["half a surrogate pair", { name: "\ud800", scopes: ["keys"] }, "name text"],
  ["a list for a name", { name: ["n"], scopes: ["keys"] }, "name type"],
  ["no scopes", { name: "n" }, "scopes required"],
  ["an empty list of scopes", { name: "n", scopes: [] }, "scopes minItems"],
  ["a scope for a list", { name: "n", scopes: "keys" }, "scopes type"],
  ["an unknown scope", { name: "n", scopes: ["keys", "root"] }, "scopes[1] enum"],
  ["a scope in capitals", { name: "n", scopes: ["ADMIN"] }, "scopes[0] enum"],
  ["a scope twice", { name: "n", scopes: ["keys", "keys"] }, "scopes uniqueItems"],
  ["a list in the list", { name: "n", scopes: [["admin"]] }, "scopes[0] enum"],
  ["no life", { name: "n", scopes: ["keys"], expiresInSeconds: 0 }, "expiresInSeconds minimum"],
  ["half a second", { name: "n", scopes: ["keys"], expiresInSeconds: 0.5 }, "expiresInSeconds type"],
  [
    "a life of a million years",
    { name: "n", scopes: ["keys"], expiresInSeconds: 31_557_600_000_000 },
    "expiresInSeconds maximum",
  ],
  ["an end without offset", { name: "n", scopes: ["keys"], expiresAt: "2030-01-01T00:00:00" }, "expiresAt date-time"],
  ["an end in the past", { name: "n", scopes: ["keys"], expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt past"],
  [
    "an end in the year 10000",
    { name: "n", scopes: ["keys"], expiresAt: "+10000-01-01T00:00:00Z" },
    "expiresAt date-time",
  ],
  ["an empty owner", { name: "n", scopes: ["keys"], owner: "" }, "owner minLength"],
  ["an owner with a NUL", { name: "n", scopes: ["keys"], owner: "a\0" }, "owner text"],
  ["an invisible owner", { name: "n", scopes: ["keys"], owner: "\u200b" }, "owner text"],
  ["an owner of 10 KB", { name: "n", scopes: ["keys"], owner: "x".repeat(7000) }, "owner maxLength"],
  ["a secret of its own", { name: "n", scopes: ["keys"], secret: "s" }, "secret additionalProperties"],
  ["an id of its own", { name: "n", scopes: ["keys"], id: "AAAAAAAAAAAA" }, "id additionalProperties"],
])("a creation with %s is refused, and told which field breaks which rule", async (_what, body, fault) => {
  const { status, json } = await world.api<Refusal>("POST", "/v1/keys", body);
  const [first] = json.errors ?? [];
  expect([status, json.code, `${first?.field} ${first?.rule}`]).toEqual([
    400,
    "invalid-request",
    expect.stringMatching(
      new RegExp(`^${fault.replace(/[[\]]/g, "\\$&").replace("scopes type", "scopes (type|anyOf)")}`),
    ),
  ]);
});

test.each<[string, Body]>([
  ["less than nothing", { overlapSeconds: -1 }],
  ["more than thirty days", { overlapSeconds: 2_592_001 }],
  ["a text", { overlapSeconds: "60" }],
  ["a fraction", { overlapSeconds: 0.5 }],
  ["an unknown field", { overlap: 60 }],
  ["other scopes", { scopes: ["admin"] }],
])("a rotation with %s is refused", async (_what, body) => {
  const { status, json } = await world.api<Refusal>("POST", `/v1/keys/${own()}/rotation`, body);
  expect([status, json.code]).toEqual([400, "invalid-request"]);
});

test.each([
  ["POST", "/v1/keys?owner=bob", 400],
  ["GET", "/v1/keys?limit=0", 400],
  ["GET", "/v1/keys?limit=101", 400],
  ["GET", "/v1/keys?limit=1&limit=2", 400],
  ["GET", "/v1/keys?state=active", 400],
  ["GET", "/v1/keys?owner=", 400],
  ["GET", "/v1/keys?owner=a%00b", 400],
  ["GET", "/v1/keys?owner=%ED%A0%80", 400],
  ["GET", "/v1/keys?owner[]=a", 400],
  ["GET", "/v1/keys/AAAAAAAAAAAA", 405],
  ["PUT", "/v1/keys", 405],
  ["DELETE", "/v1/keys", 405],
  ["GET", "/v1/keys/AAAAAAAAAAAA/rotation", 405],
  ["DELETE", "/v1/keys/AAAAAAAAAAAA", 404],
  ["DELETE", "/v1/keys/AAAAAAAAAAAA?force=true", 400],
  ["DELETE", "/v1/keys/a%00b", 404],
  ["DELETE", "/v1/keys/%ED%A0%80", 400],
  ["DELETE", "/v1/keys/%zz", 400],
  ["DELETE", "/v1/keys/..%2f..%2fetc", 404],
  ["DELETE", "/v1/keys/AAAAAAAAAAA%C3%A4", 404],
  ["POST", "/v1/keys/a%00b/rotation", 404],
  ["POST", "/v1/keys/AAAAAAAAAAAA/rotation?overlapSeconds=0", 400],
  ["POST", "/v1/keys/AAAAAAAAAAAA/rotation", 404],
])("%s %s is a problem with status %d", async (method, path, status) => {
  const answer = await world.raw(path, { method, headers: world.authorized() });
  expect(answer.status).toBe(status);
  expect(JSON.parse(answer.body)).toMatchObject({ status });
});

test("an id or an owner of any length is refused, and one of ten thousand characters does not fit into a request", async () => {
  const status = async (method: string, path: string) =>
    (await world.raw(path, { method, headers: world.authorized() })).status;
  const lengths = [1, 101, 5000, 10_240];
  const ids = lengths.map((length) => status("DELETE", `/v1/keys/${"A".repeat(length)}`));
  expect(await Promise.all(ids)).toEqual([404, 404, 404, 431]);
  const owners = lengths.map((length) => status("GET", `/v1/keys?owner=${"x".repeat(length)}`));
  expect(await Promise.all(owners)).toEqual([200, 400, 400, 431]);
});

test("a body that is too large, no JSON or no object is refused as everywhere", async () => {
  const post = async (path: string, body: string, type = "application/json") =>
    (await world.raw(path, { method: "POST", headers: world.authorized({ "Content-Type": type }), body })).status;
  for (const path of ["/v1/keys", `/v1/keys/${own()}/rotation`]) {
    const bodies = ["[]", "null", "{bad", '"x"', '{"__proto__":{"scopes":["admin"]}}'];
    expect(await Promise.all(bodies.map((body) => post(path, body)))).toEqual(bodies.map(() => 400));
    expect(await post(path, JSON.stringify({ name: "x".repeat(10_240) }))).toBe(413);
    expect(await post(path, "{}", "text/plain")).toBe(415);
  }
  expect(await post("/v1/keys", "")).toBe(400);
});

test("no token that is no key of this service gets anywhere, whatever its length or its characters", async () => {
  const { json } = await world.api<{ secret: string }>("POST", "/v1/keys", { name: "n", scopes: ["keys"] });
  const key = json.secret;
  const tokens = [
    undefined,
    "",
    "Bearer",
    "Bearer ",
    "Bearer  ",
    `Bearer ${key.slice(0, -1)}`,
    `Bearer ${key}a`,
    `Bearer ${key.slice(0, -2)}\u20ac\u20ac`.replaceAll("\u20ac", "\u00e2\u0082\u00ac"),
    `Bearer ${key.toUpperCase()}`,
    `Bearer ${key} x`,
    `Basic ${key}`,
    key,
    `Bearer "${key}"`,
    `Bearer ${key.replace("linkfence_", "linkfence-")}`,
  ];
  for (const token of tokens) {
    const headers: Record<string, string> = token === undefined ? {} : { Authorization: token };
    for (const [method, path] of [
      ["GET", "/v1/keys"],
      ["POST", "/v1/keys"],
      ["DELETE", `/v1/keys/${own()}`],
      ["POST", `/v1/keys/${own()}/rotation`],
    ] as const) {
      const answer = await world.raw(path, { method, headers });
      expect([token, path, answer.status]).toEqual([token, path, 401]);
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer/);
    }
  }
  for (const token of [`bearer ${key}`, `BEARER  ${key}`])
    expect((await world.raw("/v1/keys", { headers: { Authorization: token } })).status).toBe(200);
});

test("a key revokes none that may do more than itself, and makes none that outlives it", async () => {
  const { make, mint, revoke } = calls;
  const [low, high] = [await mint("modest", ["keys", "links:read"]), await mint("modest", ["keys", "links:revoke"])];
  expect(await revoke(high.id, low.secret)).toEqual({ status: 403, code: "insufficient-scope" });
  const { json: ending } = await make({ name: "n", scopes: ["keys", "links:read"], expiresInSeconds: 60 }, low.secret);
  const byEnding = (more: object) => make({ name: "n", scopes: ["links:read"], ...more }, String(ending.secret));
  const longer = await byEnding({ expiresInSeconds: 3600 });
  expect([longer.status, longer.json.code]).toEqual([403, "insufficient-scope"]);
  expect((await byEnding({})).json).toMatchObject({ expiresAt: ending.expiresAt });
  expect((await byEnding({ expiresInSeconds: 1 })).status).toBe(201);
  expect((await revoke(low.id, high.secret)).status).toBe(403);
  expect((await revoke(low.id, low.secret)).status).toBe(204);
});

test("an Idempotency-Key is refused: a secret cannot be told again", async () => {
  const headers = { ...world.authorized({ "Idempotency-Key": "k" }), "Content-Type": "application/json" };
  const body = JSON.stringify({ name: "n", scopes: ["links:read"] });
  const { status, body: text } = await world.raw("/v1/keys", { method: "POST", headers, body });
  expect([status, JSON.parse(text).errors]).toMatchObject([400, [{ field: "Idempotency-Key", rule: "unsupported" }]]);
});
