// Creations with an Idempotency-Key: one key, one creation, one answer.
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { checkRaw, createHttpClient, startService } from "@linkfence/testkit";
import { type ApiWorld, startApiWorld } from "./api-world.fixture.ts";
import { BATCH, common, createKeyedPost, LINK, LINKS, SINGLE } from "./idempotency.fixture.ts";

const MANY = 200;
/** Machines on which tests run may be busy: what is shown here is no deadline of the database. */
const QUERY_TIMEOUT_MS = 10_000;

let world: ApiWorld;
let post: ReturnType<typeof createKeyedPost>;
const http = createHttpClient(MANY);
let keys = 0;
let key: string;
beforeAll(async () => {
  world = await startApiWorld({ QUERY_TIMEOUT_MS: `${QUERY_TIMEOUT_MS}` });
  post = createKeyedPost(http, world.write.url, world.adminKey);
});
beforeEach(() => {
  key = `key-${keys++}`;
});
afterAll(async () => {
  http.close();
  await world.stop();
});

const problem = (body: string) => JSON.parse(body) as { code: string; errors: { field: string; rule: string }[] };
const recordsOf = (name: string) => world.database.sql`SELECT key FROM idempotency_record WHERE key = ${name}`;

describe("one key", () => {
  test.each([
    ["link", SINGLE, LINK, 1, 201],
    ["batch", BATCH, LINKS, 2, 200],
  ])(
    "in two hundred requests at once makes one %s, and all of them hear of it in the same bytes",
    async (_what, path, body, links, status) => {
      const before = (await world.linkCount()) ?? 0;
      const answers = await Promise.all(Array.from({ length: MANY }, () => post(key, body, path)));
      expect(await world.linkCount()).toBe(before + links);
      expect(answers[0]?.status).toBe(status);
      expect(new Set(answers.map((answer) => JSON.stringify(common(answer)))).size).toBe(1);
      expect(answers.filter(({ replayed }) => replayed === undefined)).toHaveLength(1);
      expect(answers.filter(({ replayed }) => replayed === "true")).toHaveLength(MANY - 1);
    },
  );

  test.each([
    ["link", SINGLE, LINK, 1],
    ["batch", BATCH, LINKS, 2],
  ])("in two hundred requests at once to three processes makes one %s, and all of them hear of it", async (...of) => {
    const [, path, body, links] = of;
    const env = {
      DATABASE_URL: world.database.url,
      PUBLIC_BASE_URL: "https://sho.example",
      QUERY_TIMEOUT_MS: `${QUERY_TIMEOUT_MS}`,
    };
    const others = [await startService("write", env), await startService("write", env)];
    const before = (await world.linkCount()) ?? 0;
    const posts = [world.write, ...others].map(({ url }) => createKeyedPost(http, url, world.adminKey));
    const answers = await Promise.all(Array.from({ length: MANY }, (_, n) => (posts[n % 3] ?? post)(key, body, path)));
    for (const other of others) await other.stop();
    expect(await world.linkCount()).toBe(before + links);
    expect(answers.filter(({ status }) => status >= 400)).toEqual([]);
    expect(new Set(answers.map((answer) => JSON.stringify(common(answer)))).size).toBe(1);
    expect(answers.filter(({ replayed }) => replayed === undefined)).toHaveLength(1);
  });

  test("answers with what a creation without a key answers", async () => {
    const body = JSON.stringify({
      target: "https://example.com/",
      title: 'a "\\\b\f\n\t\u0001\u007f\u2028é🍞',
      tags: ["x", 'y"', "NULL", ""].filter(Boolean),
      expiresInSeconds: 60,
    });
    const [plain, keyed] = [await post(null, body), await post(key, body)];
    const [a, b] = [JSON.parse(plain.body), JSON.parse(keyed.body)];
    const own = {
      code: b.code,
      shortUrl: `https://sho.example/${b.code}`,
      createdAt: b.createdAt,
      expiresAt: b.expiresAt,
    };
    expect(Object.entries(b)).toEqual(Object.entries({ ...a, ...own }));
    expect(b.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(keyed).toMatchObject({ status: 201, location: `/v1/links/${b.code}`, replayed: undefined });
    expect((await world.api("GET", `/v1/links/${b.code}`)).json).toEqual(b);
  });

  test("goes on answering the same when the link was revoked meanwhile", async () => {
    const first = await post(key, '{"target":"https://example.com/","alias":"kept-answer"}');
    await world.api("DELETE", "/v1/links/kept-answer");
    const again = await post(key, '{"target":"https://example.com/","alias":"kept-answer"}');
    expect([first.status, common(again), again.replayed]).toEqual([201, common(first), "true"]);
  });

  test("answers a request that was right when it came first, and would be refused now", async () => {
    const expiresAt = new Date(Date.now() + 1500).toISOString();
    const body = JSON.stringify({ target: "https://example.com/", expiresAt });
    const first = await post(key, body);
    while ((await post(null, body)).status === 201);
    const again = await post(key, body);
    expect([first.status, common(again), again.replayed]).toEqual([201, common(first), "true"]);
  });

  test.each([
    ["another target", '{"target":"https://other.example/"}'],
    ["other blanks", `${LINK} `],
    ["a target that is refused", '{"target":"nonsense"}'],
    ["an alias that is taken", '{"target":"https://example.com/","alias":"taken-by-all"}'],
  ])("with %s is another request, and is refused", async (_what, body) => {
    await post(null, '{"target":"https://example.com/","alias":"taken-by-all"}');
    expect((await post(key)).status).toBe(201);
    const before = await world.linkCount();
    const answer = await post(key, body);
    expect([answer.status, problem(answer.body).code]).toEqual([422, "idempotency-key-reused"]);
    expect(await world.linkCount()).toBe(before);
  });

  test("of another owner, and at the other call, is another key", async () => {
    const bob = createKeyedPost(http, world.write.url, await world.addKey("bob", ["links:create"]));
    const [mine, his] = [await post(key), await bob(key, '{"target":"https://bob.example/"}')];
    expect([mine.status, his.status, his.replayed]).toEqual([201, 201, undefined]);
    expect(JSON.parse(his.body)).toMatchObject({ owner: "bob", target: "https://bob.example/" });
    expect(await post(key, LINKS, BATCH)).toMatchObject({ status: 200, replayed: undefined });
  });

  test("of one owner is the same key with every API key of that owner", async () => {
    const second = createKeyedPost(http, world.write.url, await world.addKey("admin", ["links:create"]));
    const first = await post(key);
    expect(common(await second(key))).toEqual(common(first));
  });

  test("is the same bare and in quotes", async () => {
    const first = await post(key);
    expect(common(await post(`"${key}"`))).toEqual(common(first));
  });
});

describe("a request that is refused binds nothing:", () => {
  test.each([
    ["an invalid target", SINGLE, '{"target":"nonsense"}', 422, LINK],
    ["a wrong shape", SINGLE, '{"target":7}', 400, LINK],
    ["a taken alias", SINGLE, '{"target":"https://example.com/","alias":"taken-long-ago"}', 409, LINK],
    ["a batch of a wrong shape", BATCH, '{"links":[]}', 400, LINKS],
  ])("%s", async (_what, path, bad, status, good) => {
    await post(null, '{"target":"https://example.com/","alias":"taken-long-ago"}');
    expect((await post(key, bad, path)).status).toBe(status);
    expect(await recordsOf(key)).toHaveLength(0);
    expect(await post(key, good, path)).toMatchObject({ status: path === SINGLE ? 201 : 200, replayed: undefined });
  });
});

test("of two requests at once for one alias with two keys one gets it, and the other one's key stays free", async () => {
  const body = '{"target":"https://example.com/","alias":"contested"}';
  const answers = await Promise.all([post(`${key}a`, body), post(`${key}b`, body)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
  const loser = answers[0]?.status === 409 ? `${key}a` : `${key}b`;
  expect((await post(loser)).status).toBe(201);
});

test("an answer that has expired is not given again, whether it was removed or not", async () => {
  const first = await post(key);
  await world.database.sql`UPDATE idempotency_record SET expires_at = clock_timestamp() WHERE key = ${key}`;
  const second = await post(key, '{"target":"https://other.example/"}');
  expect([second.status, second.replayed]).toEqual([201, undefined]);
  expect(second.location).not.toBe(first.location);
  expect(await post(key, '{"target":"https://other.example/"}')).toMatchObject({
    location: second.location,
    replayed: "true",
  });
});

describe("a header field", () => {
  test.each([
    ["that is empty", "", "empty"],
    ["of an empty string", '""', "empty"],
    ["with a blank", "a b", "characters"],
    ["of two keys", "a,b", "characters"],
    ["with a parameter", '"a";b=1', "characters"],
    ["with bytes beyond ASCII", "caf\u00e9", "characters"],
    ["with an open quote", '"a', "characters"],
    ["that is too long", "k".repeat(256), "length"],
    ["that is far too long", "k".repeat(7000), "length"],
  ])("%s is 400, and names the rule", async (_what, value, rule) => {
    for (const path of [SINGLE, BATCH]) {
      const answer = await post(value, path === SINGLE ? LINK : LINKS, path);
      expect([answer.status, problem(answer.body).code]).toEqual([400, "invalid-request"]);
      expect(problem(answer.body).errors).toMatchObject([{ field: "Idempotency-Key", rule }]);
    }
  });

  test("that is sent twice is 400, the same key or not", async () => {
    const { hostname, port } = new URL(world.write.url);
    for (const second of ["k1", "k2"]) {
      const socket = connect(Number(port), hostname);
      socket.write(
        `POST /v1/links HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.adminKey}\r\nContent-Type: application/json\r\n` +
          `Idempotency-Key: k1\r\nIdempotency-Key: ${second}\r\nContent-Length: ${LINK.length}\r\nConnection: close\r\n\r\n${LINK}`,
      );
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk.toString("utf8");
      });
      await once(socket, "end");
      expect(checkRaw("POST", "/v1/links", text)).toMatch(/^HTTP\/1\.1 400 .*"rule":"repeated"/s);
    }
  });

  test("of 255 characters is a key", async () => {
    const longest = `${key}-`.padEnd(255, "~");
    const first = await post(longest);
    expect([first.status, common(await post(longest))]).toEqual([201, common(first)]);
  });
});
