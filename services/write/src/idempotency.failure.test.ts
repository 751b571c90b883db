// The process or its database is lost between the commit of a creation with a key and its answer: the repetition gets
// the same link, and the answer that nobody heard.
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  type HttpClient,
  makeAdminKey,
  type Pooler,
  type RunningService,
  readMetric,
  startPooler,
  startService,
  type TestDatabase,
  terminateConnections,
  until,
} from "@linkfence/testkit";
import { BATCH, common, createKeyedPost, LINK, LINKS, SINGLE } from "./idempotency.fixture.ts";

let database: TestDatabase;
let pooler: Pooler;
let write: RunningService;
let http: HttpClient;
let adminKey: string;
const start = (url: string) => startService("write", { DATABASE_URL: url, PUBLIC_BASE_URL: "https://sho.example" });
const post = (...args: Parameters<ReturnType<typeof createKeyedPost>>) =>
  createKeyedPost(http, write.url, adminKey)(...args);

beforeEach(async () => {
  database = await createTestDatabase("main");
  pooler = await startPooler(Number(new URL(database.url).port));
  adminKey = await makeAdminKey(database.url);
  http = createHttpClient();
  write = await start(pooler.through(database.url));
});
afterEach(async () => {
  http.close();
  await write.stop();
  await pooler.close();
  await database.drop();
});

async function codes(): Promise<string[]> {
  const rows = await database.sql<{ code: string }[]>`SELECT code FROM link ORDER BY code COLLATE "C"`;
  return rows.map(({ code }) => code);
}

/** Sends a creation, and resolves when it is committed, and before the service can have heard of that. */
async function commitUnheard(answerOf: string, body: string, path: string) {
  pooler.withhold(answerOf);
  const lost = post("k1", body, path).catch(() => undefined);
  await until(async () => (await codes()).length !== 0);
  return { committed: await codes(), lost };
}

const CASES: [string, string, string, string][] = [
  ["link", "idempotency_record", LINK, SINGLE],
  ["batch", "commit", LINKS, BATCH],
];

describe.each(CASES)("between the commit of a %s and its answer", (_what, answerOf, body, path) => {
  test("the process is killed: the next one answers a repetition with what was made", async () => {
    const { committed, lost } = await commitUnheard(answerOf, body, path);
    write.kill("SIGKILL");
    await write.exited;
    expect(await lost).toBeUndefined();
    write = await start(database.url);
    const again = await post("k1", body, path);
    expect(again).toMatchObject({ status: path === SINGLE ? 201 : 200, replayed: "true" });
    for (const code of committed) expect(again.body).toContain(`"code":"${code}"`);
    expect(await codes()).toEqual(committed);
    expect(common(await post("k1", body, path))).toEqual(common(again));
  });

  test("the database falls silent: 503, and a repetition is answered with what was made", async () => {
    const { committed, lost } = await commitUnheard(answerOf, body, path);
    expect(await lost).toMatchObject({ status: 503, replayed: undefined, retryAfter: "2" });
    const again = await post("k1", body, path);
    expect(again).toMatchObject({ status: path === SINGLE ? 201 : 200, replayed: "true" });
    for (const code of committed) expect(again.body).toContain(`"code":"${code}"`);
    expect(await codes()).toEqual(committed);
  });
});

test("connections are lost again and again: whoever repeats until there is an answer has one link for each key", async () => {
  const stop = new AbortController();
  const told = new Map<string, string>();
  const others = new Set<number>();
  let repeated = 0;
  const createWith = async (key: string) => {
    for (;;) {
      const { status, location = "" } = await post(key);
      if (status === 201) return told.set(key, location.slice("/v1/links/".length));
      if (status !== 503 && status !== 409) others.add(status);
      repeated += 1;
    }
  };
  const load = Promise.all(
    Array.from({ length: 8 }, async (_, worker) => {
      for (let n = 0; !stop.signal.aborted; n += 1) await createWith(`worker-${worker}-${n}`);
    }),
  );
  for (let round = 0; round < 10; round += 1) {
    const before = told.size;
    await until(() => told.size >= before + 20);
    await terminateConnections(database);
  }
  stop.abort();
  await load;
  expect([...others]).toEqual([]);
  expect(repeated).toBeGreaterThan(0);
  expect(await codes()).toEqual([...told.values()].sort());
  expect(write.output()).not.toContain("fatal error");
});

describe("without a key", () => {
  test("the same silence of the database, and a repetition, make a second link", async () => {
    pooler.withhold("INSERT INTO link");
    const lost = post(null);
    await until(async () => (await codes()).length !== 0);
    expect((await lost).status).toBe(503);
    expect((await post(null)).status).toBe(201);
    expect(await codes()).toHaveLength(2);
  });

  test("the same end of the process, and a repetition, make a second link", async () => {
    pooler.withhold("INSERT INTO link");
    const lost = post(null).catch(() => undefined);
    await until(async () => (await codes()).length !== 0);
    write.kill("SIGKILL");
    await write.exited;
    expect(await lost).toBeUndefined();
    write = await start(database.url);
    expect((await post(null)).status).toBe(201);
    expect(await codes()).toHaveLength(2);
  });
});

test("a stop lets those who wait for a key have their answer, and ends in time", async () => {
  await database.sql.begin(async (sql) => {
    await sql`SELECT * FROM take_idempotency_key('admin', 'POST /v1/links', 'k1', ${Buffer.alloc(32)}, 0)`;
    const waiting = Promise.all([post("k1"), post("k1"), post("k1")]);
    const awaited = () => readMetric(write, 'linkfence_idempotency_keys_awaited{where="memory"}');
    await until(async () => (await awaited()) === 2);
    const stopped = write.stop();
    expect((await waiting).map(({ status }) => status)).toEqual([409, 409, 409]);
    expect(await stopped).toEqual({ code: 0, signal: null });
  });
});
