// The main database out of reach from the start on, busy, or behind a pooler that lets no notification through.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  type FaultProxy,
  type HttpAnswer,
  type RunningService,
  readMetric,
  startFaultProxy,
  startPooler,
  startService,
  type TestDatabase,
  until,
  waitUntilReady,
} from "@linkfence/testkit";

const QUERY_MS = 500;
/** A process on a machine that is busy with other tests runs late; the deadline itself is the database package's test. */
const LATE_MS = 1000;
const TARGET = "https://example.com/";

let database: TestDatabase;
let proxy: FaultProxy;
let redirect: RunningService;
let codes = 0;
const http = createHttpClient(64);

beforeAll(async () => {
  database = await createTestDatabase("main");
});
afterEach(async () => {
  await redirect.stop();
  await proxy.close();
});
afterAll(async () => {
  http.close();
  await database.drop();
});

async function start(env: Record<string, string>): Promise<void> {
  proxy = await startFaultProxy(Number(new URL(database.url).port));
  redirect = await startService("redirect", {
    DATABASE_URL: proxy.through(database.url),
    CLICK_INGEST_URL: "http://127.0.0.1:9",
    CLICK_FLUSH_TIMEOUT_MS: "0",
    QUERY_TIMEOUT_MS: String(QUERY_MS),
    ...env,
  });
}

async function createLinks(count: number): Promise<string[]> {
  const list = Array.from({ length: count }, () => `link${++codes}`);
  await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    SELECT code, ${TARGET}, 'ann', 'ALIAS', 'k' FROM unnest(${list}::text[]) AS code`;
  return list;
}

type Timed = HttpAnswer & { ms: number };

async function get(path: string): Promise<Timed> {
  const sentAt = performance.now();
  const answer = await http.send(redirect.url, path);
  return { ...answer, ms: performance.now() - sentAt };
}
const statuses = (answers: readonly HttpAnswer[]) => [...new Set(answers.map(({ status }) => status))];
const ready = async () => (await fetch(`${redirect.opsUrl}/readyz`)).status;
const revoke = (code: string) => database.sql`SELECT * FROM revoke_links(ARRAY[${code}], 'ann', 'k')`;

/** Asks again and again until `status` comes; `while_` is what may come until then. */
async function untilAnswered(path: string, status: number, while_: readonly number[]): Promise<void> {
  for (let last = -1; last !== status; ) {
    last = (await get(path)).status;
    expect([status, ...while_]).toContain(last);
  }
}

describe("a process that starts while the database is away", () => {
  test.each(["refuse", "hang"] as const)(
    "serves nothing from memory, is not ready, and recovers by itself (%s)",
    async (mode) => {
      const [code = ""] = await createLinks(1);
      proxy = await startFaultProxy(Number(new URL(database.url).port));
      proxy.set(mode);
      redirect = await startService("redirect", {
        DATABASE_URL: proxy.through(database.url),
        CLICK_FLUSH_TIMEOUT_MS: "0",
        CLICK_INGEST_URL: "http://127.0.0.1:9",
        QUERY_TIMEOUT_MS: String(QUERY_MS),
      });
      expect(await ready()).toBe(503);
      expect((await fetch(`${redirect.opsUrl}/livez`)).status).toBe(200);
      expect((await get(`/${code}`)).status).toBe(503);
      expect((await get("/robots.txt")).status).toBe(200);

      proxy.set("pass");
      await waitUntilReady(redirect);
      await untilAnswered(`/${code}`, 302, [503]);
      await until(async () => (await readMetric(redirect, "linkfence_listening")) === 1);
    },
  );
});

describe("a table that is locked", () => {
  test("costs the links that are not in memory a 503 within the deadline, and the others nothing", async () => {
    await start({});
    await waitUntilReady(redirect);
    const [warm = "", cold = ""] = await createLinks(2);
    expect((await get(`/${warm}`)).status).toBe(302);
    const locker = await database.sql.reserve();
    await locker`BEGIN`;
    await locker`LOCK TABLE link IN ACCESS EXCLUSIVE MODE`;
    const missed = await Promise.all(Array.from({ length: 20 }, () => get(`/${cold}`)));
    expect(statuses(missed)).toEqual([503]);
    for (const { ms } of missed) expect(ms).toBeLessThan(QUERY_MS + LATE_MS);
    expect((await get(`/${warm}`)).status).toBe(302);
    await locker`ROLLBACK`;
    locker.release();
    await untilAnswered(`/${cold}`, 302, [503]);
    expect(await readMetric(redirect, "linkfence_loads_under_way")).toBe(0);
  });
});

describe("a connection string for LISTEN that leads through a pooler in transaction mode", () => {
  test("keeps the process from being ready, which says why; polling goes on without", async () => {
    const pooler = await startPooler(Number(new URL(database.url).port));
    pooler.set("deaf");
    await start({ LISTEN_DATABASE_URL: pooler.through(database.url) });
    const told = await redirect.logged(({ state }) => state === "deaf");
    expect(told.level).toBe("warn");
    const readiness = await fetch(`${redirect.opsUrl}/readyz`);
    expect(readiness.status).toBe(503);
    expect(await readiness.text()).toContain("LISTEN_DATABASE_URL");
    const [code = ""] = await createLinks(1);
    expect((await get(`/${code}`)).status).toBe(302);
    await revoke(code);
    await untilAnswered(`/${code}`, 410, [302]);
    pooler.set("pass");
    await waitUntilReady(redirect);
    await pooler.close();
  });
});
