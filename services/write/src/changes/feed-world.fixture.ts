// The admin API in the test's own process, on a database of its own, with short times: for streams of changes.
import { createDatabase } from "@linkfence/db";
import { listen } from "@linkfence/service-shell";
import { addApiKey, checkFetched, createTestDatabase } from "@linkfence/testkit";
import { createCounts } from "../counts.ts";
import { createPartialApp } from "../partial-app.fixture.ts";
import { type ChangeStore, createChangeStore } from "../store/changes.ts";
import { openReader, type ReaderOptions } from "./reader.fixture.ts";
import { type ChangeStreamsOptions, createChangeStreams } from "./streams.ts";

export type FeedWorld = Awaited<ReturnType<typeof startFeedWorld>>;

const TIMES = { watchMs: 5, heartbeatMs: 20, drainMs: 300, readTimeoutMs: 5000, retryMs: 2000 };

/**
 * @param over what is to be otherwise
 * @param weaken puts something else in the place of the reader of the log
 */
export async function startFeedWorld(
  over: Partial<ChangeStreamsOptions> = {},
  weaken: (changes: ChangeStore) => ChangeStore = (changes) => changes,
) {
  const database = await createTestDatabase("main");
  const db = createDatabase({ url: database.url, applicationName: "feed", max: 8, queryTimeoutMs: 10_000 });
  const counts = createCounts();
  const changes = weaken(createChangeStore(db));
  const streams = createChangeStreams({
    ...TIMES,
    maxStreams: 100,
    maxPerOwner: 10,
    maxReads: 2,
    changes,
    counts: counts.changes,
    onTrouble: () => {},
    ...over,
  });
  const app = createPartialApp({ db, counts }, { changes, streams });
  const server = await listen(app, { port: 0, host: "127.0.0.1", maxConnections: 500 });
  const url = `http://127.0.0.1:${server.port}`;
  let links = 0;

  async function createLinks(owner: string, count: number): Promise<string[]> {
    const codes = Array.from({ length: count }, () => `link-${links++}`);
    await database.sql`INSERT INTO link (code, target, owner, kind, created_by)
      SELECT code, 'https://example.com/', ${owner}, 'ALIAS', 'k' FROM unnest(${codes}::text[]) AS code`;
    return codes;
  }

  async function revoke(owner: string, codes: readonly string[], by = "k"): Promise<number[]> {
    const rows = await database.sql<{ seq: number }[]>`
      SELECT seq::float8 AS seq FROM revoke_links(${[...codes]}::text[], ${owner}, ${by}) ORDER BY ordinal`;
    return rows.map(({ seq }) => seq);
  }

  return {
    database,
    changes,
    counts: counts.changes,
    streams,
    url,
    createLinks,
    revoke,
    async revokeNew(owner: string, count = 1): Promise<string[]> {
      const codes = await createLinks(owner, count);
      await revoke(owner, codes);
      return codes;
    },
    async addKey(owner: string, scopes = ["links:read"]): Promise<string> {
      return addApiKey(database.sql, { owner, scopes });
    },
    read: (options: ReaderOptions) => openReader(url, options),
    /** Rejects when the answer is not what the OpenAPI document says. */
    async get(
      path: string,
      key: string,
      { headers = {}, method = "GET" }: { method?: string; headers?: Record<string, string> } = {},
    ) {
      const fields = { Authorization: `Bearer ${key}`, ...headers };
      return checkFetched(method, path, await fetch(url + path, { method, headers: fields }));
    },
    async stop() {
      streams.stop();
      await server.close(5000);
      await db.close();
      await database.drop();
    },
  };
}
