// A read that is overtaken by a revocation, on a real server with the real feed: the row has been read, and its answer
// is held back until the change has been applied. Each rule once as it is, and once taken out.
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { createDatabase, type Database } from "@linkfence/db";
import { createFollower, readChanges } from "@linkfence/link-feed";
import { listen } from "@linkfence/service-shell";
import { createHttpClient, createTestDatabase, type TestDatabase } from "@linkfence/testkit";
import { createApp } from "./app.ts";
import { createLinkCache, type LinkCache } from "./cache/link-cache.ts";
import { createLinkLookup } from "./cache/link-lookup.ts";
import { createLoader, type Loader } from "./cache/loader.ts";
import { createClickRing } from "./clicks/click-ring.ts";
import type { Entry } from "./domain/entry.ts";
import { createHotPath } from "./http/hot-path.ts";
import { registerInstance } from "./store/instance.ts";
import { createLinkReader } from "./store/links.ts";

const TTL = 60_000;
const OLD = "https://example.com/old";

let fresh: TestDatabase;
let database: Database;
const http = createHttpClient();
const undos: (() => unknown)[] = [];
let codes = 0;

beforeAll(async () => {
  fresh = await createTestDatabase("main");
  database = createDatabase({ url: fresh.url, applicationName: "test", max: 4, queryTimeoutMs: 10_000 });
});
afterEach(async () => {
  for (const undo of undos.splice(0).reverse()) await undo();
});
afterAll(async () => {
  http.close();
  await database.close();
  await fresh.drop();
});

type Weakened = { cache?: (real: LinkCache) => LinkCache; loader?: (real: Loader) => Loader; wallOffsetMs?: number };

/** The service's parts, put together as `main.ts` does, with a gate behind the database. */
async function startRedirect({ cache: weakenCache, loader: weakenLoader, wallOffsetMs = 0 }: Weakened = {}) {
  const now = () => ({ mono: performance.now(), wall: Date.now() + wallOffsetMs });
  const readLink = createLinkReader(database);
  let gate = Promise.resolve();
  let read = () => {};
  const realCache = createLinkCache({ maxEntries: 100, maxBytes: 1_000_000 });
  const cache = weakenCache?.(realCache) ?? realCache;
  const realLoader = createLoader({
    cache,
    readLink: async (code) => {
      const held = gate;
      const row = await readLink(code);
      read();
      await held;
      return row;
    },
    ttlMs: TTL,
    negativeTtlMs: 1000,
    now,
    random: () => 0,
  });
  const loader = weakenLoader?.(realLoader) ?? realLoader;
  const lookup = createLinkLookup({ cache, loader, ttlMs: TTL });
  const ring = createClickRing(100);
  const hotPath = createHotPath({ lookup, ring, now, debugEntryAge: true, onLoadError: () => {} });
  const app = createApp({ hotPath, onError: () => {} });
  const server = await listen(hotPath.handle(app), { port: 0, host: "127.0.0.1", maxConnections: 100 });
  undos.push(() => server.close(0));

  let synced = () => {};
  const firstSync = new Promise<void>((resolve) => {
    synced = resolve;
  });
  let applied = (_seq: number) => {};
  const follower = createFollower({
    pollIntervalMs: 5,
    ttlMs: TTL,
    now,
    random: Math.random,
    newInstanceId: randomUUID,
    register: (id) => registerInstance(database, { id, address: "here", ttlMs: TTL, followsFeed: true }),
    sync: (request) => readChanges(database, request),
    apply: (changes) => {
      lookup.apply(changes);
      for (const { seq } of changes) applied(seq);
    },
    flush: lookup.flush,
    onSynced: (moment) => {
      lookup.synced(moment);
      synced();
    },
    onTrouble: () => {},
    onRecovered: () => {},
  });
  undos.push(() => follower.stop());
  await firstSync;

  return {
    lookup,
    ring,
    get: (code: string) => http.send(`http://127.0.0.1:${server.port}`, `/${code}`),
    /** Holds back every answer of the database from now on, until the function it returns is called. */
    hold(): () => void {
      let open = () => {};
      gate = new Promise((resolve) => {
        open = resolve;
      });
      return () => {
        gate = Promise.resolve();
        open();
      };
    },
    /** Resolves when a row has been read, before its answer is let through. */
    rowRead: () =>
      new Promise<void>((resolve) => {
        read = resolve;
      }),
    /** Revokes, and resolves when this process has applied the change. */
    async revoke(code: string): Promise<void> {
      const done = new Promise<number>((resolve) => {
        applied = resolve;
      });
      await fresh.sql`SELECT * FROM revoke_links(ARRAY[${code}], 'ann', 'k')`;
      await done;
    },
  };
}

async function createLink(expiresInMs: number | null = null): Promise<string> {
  const code = `link${++codes}`;
  const interval = expiresInMs === null ? null : `${expiresInMs} milliseconds`;
  await fresh.sql`INSERT INTO link (code, target, owner, kind, created_by, expires_at)
    VALUES (${code}, ${OLD}, 'ann', 'ALIAS', 'k', clock_timestamp() + ${interval}::interval)`;
  return code;
}

/** The request that is overtaken: its row is read, the link is revoked, the change applied, the answer let through. */
async function overtake(redirect: Awaited<ReturnType<typeof startRedirect>>, code: string) {
  const release = redirect.hold();
  const rowRead = redirect.rowRead();
  const early = redirect.get(code);
  await rowRead;
  await redirect.revoke(code);
  return { early, release };
}

describe("a read that began before a revocation and ends after it was applied", () => {
  test("may answer who asked before, and nobody after: the next request reads anew", async () => {
    const redirect = await startRedirect();
    const code = await createLink();
    const { early, release } = await overtake(redirect, code);
    release();
    expect([(await early).status, (await early).headers.location]).toEqual([302, OLD]);
    expect((await redirect.get(code)).status).toBe(410);
    expect(redirect.lookup.stats()).toMatchObject({ loads: 2, fillsRefused: 1 });
  });

  test("control: without marks and versions its answer is kept, and the next request gets the old target", async () => {
    const unmarked = (real: Loader) => ({ ...real, detach: () => {} });
    const unguarded = (real: LinkCache) => ({ ...real, invalidate: () => {} });
    const redirect = await startRedirect({ loader: unmarked, cache: unguarded });
    const code = await createLink();
    const { early, release } = await overtake(redirect, code);
    release();
    await early;
    expect((await redirect.get(code)).status).toBe(302);
  });

  test("is joined by nobody who asks after the change was applied", async () => {
    const redirect = await startRedirect();
    const code = await createLink();
    const { early, release } = await overtake(redirect, code);
    const rowRead = redirect.rowRead();
    const late = redirect.get(code);
    await rowRead;
    release();
    expect([(await early).status, (await late).status]).toEqual([302, 410]);
    expect(redirect.lookup.stats()).toMatchObject({ loads: 2, joined: 0 });
  });

  test("control: with plain sharing of reads, who asks after the change gets the old target", async () => {
    const plain = (real: Loader): Loader => {
      const running = new Map<string, Promise<Entry>>();
      const load = (code: string) => {
        const shared = running.get(code) ?? real.load(code).finally(() => running.delete(code));
        running.set(code, shared);
        return shared;
      };
      return { ...real, load };
    };
    const redirect = await startRedirect({ loader: plain });
    const code = await createLink();
    const { early, release } = await overtake(redirect, code);
    const misses = redirect.lookup.stats().misses;
    const late = redirect.get(code);
    while (redirect.lookup.stats().misses === misses) await new Promise(setImmediate);
    release();
    expect([(await early).status, (await late).status]).toEqual([302, 302]);
  });
});

describe("a link with an expiry", () => {
  test.each([0, 3_600_000, -3_600_000])(
    "ends at its instant by the database's clock, in a process whose wall clock is %d ms off",
    async (wallOffsetMs) => {
      const redirect = await startRedirect({ wallOffsetMs });
      const code = await createLink(400);
      const [row] = await fresh.sql`SELECT (extract(epoch FROM expires_at) * 1000)::float8 AS at FROM link
        WHERE code = ${code}`;
      const askedAt = performance.now();
      await redirect.get(code);
      // The life counts from before the question was sent: it may end early by the time of that question, never late.
      const early = performance.now() - askedAt;
      const { loads } = redirect.lookup.stats();
      for (let last = 302; last !== 410; ) {
        const startedAt = Date.now();
        last = (await redirect.get(code)).status;
        if (startedAt >= row?.at) expect(last).toBe(410);
        if (Date.now() < row?.at - early) expect(last).toBe(302);
      }
      expect(redirect.lookup.stats().loads).toBe(loads);
    },
  );
});

describe("a row that did not come through the write service", () => {
  test.each(["https://example.com/\u00e9", "https://example.com/\r\nSet-Cookie: a=b", "https://example.com/\u{1f600}"])(
    "and whose target no header can carry is answered 503, and the next request as ever (%#)",
    async (target) => {
      const redirect = await startRedirect();
      const code = `odd${++codes}`;
      await fresh.sql`INSERT INTO link (code, target, owner, kind, created_by)
        VALUES (${code}, ${target}, 'ann', 'ALIAS', 'k')`;
      const { status, headers } = await redirect.get(code);
      expect([status, headers["set-cookie"], headers["cache-control"]]).toEqual([503, undefined, "no-store"]);
      expect((await redirect.get(await createLink())).status).toBe(302);
    },
  );

  test("and whose target a header can carry is sent byte for byte", async () => {
    const redirect = await startRedirect();
    const target = `https://example.com/"><img src=x onerror=alert(1)>`;
    await fresh.sql`INSERT INTO link (code, target, owner, kind, created_by)
      VALUES ('hostile', ${target}, 'ann', 'ALIAS', 'k')`;
    expect((await redirect.get("hostile")).headers.location).toBe(target);
    expect((await redirect.get("hostile+")).body).toBe(`${target}\n`);
  });
});
