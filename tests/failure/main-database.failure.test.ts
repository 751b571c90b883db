// The main database away, or silent: what is in memory is answered until its time is over, nothing old after it, and
// everything comes back by itself.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  type FaultMode,
  type FaultProxy,
  type RunningService,
  startFaultProxy,
  startService,
  type TestDatabase,
  testServerUrl,
  waitUntilReady,
} from "@linkfence/testkit";

const http = createHttpClient();
let database: TestDatabase;
let proxy: FaultProxy;

beforeAll(async () => {
  database = await createTestDatabase("main");
  proxy = await startFaultProxy(Number(new URL(testServerUrl()).port));
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    SELECT 'code' || n, 'https://example.com/' || n, 'ann', 'ALIAS', 'k' FROM generate_series(1, 100) n`;
});
afterEach(() => proxy.set("pass"));
afterAll(async () => {
  http.close();
  await proxy.close();
  await database.drop();
});

const QUERY_TIMEOUT_MS = 500;
const startRedirect = async (env: Record<string, string>) => {
  const DATABASE_URL = proxy.through(database.url);
  const defaults = { QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS), CLICK_FLUSH_TIMEOUT_MS: "0" };
  const service = await startService("redirect", { DATABASE_URL, ...defaults, ...env });
  await waitUntilReady(service);
  return service;
};
const follow = async (service: RunningService, code: string) => (await http.send(service.url, `/${code}`)).status;
const readiness = async (service: RunningService) => (await fetch(`${service.opsUrl}/readyz`)).status;
const revoke = (code: string) => database.sql`SELECT * FROM revoke_links(ARRAY[${code}], 'ann', 'k')`;

describe.each<FaultMode>(["refuse", "hang"])("with the main database out of reach (%s)", (mode) => {
  test("links in memory are answered, others are 503 and never 404, and all of it recovers without a restart", async () => {
    const service = await startRedirect({ CACHE_TTL_MS: "60000" });
    expect(await follow(service, "code1")).toBe(302);
    proxy.set(mode);
    for (let count = 0; count < 50; count += 1) expect(await follow(service, "code1")).toBe(302);
    const cold = await Promise.all([2, 3, 4].map((n) => follow(service, `code${n}`)));
    expect(cold).toEqual([503, 503, 503]);
    expect(await follow(service, "no-such-code")).toBe(503);
    proxy.set("pass");
    if (mode === "hang") proxy.reset();
    while ((await follow(service, "code2")) !== 302);
    expect(await follow(service, "no-such-code")).toBe(404);
    expect((await service.stop()).code).toBe(0);
  });

  test("for longer than the TTL nothing is answered from memory, whatever was revoked meanwhile", async () => {
    const ttl = 2000;
    const code = mode === "hang" ? "code11" : "code12";
    const service = await startRedirect({ CACHE_TTL_MS: String(ttl) });
    expect(await follow(service, code)).toBe(302);
    proxy.set(mode);
    await revoke(code);
    const committedAt = performance.now();
    let last = 0;
    let status = 302;
    while (status === 302) {
      const sentAt = performance.now();
      status = await follow(service, code);
      if (status === 302) last = sentAt;
    }
    expect(status).toBe(503);
    // The bound of the design: a request sent a TTL after the commit is never answered with the old target.
    expect(last - committedAt).toBeLessThan(ttl);
    // An entry's own life is shortened by up to a tenth, at random; readiness follows the TTL itself.
    while ((await readiness(service)) !== 503);
    proxy.set("pass");
    if (mode === "hang") proxy.reset();
    while ((await follow(service, code)) !== 410);
    while ((await readiness(service)) !== 200);
    expect((await service.stop()).code).toBe(0);
  });
});

describe("a redirect process", () => {
  test("that starts without its database is alive, not ready, and becomes ready by itself", async () => {
    proxy.set("refuse");
    const service = await startService("redirect", { DATABASE_URL: proxy.through(database.url) });
    expect((await fetch(`${service.opsUrl}/livez`)).status).toBe(200);
    expect(await readiness(service)).toBe(503);
    expect(await follow(service, "code5")).toBe(503);
    proxy.set("pass");
    await waitUntilReady(service);
    expect(await follow(service, "code5")).toBe(302);
    expect((await service.stop()).code).toBe(0);
  });

  test("that was stopped for twice its TTL answers no request that was sent after the revocation with the old target", async () => {
    const ttl = 1000;
    const service = await startRedirect({ CACHE_TTL_MS: String(ttl), QUERY_TIMEOUT_MS: "400" });
    const clients = createHttpClient(60);
    const base = service.url;
    const warm = () => Promise.all(Array.from({ length: 60 }, () => clients.send(base, "/code21")));
    for (const { status } of await warm()) expect(status).toBe(302);
    service.kill("SIGSTOP");
    await revoke("code21");
    const committedAt = performance.now();
    // Event, not sleep: the wait ends when the design's bound has passed by the clock that the assertion uses.
    await new Promise<void>((resolve) => {
      const look = () => (performance.now() - committedAt > 2 * ttl ? resolve() : setImmediate(look));
      look();
    });
    const late = warm();
    service.kill("SIGCONT");
    const statuses = (await late).map(({ status }) => status);
    expect(statuses.filter((status) => status === 302)).toEqual([]);
    while ((await follow(service, "code21")) !== 410);
    clients.close();
    expect((await service.stop()).code).toBe(0);
  });

  test("meets an expiry at its instant, on a warm entry, on two processes", async () => {
    const services = await Promise.all([startRedirect({}), startRedirect({})]);
    const [row] = await database.sql`INSERT INTO link (code, target, owner, kind, created_by, expires_at)
      VALUES ('brief', 'https://example.com/', 'ann', 'ALIAS', 'k', clock_timestamp() + interval '1500 ms')
      RETURNING extract(epoch FROM expires_at) * 1000 AS at`;
    const expiresAt = Number(row?.at);
    const watch = services.map(async (service) => {
      let lastFound = 0;
      for (;;) {
        const sentAt = Date.now();
        const status = await follow(service, "brief");
        if (status === 410) return { lastFound, firstGone: Date.now() };
        expect(status).toBe(302);
        lastFound = sentAt;
      }
    });
    for (const { lastFound, firstGone } of await Promise.all(watch)) {
      expect(lastFound).toBeLessThanOrEqual(expiresAt);
      // An expiry may be met early by one query at the most.
      expect(firstGone).toBeGreaterThan(expiresAt - 1000);
    }
    for (const service of services) expect((await service.stop()).code).toBe(0);
  });

  test("forgets that a code was unknown as soon as an alias comes into being", async () => {
    const service = await startRedirect({ NEGATIVE_TTL_MS: "10000", POLL_INTERVAL_MS: "5000" });
    await service.logged(({ message }) => message === "notifications arrive");
    expect(await follow(service, "new-alias")).toBe(404);
    await database.sql.begin(async (sql) => {
      await sql`INSERT INTO link (code, target, owner, kind, created_by)
        VALUES ('new-alias', 'https://example.com/', 'ann', 'ALIAS', 'k')`;
      await sql`SELECT pg_notify('link_created', '')`;
    });
    const startedAt = performance.now();
    while ((await follow(service, "new-alias")) !== 302);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect((await service.stop()).code).toBe(0);
  });
});
