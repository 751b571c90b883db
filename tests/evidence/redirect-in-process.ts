// The redirect service's parts, put together as its `main.ts` does, in the process of the experiment: with hooks where
// something is held back, and with one part exchanged for a weaker one where a rule is to be taken out.
import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createDatabase, type Database } from "@linkfence/db";
import { createFollower, type Follower, type Moment, type RestartCause, readChanges } from "@linkfence/link-feed";
import { KEEP_ALIVE_MS, listen } from "@linkfence/service-shell";
import { createHttpClient, createTestDatabase, type HttpRequest, type TestDatabase, waitFor } from "@linkfence/testkit";
import { createApp } from "../../services/redirect/src/app.ts";
import { createLinkCache, type LinkCache } from "../../services/redirect/src/cache/link-cache.ts";
import { createLinkLookup, type LinkLookup } from "../../services/redirect/src/cache/link-lookup.ts";
import { createLoader, type Loader } from "../../services/redirect/src/cache/loader.ts";
import { createReadBatches, type ReadBatches } from "../../services/redirect/src/cache/read-batches.ts";
import { createClickRing } from "../../services/redirect/src/clicks/click-ring.ts";
import { createHotPath } from "../../services/redirect/src/http/hot-path.ts";
import { createPlainConnections } from "../../services/redirect/src/http/plain-connections.ts";
import { registerInstance } from "../../services/redirect/src/store/instance.ts";
import { createLinkReader, mayBeOfOneRow } from "../../services/redirect/src/store/links.ts";

/** Parts to put in the place of the real ones. */
export type Weakening = {
  cache?: (real: LinkCache) => LinkCache;
  loader?: (real: Loader) => Loader;
  lookup?: (real: LinkLookup) => LinkLookup;
};

export type InProcessOptions = {
  /** Main database. */
  url: string;
  ttlMs: number;
  weakening?: Weakening;
  /** Where links are read, if not where the log is. */
  linksUrl?: string;
};

export type RedirectInProcess = Awaited<ReturnType<typeof startRedirectInProcess>>;

type ReadMany = ReturnType<typeof createLinkReader>;

/** Often enough that no experiment waits for it. */
const POLL_MS = 5;
/** Generous: a machine that is busy elsewhere is no reason to answer 503 here. */
const QUERY_MS = 10_000;
/** Any event comes within a second or so; this only ends a broken run. */
const EVENT_MS = 30_000;
/** More than any experiment opens. */
const MAX_CONNECTIONS = 1000;

/** Starts it, and resolves after its first complete read of the log. */
export async function startRedirectInProcess(options: InProcessOptions) {
  const { url, ttlMs } = options;
  const now = () => ({ mono: performance.now(), wall: Date.now() });
  const hooks = createHooks();
  const pool = (of: string, max: number) =>
    createDatabase({ url: of, applicationName: "evidence", max, queryTimeoutMs: QUERY_MS });
  const [links, feed] = [pool(options.linksUrl ?? url, 2), pool(url, 1)];
  const reads = createReadBatches({
    readMany: hooks.holding(createLinkReader(links)),
    mayBeOfOneRow,
    timeoutMs: QUERY_MS,
    now: () => performance.now(),
    after: (ms, act) => void setTimeout(act, ms).unref(),
  });
  const parts = assemble({ readLink: reads.read, ttlMs, now, weakening: options.weakening ?? {} });
  const app = createApp({ hotPath: parts.hotPath, onError: () => {} });
  const owner = createPlainConnections({ follow: parts.hotPath.follow, fields: [], keepAliveMs: KEEP_ALIVE_MS });
  const address = { port: 0, host: "127.0.0.1", maxConnections: MAX_CONNECTIONS, requireHost: false, owner };
  const server = await listen(parts.hotPath.handle(app), address);
  const follower = startFollower({ lookup: parts.lookup, database: feed, emit: hooks.emit, ttlMs, now });

  const redirect = {
    ...parts,
    ...createVisitor(server.port),
    port: server.port,
    holdNextRead: hooks.holdNext,
    /** Resolves when this process applies the next change of a link. */
    applied: (code: string) => hooks.next(`applied ${code}`),
    /** Resolves when this process next forgets everything for that cause. */
    flushed: (cause: RestartCause) => hooks.next(`flushed ${cause}`),
    /** Resolves when everything that is committed at the time of the call has been applied. */
    async caughtUp(): Promise<void> {
      for (const since = performance.now(); ; ) {
        const [moment] = (await hooks.next("synced")) as [Moment];
        if (moment.mono >= since) return;
      }
    },
    async close(): Promise<void> {
      redirect.leave();
      hooks.releaseAll();
      await follower.stop();
      await server.close(0);
      await Promise.all([links.close(), feed.close()]);
    },
  };
  await redirect.caughtUp().catch(async (error: unknown) => {
    await redirect.close();
    throw error;
  });
  return redirect;
}

/** Who asks this process for links. */
function createVisitor(port: number) {
  const http = createHttpClient();

  /** Asks for a link. Who does not wait for the answer need not fear its failure. */
  function get(code: string, request: HttpRequest = {}) {
    const answer = http.send(`http://127.0.0.1:${port}`, `/${code}`, request);
    answer.catch(() => {});
    return answer;
  }

  /** Follows a revoked link until it is gone. Returns when the last request was sent that got a target, in ms since `since`. */
  async function followUntilGone(code: string, since: number): Promise<number> {
    let lastMs = 0;
    await waitFor(`the end of ${code}`, async () => {
      const sentMs = performance.now() - since;
      const { status } = await get(code);
      if (status === 302) lastMs = sentMs;
      return status === 410;
    });
    return lastMs;
  }

  return { get, followUntilGone, leave: http.close };
}

export type Scene = { redirect: RedirectInProcess; database: TestDatabase };

/** Runs a scenario on a redirect in this process and on a database of its own. */
export async function withRedirectInProcess(
  options: Omit<InProcessOptions, "url">,
  scenario: (scene: Scene) => Promise<void>,
): Promise<void> {
  const database = await createTestDatabase("main");
  try {
    const redirect = await startRedirectInProcess({ ...options, url: database.url });
    await scenario({ redirect, database }).finally(redirect.close);
  } finally {
    await database.drop();
  }
}

type Following = {
  lookup: LinkLookup;
  database: Database;
  emit: Hooks["emit"];
  ttlMs: number;
  now: () => Moment;
};

function startFollower({ lookup, database, emit, ttlMs, now }: Following): Follower {
  return createFollower({
    pollIntervalMs: POLL_MS,
    ttlMs,
    now,
    random: Math.random,
    newInstanceId: randomUUID,
    register: (id) => registerInstance(database, { id, address: "here", ttlMs, followsFeed: true }),
    sync: (request) => readChanges(database, request),
    apply: (changes) => {
      lookup.apply(changes);
      for (const { code } of changes) emit(`applied ${code}`);
    },
    flush: (cause) => {
      lookup.flush();
      emit(`flushed ${cause}`);
    },
    onSynced: (moment) => {
      lookup.synced(moment);
      emit("synced", moment);
    },
    onTrouble: () => {},
    onRecovered: () => {},
  });
}

type Assembly = {
  readLink: ReadBatches["read"];
  ttlMs: number;
  now: () => Moment;
  weakening: Weakening;
};

function assemble({ readLink, ttlMs, now, weakening }: Assembly) {
  let asked = 0;
  const realCache = createLinkCache({ maxEntries: 100, maxBytes: 1_000_000 });
  const cache = weakening.cache?.(realCache) ?? realCache;
  const realLoader = createLoader({ cache, readLink, ttlMs, negativeTtlMs: 1000, now, random: () => 0 });
  const loader = weakening.loader?.(realLoader) ?? realLoader;
  const counted: Loader = {
    ...loader,
    ask(code, told) {
      asked += 1;
      loader.ask(code, told);
    },
  };
  const realLookup = createLinkLookup({ cache, loader: counted, ttlMs });
  const lookup = weakening.lookup?.(realLookup) ?? realLookup;
  const ring = createClickRing(100);
  const hotPath = createHotPath({ lookup, ring, now, debugEntryAge: true, onLoadError: () => {} });
  return {
    lookup,
    hotPath,
    /** Requests so far that were not answered from memory: they asked for a read, or for a share in one. */
    asked: () => asked,
  };
}

type Hooks = ReturnType<typeof createHooks>;

/** What happens inside, as events; and answers of the database that are held back. */
function createHooks() {
  const events = new EventEmitter();
  const holds: Promise<void>[] = [];
  const releases: (() => void)[] = [];

  /** The next event of that name. Who does not wait for it need not fear that it never comes. */
  function next(event: string): Promise<unknown[]> {
    const coming = once(events, event, { signal: AbortSignal.timeout(EVENT_MS) });
    coming.catch(() => {});
    return coming;
  }

  return {
    emit: (event: string, detail?: unknown) => void events.emit(event, detail),
    next,
    holding(read: ReadMany): ReadMany {
      return async (codes, leftMs) => {
        const hold = holds.shift();
        const rows = await read(codes, leftMs);
        if (hold) events.emit("row read");
        await hold;
        return rows;
      };
    },
    /** Holds back the answer of the next statement that reads links. `rowRead` resolves when the database has answered. */
    holdNext(): { rowRead: Promise<unknown>; release: () => void } {
      let release = () => {};
      holds.push(
        new Promise((resolve) => {
          release = resolve;
        }),
      );
      releases.push(release);
      return { rowRead: next("row read"), release };
    },
    releaseAll(): void {
      for (const release of releases) release();
    },
  };
}
