// Whatever breaks an import off, the same file sent again makes each of its lines exactly one link.
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import type { Import } from "@linkfence/contracts";
import {
  createApiClient,
  createHttpClient,
  createTestDatabase,
  type FaultProxy,
  type HttpClient,
  makeAdminKey,
  type RunningService,
  readMetric,
  startFaultProxy,
  startService,
  type TestDatabase,
  until,
} from "@linkfence/testkit";
import { openFile, sendFile } from "./imports.fixture.ts";

/** As long as the service waits for a client of which it hears nothing. */
const PATIENCE_MS = 15_000;
const LINES = 1700;
const KEY = { key: "k1" };
/** One alias among the lines, by which a batch can be stopped in its middle. */
const STOP_AT = 1201;
const targetOf = (n: number) => `https://example.com/${n}`;
const FILE = `target,alias\n${Array.from({ length: LINES }, (_, i) => `${targetOf(i + 1)},${i + 1 === STOP_AT ? "stop-here" : ""}\n`).join("")}`;

let database: TestDatabase;
let write: RunningService;
let http: HttpClient;
let adminKey: string;
const start = () =>
  startService("write", {
    ...{ DATABASE_URL: database.url, PUBLIC_BASE_URL: "https://sho.example", QUERY_TIMEOUT_MS: "20000" },
  });

beforeAll(async () => {
  database = await createTestDatabase("main");
  adminKey = await makeAdminKey(database.url);
  http = createHttpClient();
  write = await start();
});
afterEach(async () => {
  await database.sql`TRUNCATE import_alias, import_error, import, link CASCADE`;
});
afterAll(async () => {
  http.close();
  await write.stop();
  await database.drop();
});

const get = <T>(path: string) => createApiClient(http, write.url, adminKey)<T>("GET", path);
async function newest(): Promise<Import | undefined> {
  return (await get<{ items: Import[] }>("/v1/imports?limit=1")).json.items[0];
}

/** Uploads under way, as the service counts them. */
const uploads = () => readMetric(write, "linkfence_imports_running");

/** How many lines the import has decided, as its row says. */
async function linesDone(): Promise<number> {
  const [row] = await database.sql<{ lines: number }[]>`SELECT lines::int FROM import`;
  return row?.lines ?? 0;
}

/** Has the server end every connection of the service, and says how many there were. */
async function terminateServiceConnections(): Promise<number> {
  const ended = await database.sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'linkfence-write%'`;
  return ended.length;
}

/** Each line is one link, and its own. */
async function expectEachLineOnce(): Promise<void> {
  const rows = await database.sql<{ line: number; target: string }[]>`
    SELECT import_line::int AS line, target FROM link ORDER BY import_line`;
  expect(rows.map(({ line, target }) => [line, target])).toEqual(
    Array.from({ length: LINES }, (_, i) => [i + 2, targetOf(i + 1)]),
  );
}

/** Runs `work` while the batch with the alias waits for somebody else's transaction on it, which then rolls back. */
async function withBatchStopped(work: () => Promise<void>): Promise<void> {
  const rolledBack = new Error("rolled back");
  await database.sql
    .begin(async (sql) => {
      await sql`INSERT INTO link (code, target, owner, kind, created_by) VALUES ('stop-here', 'x', 'x', 'ALIAS', 'k')`;
      await work();
      throw rolledBack;
    })
    .catch((error: unknown) => {
      if (error !== rolledBack) throw error;
    });
}

async function batchWaits(): Promise<void> {
  for (;;) {
    const [row] = await database.sql<{ n: number }[]>`
      SELECT count(*)::int AS n FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'linkfence-write-import' AND wait_event_type = 'Lock'`;
    if (row?.n === 1) return;
  }
}

test("the process is killed in the middle of a batch: the next one goes on behind the batch before", async () => {
  await withBatchStopped(async () => {
    const lost = sendFile(write.url, adminKey, FILE, KEY).catch(() => undefined);
    await batchWaits();
    write.kill("SIGKILL");
    await write.exited;
    expect(await lost).toBeUndefined();
  });
  write = await start();
  const before = await linesDone();
  expect(before).toBeGreaterThanOrEqual(500);
  expect(before).toBeLessThan(STOP_AT);
  expect(await newest()).toMatchObject({ state: "INTERRUPTED", lines: before });
  const { status, body } = await sendFile(write.url, adminKey, FILE, KEY);
  expect([status, body]).toMatchObject([201, { lines: LINES, created: LINES, refused: 0 }]);
  await expectEachLineOnce();
});

test("the process is killed between the last commit and its answer: the file is found to be finished", async () => {
  const proxy: FaultProxy = await startFaultProxy(Number(new URL(write.url).port));
  try {
    let lost: Promise<unknown> = Promise.resolve();
    await withBatchStopped(async () => {
      lost = sendFile(`http://127.0.0.1:${proxy.port}`, adminKey, FILE, KEY).catch(() => "lost");
      await batchWaits();
      // All of the file has been sent; what is answered from now on nobody hears.
      proxy.set("hang");
    });
    for (;;) {
      const [row] = await database.sql`SELECT FROM import WHERE finished_at IS NOT NULL`;
      if (row) break;
    }
    write.kill("SIGKILL");
    await write.exited;
    proxy.set("refuse");
    expect(await lost).toBe("lost");
  } finally {
    await proxy.close();
  }
  write = await start();
  const { status, headers, body } = await sendFile(write.url, adminKey, FILE, KEY);
  expect([status, headers["idempotency-replayed"], body]).toMatchObject([200, "true", { created: LINES }]);
  await expectEachLineOnce();
});

test("connections are broken off again and again, at any byte: whoever repeats has each line once", async () => {
  let sent = 0;
  let slowest = 0;
  for (let round = 1; sent < FILE.length; round += 1) {
    sent = Math.min(FILE.length, round * 9_973);
    const file = openFile(write.url, adminKey, KEY);
    await file.write(FILE.slice(0, sent));
    await until(async () => (await uploads()) !== 0);
    file.destroy();
    const endedAt = performance.now();
    await until(async () => (await uploads()) === 0);
    slowest = Math.max(slowest, performance.now() - endedAt);
  }
  for (;;) {
    const { status, body } = await sendFile(write.url, adminKey, FILE, KEY);
    if (status === 409) continue;
    expect([status, body]).toMatchObject([201, { lines: LINES, created: LINES }]);
    break;
  }
  // The end of the connection was noticed, and not only that nothing came any more.
  expect(slowest).toBeLessThan(PATIENCE_MS);
  await expectEachLineOnce();
});

test("the database ends all connections again and again: the upload goes on by itself, and each line is one link", async () => {
  const file = openFile(write.url, adminKey, KEY);
  let ended = 0;
  for (let from = 0; from < FILE.length; from += 10_000) {
    await file.write(FILE.slice(from, from + 10_000));
    ended += await terminateServiceConnections();
  }
  // Where nothing was connected yet, none could be ended.
  await until(async () => {
    ended += await terminateServiceConnections();
    return ended > 0;
  });
  file.end();
  let answer = await file.answer;
  // A database that was away just when the answer was put together, or the lock was taken, is told as 503.
  while (answer.status === 503) answer = await sendFile(write.url, adminKey, FILE, KEY);
  expect([answer.status < 300, answer.body]).toMatchObject([true, { lines: LINES, created: LINES }]);
  await expectEachLineOnce();
  expect(write.output()).not.toContain("fatal error");
});

test("a stop ends an upload with what it has decided, tells where it is kept, and the next process goes on", async () => {
  const file = openFile(write.url, adminKey, KEY);
  await file.write(FILE.slice(0, 30_000));
  const whole = FILE.slice(0, 30_000).split("\n").length - 2;
  await until(async () => (await linesDone()) >= 500);
  write.kill("SIGTERM");
  const { status, headers, body } = await file.answer;
  expect([status, headers["retry-after"], body]).toMatchObject([503, "2", { code: "unavailable" }]);
  expect(await write.exited).toEqual({ code: 0, signal: null });
  expect(await linesDone()).toBe(whole);
  write = await start();
  const id = headers.location?.slice("/v1/imports/".length);
  expect(await newest()).toMatchObject({ id, state: "INTERRUPTED", lines: whole });
  const again = await sendFile(write.url, adminKey, FILE, { query: `?importId=${id}` });
  expect([again.status, again.body]).toMatchObject([201, { id, lines: LINES, created: LINES }]);
  await expectEachLineOnce();
});

test("of two uploads of one file at once, one goes through and the other is told to wait", async () => {
  const sends = Array.from({ length: 2 }, () => sendFile(write.url, adminKey, FILE, KEY));
  const statuses = (await Promise.all(sends)).map(({ status, headers }) => [status, headers["retry-after"]]);
  // The second may also have come when the first was through.
  expect([...statuses].sort()[0]).toEqual([expect.any(Number), undefined]);
  expect(statuses.filter(([status]) => status === 201)).toHaveLength(1);
  expect([
    [200, undefined],
    [409, "2"],
  ]).toContainEqual(statuses.find(([status]) => status !== 201));
  await expectEachLineOnce();
});
