// One write service on a database of its own, for the tests of the API.
import {
  addApiKey,
  createApiClient,
  createHttpClient,
  createTestDatabase,
  type HttpRequest,
  makeAdminKey,
  sendChecked,
  startService,
  type TestDatabase,
  waitUntilReady,
} from "@linkfence/testkit";

export type Body = Record<string, unknown>;
export type ApiWorld = Awaited<ReturnType<typeof startApiWorld>>;

/**
 * Starts it, in a time zone far from UTC, with `https://sho.example` as its public place and no statistics.
 * @param env what is to be set otherwise
 * @param prepare makes more of the database, once it has its first key; resolves with the URL for the service
 */
export async function startApiWorld(
  env: Record<string, string> = {},
  prepare: (database: TestDatabase) => Promise<string> = async ({ url }) => url,
) {
  const database = await createTestDatabase("main");
  const adminKey = await makeAdminKey(database.url);
  const http = createHttpClient(32);
  const write = await startService("write", {
    DATABASE_URL: await prepare(database),
    PUBLIC_BASE_URL: "https://sho.example",
    CLICK_INGEST_URL: "http://127.0.0.1:1",
    TZ: "Pacific/Auckland",
    ...env,
  });
  await waitUntilReady(write);
  const api = <T = Body>(method: string, path: string, body?: unknown, key = adminKey) =>
    createApiClient(http, write.url, key)<T>(method, path, body);

  return {
    database,
    adminKey,
    write,
    api,
    create: (body: Body) => api("POST", "/v1/links", body),
    raw: (path: string, options: HttpRequest) => sendChecked(http, write.url, path, options),
    authorized: (headers: Record<string, string> = {}) => ({ Authorization: `Bearer ${adminKey}`, ...headers }),
    async rowsOf(code: string) {
      const rows = await database.sql<{ target: string }[]>`SELECT target FROM link WHERE code = ${code}`;
      return rows.map(({ target }) => target);
    },
    async linkCount() {
      const [row] = await database.sql<{ n: number }[]>`SELECT count(*)::int AS n FROM link`;
      return row?.n;
    },
    /** A key of another owner, or with other scopes. */
    async addKey(owner: string, scopes: string[], over: { expired?: boolean } = {}): Promise<string> {
      return addApiKey(database.sql, { owner, scopes, expiresAt: over.expired ? new Date(0) : null });
    },
    async stop() {
      http.close();
      await write.stop();
      await database.drop();
    },
  };
}
