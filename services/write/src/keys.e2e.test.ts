// API keys through the admin API: who may make, see, rotate and revoke which, and what becomes of them.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { ApiKey, KeyPage, MintedKey } from "@linkfence/contracts";
import { createHttpClient, readMetric, sendChecked } from "@linkfence/testkit";
import { type ApiWorld, type Body, startApiWorld } from "./api-world.fixture.ts";
import { createKeyCalls, type KeyAnswer, type KeyCalls } from "./key-calls.fixture.ts";

let world: ApiWorld;
let make: KeyCalls["make"];
let mint: KeyCalls["mint"];
let revoke: KeyCalls["revoke"];
beforeAll(async () => {
  world = await startApiWorld();
  ({ make, mint, revoke } = createKeyCalls(world));
});
afterAll(() => world.stop());

const rotate = (id: string, body?: Body, key?: string) =>
  world.api<KeyAnswer>("POST", `/v1/keys/${id}/rotation`, body, key);
const list = (query = "", key?: string) => world.api<KeyPage & KeyAnswer>("GET", `/v1/keys${query}`, undefined, key);
/** Asks for a link that does not exist: 404 with a key that works. */
const probe = async (key: string) => (await world.api("GET", "/v1/links/unknown1", undefined, key)).status;
const idOf = (key: string) => key.split("_")[1] ?? "";

describe("a key", () => {
  test("is shown whole once, works with its scopes, and is listed without its secret", async () => {
    const key = await mint("shown", ["links:read", "keys"], { name: "Näme", expiresInSeconds: 3600 });
    expect(key).toMatchObject({ owner: "shown", name: "Näme", createdBy: idOf(world.adminKey), state: "active" });
    expect(Object.keys(key).sort()).toEqual(
      [
        ...["createdAt", "createdBy", "expiresAt", "id", "lastUsedAt", "name", "owner", "replacedBy", "revokedAt"],
        ...["revokedBy", "scopes", "secret", "state"],
      ].sort(),
    );
    expect(await probe(key.secret)).toBe(404);
    expect((await world.api("POST", "/v1/links", { target: "https://example.com/" }, key.secret)).status).toBe(403);
    const { json } = await list("", key.secret);
    // Its use may have been written by now, or not yet.
    const { secret, lastUsedAt: _, ...shown } = key;
    const lastUsedAt = json.items[0]?.lastUsedAt;
    expect(json).toEqual({ items: [{ ...shown, lastUsedAt }], next: null });
    expect(JSON.stringify(json)).not.toContain(secret.slice(-43));
    expect(world.write.output()).not.toContain(secret.slice(-43));
  });

  test("of nobody in particular belongs to its maker's owner", async () => {
    const maker = await mint("maker", ["keys"]);
    for (const over of [{}, { owner: null }, { owner: "maker" }]) {
      const { json } = await make({ name: "n", scopes: ["keys"], ...over }, maker.secret);
      expect([json.owner, json.createdBy, json.expiresAt]).toEqual(["maker", maker.id, null]);
    }
  });

  test("makes no difference between the bodies of a call and no body, where it needs none", async () => {
    const ids = await Promise.all([1, 2, 3].map(() => mint("bodies", ["keys"])));
    const headers = world.authorized();
    const bare = await world.raw(`/v1/keys/${ids[0]?.id}/rotation`, { method: "POST", headers });
    expect(bare.status).toBe(201);
    expect((await rotate(ids[1]?.id ?? "", {})).status).toBe(201);
    expect((await rotate(ids[2]?.id ?? "", { overlapSeconds: null })).status).toBe(201);
  });

  test("that is made, rotated, revoked or refused is counted", async () => {
    const sample = (outcome: string) => readMetric(world.write, `linkfence_keys_total{outcome="${outcome}"}`);
    const outcomes = ["created", "rotated", "revoked", "already-revoked", "replaced"];
    const before = await Promise.all(outcomes.map(sample));
    const { id } = await mint("counted", ["keys"]);
    await rotate(id);
    await rotate(id);
    await revoke(id);
    await revoke(id);
    const after = await Promise.all(outcomes.map(sample));
    expect(after.map((value, i) => value - (before[i] ?? 0))).toEqual([1, 1, 1, 1, 1]);
  });
});

describe("by their scopes and owners", () => {
  test.each([
    ["links:create", { scopes: ["links:create"] }, "scopes[0]"],
    ["admin", { scopes: ["keys", "admin"] }, "scopes[1]"],
    ["every scope but admin", { scopes: ["keys", "links:read", "links:create", "links:revoke"] }, "scopes[2]"],
    ["another owner", { scopes: ["keys"], owner: "admin" }, "owner"],
    ["another owner, spelled alike", { scopes: ["keys"], owner: "Low" }, "owner"],
  ])("a key without them cannot give %s", async (_what, body, field) => {
    const low = await mint("low", ["keys", "links:read"]);
    const { status, json } = await make({ name: "n", ...body }, low.secret);
    expect([status, json.code, json.errors?.[0]?.field]).toEqual([403, "insufficient-scope", field]);
    expect((await list("", low.secret)).json.items.filter(({ createdBy }) => createdBy === low.id)).toEqual([]);
  });

  test("a key without the scope keys gets at none of the calls, and an admin without it at all of them", async () => {
    const key = await mint("ann", ["links:create", "links:read", "links:revoke", "stats:read", "exports"]);
    for (const answer of [
      await make({ name: "n", scopes: ["links:read"] }, key.secret),
      await list("", key.secret),
      await rotate(key.id, {}, key.secret),
    ])
      expect([answer.status, answer.json.code]).toEqual([403, "insufficient-scope"]);
    expect(await revoke(key.id, key.secret)).toEqual({ status: 403, code: "insufficient-scope" });
    const admin = await mint("ann", ["admin"]);
    expect((await make({ name: "n", scopes: ["links:read"] }, admin.secret)).status).toBe(201);
  });

  test("a rotation hands out no secret of a key that may do more", async () => {
    const [low, high, admin] = [
      await mint("tall", ["keys"]),
      await mint("tall", ["keys", "links:revoke"]),
      await mint("tall", ["admin"]),
    ];
    for (const { id } of [high, admin]) {
      const { status, json } = await rotate(id, {}, low.secret);
      expect([status, json.code, json.errors?.[0]?.rule]).toEqual([403, "insufficient-scope", "held"]);
    }
    expect((await rotate(low.id, {}, high.secret)).status).toBe(201);
    expect((await list("?owner=tall")).json.items.map(({ replacedBy }) => replacedBy === null)).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  test("whose keys a key sees, rotates and revokes: its owner's, everybody's with admin", async () => {
    const owners = ["mat-a", "mat-b"];
    const callers = await Promise.all(owners.map((owner) => mint(owner, ["keys"])));
    const matrix: Record<string, unknown> = {};
    for (const caller of [...callers, { owner: "admin", secret: world.adminKey }]) {
      for (const owner of owners) {
        const [one, two] = [await mint(owner, ["keys"]), await mint(owner, ["keys"])];
        const seen = await list(`?owner=${owner}`, caller.secret);
        matrix[`${caller.owner} ${owner}`] = [
          seen.status,
          seen.json.items?.some(({ id }) => id === one.id) ?? seen.json.code,
          (await rotate(one.id, {}, caller.secret)).status,
          (await revoke(two.id, caller.secret)).status,
          [await probe(one.secret), await probe(two.secret)],
        ];
      }
    }
    // The two last are what each key itself is told: 403 for the scope that it lacks where it works, 401 where it does not.
    const [yes, no] = [
      [200, true, 201, 204, [403, 401]],
      [403, "insufficient-scope", 404, 404, [403, 403]],
    ];
    expect(matrix).toEqual({
      "mat-a mat-a": yes,
      "mat-a mat-b": no,
      "mat-b mat-a": no,
      "mat-b mat-b": yes,
      "admin mat-a": yes,
      "admin mat-b": yes,
    });
    const unknown = await rotate("NoSuchKeyAtA", {}, callers[0]?.secret);
    const foreign = await rotate(callers[1]?.id ?? "", {}, callers[0]?.secret);
    const instance = expect.stringMatching(/^urn:linkfence:request:/);
    expect(foreign).toEqual({ status: unknown.status, json: { ...unknown.json, instance } });
    expect((await list("", callers[0]?.secret)).json.items.every(({ owner }) => owner === "mat-a")).toBe(true);
  });
});

describe("a listing of keys", () => {
  test("goes on page by page, newest first, and shows the state of each", async () => {
    const keys: ApiKey[] = [];
    for (let i = 0; i < 5; i++) keys.push(await mint("paged", ["links:read"]));
    await revoke(keys[1]?.id ?? "");
    await world.database.sql`UPDATE api_key SET expires_at = now() WHERE id = ${keys[3]?.id ?? ""}`;
    const seen: string[] = [];
    let path: string | undefined = "/v1/keys?limit=2&owner=paged";
    let pages = 0;
    for (; path !== undefined; pages++) {
      const answer = await world.raw(path, { headers: world.authorized() });
      expect(answer.status).toBe(200);
      for (const { id, state } of (JSON.parse(answer.body) as KeyPage).items) seen.push(`${id} ${state}`);
      path = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link))?.[1];
    }
    expect(pages).toBe(3);
    const states = ["active", "revoked", "active", "expired", "active"];
    expect(seen).toEqual(keys.map(({ id }, i) => `${id} ${states[i]}`).reverse());
  });

  test("takes no cursor of another owner, of a listing of links, or that was changed", async () => {
    const key = await mint("cursors", ["admin"]);
    await mint("cursors", ["keys"]);
    await mint("others", ["keys"]);
    await mint("others", ["keys"]);
    for (const alias of ["cursor-1", "cursor-2"])
      await world.api("POST", "/v1/links", { target: "https://example.com/", alias }, key.secret);
    const next = String((await list("?limit=1", key.secret)).json.next);
    const ofOthers = String((await list("?limit=1&owner=others")).json.next);
    const { json: links } = await world.api<{ next: string }>("GET", "/v1/links?limit=1", undefined, key.secret);
    const after = (text: string) => list(`?limit=1&after=${encodeURIComponent(text)}`, key.secret);
    for (const text of [
      ofOthers,
      links.next,
      next.slice(0, -1),
      `${next}A`,
      next.replace("~", "~~"),
      "",
      "null",
      "\0",
    ]) {
      const { status, json } = await after(text);
      expect([text, status, json.code]).toEqual([text, 400, "invalid-cursor"]);
    }
    expect((await after(next)).status).toBe(200);
    const asLinks = await world.api(
      "GET",
      `/v1/links?limit=1&after=${encodeURIComponent(next)}`,
      undefined,
      key.secret,
    );
    expect([asLinks.status, asLinks.json.code]).toEqual([400, "invalid-cursor"]);
  });
});

describe("a revoked key", () => {
  test("stops at once, on a connection that is open already", async () => {
    const key = await mint("prompt", ["links:read"]);
    const client = createHttpClient(1);
    const ask = async () => {
      const headers = { Authorization: `Bearer ${key.secret}` };
      return (await sendChecked(client, world.write.url, "/v1/links/unknown1", { headers })).status;
    };
    expect([await ask(), await ask()]).toEqual([404, 404]);
    expect(await revoke(key.id)).toEqual({ status: 204, code: null });
    expect([await ask(), await ask()]).toEqual([401, 401]);
    expect(await revoke(key.id)).toEqual({ status: 204, code: null });
    client.close();
    const [shown] = (await list("?owner=prompt")).json.items;
    expect(shown).toMatchObject({ state: "revoked", revokedAt: expect.any(String), revokedBy: idOf(world.adminKey) });
  });

  test("may be the one that was used, and then makes no other", async () => {
    const key = await mint("self", ["keys"]);
    expect((await revoke(key.id, key.secret)).status).toBe(204);
    expect((await revoke(key.id, key.secret)).status).toBe(401);
    expect((await make({ name: "n", scopes: ["keys"] }, key.secret)).status).toBe(401);
  });

  test("is never the last admin key of the installation, whoever asks, and however many at once", async () => {
    const own = await startApiWorld();
    try {
      const made = await own.api<MintedKey>("POST", "/v1/keys", { name: "n", scopes: ["admin"], owner: "bob" });
      const keys = [own.adminKey, made.json.secret];
      const answers = await Promise.all(
        keys.map((key) =>
          own.raw(`/v1/keys/${idOf(key)}`, { method: "DELETE", headers: { Authorization: `Bearer ${key}` } }),
        ),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([204, 409]);
      const refused = answers.find(({ status }) => status === 409)?.body ?? "";
      expect(JSON.parse(refused)).toMatchObject({ code: "last-admin-key", detail: expect.stringContaining("first") });
    } finally {
      await own.stop();
    }
  });
});

describe("a rotated key", () => {
  test("is of use beside its successor until the overlap is over, by the clock of the database", async () => {
    const old = await mint("turn", ["links:read", "keys"], { expiresInSeconds: 600 });
    const { status, json: next } = await rotate(old.id, { overlapSeconds: 60 }, old.secret);
    expect([status, next.expiresAt, next.createdBy]).toEqual([201, old.expiresAt, old.id]);
    expect([await probe(old.secret), await probe(next.secret)]).toEqual([404, 404]);
    await world.database.sql`UPDATE api_key SET expires_at = clock_timestamp() WHERE id = ${old.id}`;
    expect([await probe(old.secret), await probe(next.secret)]).toEqual([401, 404]);
    const again = await rotate(old.id, {}, next.secret);
    expect([again.status, again.json.code]).toEqual([409, "key-not-usable"]);
    expect((await rotate(next.id, { overlapSeconds: 0 }, next.secret)).status).toBe(201);
    expect(await probe(next.secret)).toBe(401);
  });

  test("has one successor, however often that is asked for at once", async () => {
    const key = await mint("often", ["keys"]);
    const answers = await Promise.all(Array.from({ length: 16 }, () => rotate(key.id, {}, key.secret)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ json }) => json.code === "key-not-usable")).toHaveLength(15);
    expect((await list("?owner=often")).json.items).toHaveLength(2);
  });
});
