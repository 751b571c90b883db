// How long a revoked or expired link lives on, from real processes: two of them, neither of which anybody speaks to.
// A request counts from when it was sent; the bounds are computed from poll, query deadline, sampling and TTL.
import { setTimeout as passed } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  mapConcurrently,
  type RunningService,
  readMetric,
  startService,
  type TestDatabase,
  waitUntilReady,
} from "@linkfence/testkit";

/** A read of the log ends within this deadline, or is repeated: the longest that a healthy query takes. */
const QUERY_MS = 1000;
const TARGET = "https://example.com/old";

let database: TestDatabase;
let redirects: RunningService[] = [];
let codes = 0;
const http = createHttpClient(128);

beforeAll(async () => {
  database = await createTestDatabase("main");
});
afterEach(async () => {
  for (const redirect of redirects) redirect.kill("SIGCONT");
  await Promise.all(redirects.map((redirect) => redirect.stop()));
  redirects = [];
});
afterAll(async () => {
  http.close();
  await database.drop();
});

async function start(env: Record<string, string>, count = 2): Promise<void> {
  // Nobody stores clicks here, which is nothing to a redirect.
  const noIngest = { CLICK_INGEST_URL: "http://127.0.0.1:9", CLICK_FLUSH_TIMEOUT_MS: "0" };
  const settings = { DATABASE_URL: database.url, DEBUG_ENTRY_AGE: "true", ...noIngest };
  redirects = await Promise.all(Array.from({ length: count }, () => startService("redirect", { ...settings, ...env })));
  await Promise.all(redirects.map(waitUntilReady));
  if (env.LISTEN_ENABLED === "false") return;
  for (const redirect of redirects) while ((await readMetric(redirect, "linkfence_listening")) !== 1);
}

/** Creates links, and follows each on every process, so that it is in memory everywhere. */
async function createWarm(count: number, expiresInMs: number | null = null): Promise<string[]> {
  const list = Array.from({ length: count }, () => `link${++codes}`);
  const interval = expiresInMs === null ? null : `${expiresInMs} milliseconds`;
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by, expires_at)
    SELECT code, ${TARGET}, 'ann', 'ALIAS', 'k', clock_timestamp() + ${interval}::interval
      FROM unnest(${list}::text[]) AS code`;
  for (const redirect of redirects)
    await mapConcurrently(list, 8, async (code) =>
      expect((await http.send(redirect.url, `/${code}`)).status).toBe(302),
    );
  return list;
}

const revoke = (code: string) => database.sql`SELECT * FROM revoke_links(ARRAY[${code}], 'ann', 'k')`;

type Window = { lastOldMs: number; goneMs: number; samplingMs: number; oldestMs: number };

/** Asks one process again and again until it says 410. Times are in ms since `committedAt`. */
async function watch(redirect: RunningService, code: string, committedAt: number): Promise<Window> {
  const seen = { lastOldMs: 0, goneMs: 0, samplingMs: 0, oldestMs: 0 };
  for (let before = performance.now(); ; ) {
    const sentAt = performance.now();
    const { status, headers } = await http.send(redirect.url, `/${code}`);
    seen.samplingMs = Math.max(seen.samplingMs, performance.now() - before);
    before = sentAt;
    if (status === 410) return { ...seen, goneMs: performance.now() - committedAt };
    expect([status, headers.location]).toEqual([302, TARGET]);
    seen.lastOldMs = sentAt - committedAt;
    seen.oldestMs = Math.max(seen.oldestMs, Number(headers["x-entry-age-ms"]));
  }
}

/** Revokes one link after the other and watches each on every process. */
async function windowsOf(list: readonly string[]): Promise<Window[]> {
  const windows: Window[] = [];
  for (const code of list) {
    await revoke(code);
    const committedAt = performance.now();
    windows.push(...(await Promise.all(redirects.map((redirect) => watch(redirect, code, committedAt)))));
  }
  return windows;
}

const max = (numbers: readonly number[]) => numbers.reduce((most, number) => Math.max(most, number), 0);

describe("a revocation", () => {
  test("without notifications is in force everywhere after a poll and a query; until then entries are younger than TTL", async () => {
    const [poll, ttl] = [100, 2000];
    await start({ LISTEN_ENABLED: "false", POLL_INTERVAL_MS: String(poll), CACHE_TTL_MS: String(ttl) });
    const windows = await windowsOf(await createWarm(10));
    for (const { goneMs, oldestMs, samplingMs } of windows) {
      expect(goneMs).toBeLessThan(poll + QUERY_MS + samplingMs);
      expect(oldestMs).toBeLessThan(ttl);
    }
  });

  test("with notifications is in force within a fraction of the poll", async () => {
    const poll = 5000;
    await start({ POLL_INTERVAL_MS: String(poll) });
    const gone = (await windowsOf(await createWarm(100))).map(({ goneMs }) => goneMs);
    expect(gone).toHaveLength(200);
    expect(max(gone)).toBeLessThan(poll + QUERY_MS);
    expect(gone.filter((ms) => ms < poll / 10).length).toBeGreaterThanOrEqual(gone.length * 0.95);
  });

  test("with neither is in force after a TTL, since no older entry is used", async () => {
    const ttl = 1500;
    await start({ LISTEN_ENABLED: "false", POLL_INTERVAL_MS: "0", CACHE_TTL_MS: String(ttl) });
    for (const { lastOldMs, oldestMs } of await windowsOf(await createWarm(3))) {
      expect(lastOldMs).toBeLessThan(ttl);
      expect(oldestMs).toBeLessThan(ttl);
    }
  });

  test("is in force at once in a process that starts after it, which remembers nothing", async () => {
    await start({}, 1);
    const [code = ""] = await createWarm(1);
    const [first] = redirects;
    await revoke(code);
    await first?.stop();
    await start({}, 1);
    const [second] = redirects;
    if (!second) throw new Error("no redirect process");
    expect(await readMetric(second, "linkfence_cache_entries")).toBe(0);
    expect((await http.send(second.url, `/${code}`)).status).toBe(410);
  });

  test("made while a process was stopped gets no request the old target that was sent a TTL later", async () => {
    const ttl = 500;
    await start({ CACHE_TTL_MS: String(ttl) }, 1);
    const [redirect] = redirects;
    if (!redirect) throw new Error("no redirect process");
    const [code = ""] = await createWarm(1);
    const clients = Array.from({ length: 60 });
    // Sixty kept connections, so that the requests lie in the process' sockets while it is stopped.
    await Promise.all(clients.map(() => http.send(redirect.url, `/${code}`)));
    redirect.kill("SIGSTOP");
    await revoke(code);
    await passed(ttl);
    const answers = clients.map(() => http.send(redirect.url, `/${code}`));
    await passed(ttl);
    redirect.kill("SIGCONT");
    for (const { status } of await Promise.all(answers)) expect([410, 503]).toContain(status);
    expect((await watch(redirect, code, performance.now())).lastOldMs).toBe(0);
  });
});

describe("an expiry", () => {
  test("is met by two processes that answer from memory: 302 before the instant, 410 from it on", async () => {
    await start({});
    const startedAt = performance.now();
    const [code = ""] = await createWarm(1, 1500);
    // The remaining life counts from before the question was sent: it may end early by that query, never late.
    const earlyMs = performance.now() - startedAt;
    const [row] = await database.sql`SELECT (extract(epoch FROM expires_at) * 1000)::float8 AS at FROM link
      WHERE code = ${code}`;
    const poll = async (redirect: RunningService) => {
      const loads = await readMetric(redirect, "linkfence_loads_total");
      for (let last = 302; last !== 410; ) {
        const sentAt = Date.now();
        last = (await http.send(redirect.url, `/${code}`)).status;
        if (sentAt >= row?.at) expect(last).toBe(410);
        if (Date.now() < row?.at - earlyMs) expect(last).toBe(302);
      }
      expect(await readMetric(redirect, "linkfence_loads_total")).toBe(loads);
    };
    await Promise.all(redirects.map(poll));
  });
});

describe("a code that was asked for before it existed", () => {
  const NEGATIVE_MS = 10_000;

  test("leads to its target as soon as the hint of its creation arrives; control: without one it stays unknown", async () => {
    await start({ NEGATIVE_TTL_MS: String(NEGATIVE_MS) }, 1);
    const [redirect] = redirects;
    if (!redirect) throw new Error("no redirect process");
    const status = async () => (await http.send(redirect.url, "/later")).status;
    const askedAt = performance.now();
    expect(await status()).toBe(404);
    await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
      VALUES ('later', ${TARGET}, 'ann', 'ALIAS', 'k')`;
    expect(await status()).toBe(404);
    await database.sql`SELECT pg_notify('link_created', '')`;
    while ((await status()) !== 302);
    expect(performance.now() - askedAt).toBeLessThan(NEGATIVE_MS);
  });
});
