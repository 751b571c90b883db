// A redirect process among others: its row in the registry, its connections, and its end.
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  createHttpClient,
  createTestDatabase,
  keepOn,
  type RunningService,
  readMetric,
  startService,
  type TestDatabase,
  terminateConnections,
  until,
  WITHOUT_STATISTICS,
  waitUntilReady,
} from "@linkfence/testkit";

let database: TestDatabase;
let redirect: RunningService;
let codes = 0;
const http = createHttpClient();

beforeAll(async () => {
  database = await createTestDatabase("main");
  // A reader that begins with an empty log forgets everything when the first number is missing, as after a revocation that failed.
  await revoke(await createLink());
});
afterEach(() => redirect.stop());
afterAll(async () => {
  http.close();
  await database.drop();
});

async function start(env: Record<string, string> = {}): Promise<void> {
  redirect = await startService("redirect", { DATABASE_URL: database.url, ...WITHOUT_STATISTICS, ...env });
  await waitUntilReady(redirect);
}

const status = async (code: string) => (await http.send(redirect.url, `/${code}`)).status;

/** Again where the connection of the test itself was ended: none of these statements does anything the second time. */
async function insist(statement: () => Promise<unknown>): Promise<void> {
  for (let done = false; !done; ) {
    done = await statement().then(
      () => true,
      () => false,
    );
  }
}

const revoke = (code: string) =>
  insist(() => database.sql`SELECT * FROM revoke_links(ARRAY[${code}], 'ann', 'k')`.execute());

async function createLink(): Promise<string> {
  const code = `link${++codes}`;
  const create = () => database.sql`INSERT INTO link (code, target, owner, kind, created_by)
    VALUES (${code}, 'https://example.com/', 'ann', 'ALIAS', 'k') ON CONFLICT DO NOTHING`;
  await insist(() => create().execute());
  return code;
}

const registry = () => database.sql<{ id: string; address: string; ttl_ms: number; follows_feed: boolean }[]>`
  SELECT id, address, ttl_ms, follows_feed FROM redirect_instance`;
const flushes = async () => {
  const page = await (await fetch(`${redirect.opsUrl}/metrics`)).text();
  return page.split("\n").flatMap((line) => {
    const [, cause, count] = /^linkfence_flushes_total\{cause="(.+)"\} (\d+)$/.exec(line) ?? [];
    return cause === undefined ? [] : [[cause, Number(count)]];
  });
};

describe("the registry", () => {
  test("holds one row for a process as long as it serves", async () => {
    await start({ CACHE_TTL_MS: "7000" });
    const [row, ...others] = await registry();
    expect(others).toEqual([]);
    expect(row).toMatchObject({ ttl_ms: 7000, follows_feed: true });
    expect(row?.address).toMatch(new RegExp(`:${new URL(redirect.url).port}$`));
    expect(await redirect.stop()).toEqual({ code: 0, signal: null });
    expect(await registry()).toHaveLength(0);
  });

  test("says of a process that neither listens nor polls that it follows nothing", async () => {
    await start({ LISTEN_ENABLED: "false", POLL_INTERVAL_MS: "0" });
    expect(await registry()).toMatchObject([{ follows_feed: false }]);
  });

  test("has a process back under another id when its row was removed, after it forgot everything", async () => {
    await start();
    const code = await createLink();
    expect(await status(code)).toBe(302);
    const [before] = await registry();
    await database.sql`DELETE FROM redirect_instance`;
    let after = await registry();
    while (after.length === 0) after = await registry();
    expect(after[0]?.id).not.toBe(before?.id);
    await until(async () => (await flushes()).length >= 2);
    expect(await flushes()).toEqual(expect.arrayContaining([["registration-lost", 1]]));
    expect(await status(code)).toBe(302);
  });

  test("that is full keeps a process from being ready, and from answering from memory", async () => {
    await database.sql`INSERT INTO redirect_instance (id, address, ttl_ms, follows_feed, epoch)
      SELECT gen_random_uuid(), 'dead', 1000, true, feed_epoch() FROM generate_series(1, 1000)`;
    const noFeed = { LISTEN_ENABLED: "false", POLL_INTERVAL_MS: "0", CACHE_TTL_MS: "1000" };
    redirect = await startService("redirect", { DATABASE_URL: database.url, ...WITHOUT_STATISTICS, ...noFeed });
    const code = await createLink();
    for (const wanted of [302, 302, 302]) expect(await status(code)).toBe(wanted);
    // Nobody would wait for this process, so a revocation counts from its commit on.
    await revoke(code);
    expect(await status(code)).toBe(410);
    expect(await readMetric(redirect, "linkfence_cache_hits_total")).toBe(0);
    expect((await fetch(`${redirect.opsUrl}/readyz`)).status).toBe(503);
    await database.sql`DELETE FROM redirect_instance WHERE address = 'dead'`;
    await waitUntilReady(redirect);
  });
});

describe("when all its connections are ended", () => {
  test("under load, again and again, no answer is wrong and nothing is fatal", async () => {
    await start();
    const warm = await createLink();
    const seen = { warm: new Set<number>(), cold: new Set<number>() };
    const stop = new AbortController();
    const load = Array.from({ length: 4 }, () =>
      keepOn(stop.signal, async () => {
        seen.warm.add(await status(warm));
        seen.cold.add(await status(`unknown${++codes}`));
      }),
    );
    for (let round = 0; round < 10; round += 1) {
      const code = await createLink();
      await until(async () => (await status(code)) === 302);
      await terminateConnections(database);
      await revoke(code);
      await terminateConnections(database);
      await until(async () => (await status(code)) === 410);
    }
    stop.abort();
    await Promise.all(load);
    expect([...seen.warm]).toEqual([302]);
    expect([...seen.cold].filter((code) => code !== 404 && code !== 503)).toEqual([]);
    expect(await flushes()).toEqual([["started", 1]]);
    expect(redirect.records().filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("SIGTERM", () => {
  test("ends kept connections that are idle at once, lets a slow request finish, and takes no new ones", async () => {
    await start({ QUERY_TIMEOUT_MS: "10000" });
    const port = Number(new URL(redirect.url).port);
    const idle = connect(port, "127.0.0.1");
    idle.write("GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n");
    await new Promise((resolve) => idle.once("data", resolve));
    const idleEnded = new Promise((resolve) => idle.resume().once("close", resolve));

    const slow = await createLink();
    const locker = await database.sql.reserve();
    await locker`BEGIN`;
    await locker`LOCK TABLE link IN ACCESS EXCLUSIVE MODE`;
    const answer = http.send(redirect.url, `/${slow}`);
    await until(async () => (await readMetric(redirect, "linkfence_loads_under_way")) === 1);

    redirect.kill("SIGTERM");
    await idleEnded;
    const refused = new Promise((resolve) => connect(port, "127.0.0.1").once("error", resolve));
    expect(await refused).toMatchObject({ code: "ECONNREFUSED" });
    expect(await registry()).toHaveLength(1);
    await locker`COMMIT`;
    locker.release();
    expect((await answer).status).toBe(302);
    expect(await redirect.exited).toEqual({ code: 0, signal: null });
    expect(await registry()).toHaveLength(0);
  });

  test("is told by /readyz first, for as long as is set, while requests are answered on new connections", async () => {
    await start({ STOP_DELAY_MS: "2000" });
    const code = await createLink();
    const client = createHttpClient();
    redirect.kill("SIGTERM");
    await until(async () => (await fetch(`${redirect.opsUrl}/readyz`)).status === 503);
    expect((await client.send(redirect.url, `/${code}`)).status).toBe(302);
    client.close();
    expect(await redirect.exited).toEqual({ code: 0, signal: null });
    expect(await registry()).toHaveLength(0);
  });

  test("under load cuts off no answer, and ends with 0", async () => {
    await start();
    const code = await createLink();
    const answers: number[] = [];
    const client = createHttpClient(16);
    const worker = async () => {
      for (;;) {
        try {
          answers.push((await client.send(redirect.url, `/${code}`)).status);
          if (answers.length === 200) redirect.kill("SIGTERM");
        } catch (error) {
          const { code: cause } = error as NodeJS.ErrnoException;
          if (cause === "ECONNREFUSED") return;
          // A kept connection that was closed at the instant of the next request: nothing of that request was read.
          expect(["ECONNRESET", "EPIPE"]).toContain(cause);
        }
      }
    };
    await Promise.all(Array.from({ length: 16 }, worker));
    client.close();
    expect([...new Set(answers)]).toEqual([302]);
    expect(await redirect.exited).toEqual({ code: 0, signal: null });
  });

  test("ends a process whose database is away, within its deadline", async () => {
    redirect = await startService("redirect", {
      DATABASE_URL: "postgres://nobody@127.0.0.1:9/none",
      ...WITHOUT_STATISTICS,
    });
    expect(await status("abc")).toBe(503);
    expect(await redirect.stop()).toEqual({ code: 0, signal: null });
  });
});
