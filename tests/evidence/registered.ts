// A write process and registered redirect processes on one main database, and clients that ask each of them for a link
// again and again while it is revoked.
import { setTimeout as pause } from "node:timers/promises";
import {
  createApiClient,
  createHttpClient,
  createTestDatabase,
  makeAdminKey,
  type RunningService,
  startService,
  type TestDatabase,
  waitFor,
  waitUntilReady,
} from "@linkfence/testkit";
import { closingAfterwards } from "./closing.ts";
import { targetOf } from "./link-rows.ts";
import { type RedirectProcess, startRedirect, type Visit } from "./redirect-process.ts";

/** A few hundred requests a second to each process; without a pause they would take a processor each. */
const ASK_EVERY_MS = 2;

export type Effective = {
  confirmed: boolean;
  by: "acknowledged" | "ttl" | null;
  afterMs: number | null;
  instances: { total: number; acknowledged: number };
  effectiveWithinMs?: number;
  missing?: string[];
};
/** What a revocation was answered, and when, in ms of `performance.now()`. */
export type Revoked = { status: number; effective: Effective; sentAt: number; answeredAt: number };

export type Registered = {
  sql: TestDatabase["sql"];
  redirects: readonly RedirectProcess[];
  /** Starts one more, which is stopped at the end. `url` is the database as it sees it. */
  add(env?: Record<string, string>, url?: string): Promise<RedirectProcess>;
  databaseUrl: string;
  /** The write process that runs now. */
  write(): RunningService;
  /** Stops the write process, and starts another one. `between` is done while none runs. */
  restartWrite(between?: () => Promise<unknown>): Promise<void>;
  api: ReturnType<typeof createApiClient>;
  /** Makes links, named by a prefix and a number from 1 on. Returns their codes. */
  create(prefix: string, count: number): Promise<string[]>;
  revoke(code: string, query?: string): Promise<Revoked>;
  /** Addresses in the registry, as the admin API lists them. */
  addresses(): Promise<string[]>;
};

type Options = {
  redirects: number;
  ttlMs: number;
  /** Settings of the redirect processes. */
  env?: Record<string, string>;
  /** A main database; by default a copy of one that was migrated before. */
  database?: () => Promise<TestDatabase>;
};

/** Runs a scenario on a write process and `redirects` redirect processes, all of which are registered. */
export function withRegistered(
  { redirects: count, ttlMs, env = {}, database: makeDatabase = () => createTestDatabase("main") }: Options,
  scenario: (at: Registered) => Promise<void>,
) {
  return closingAfterwards(async (later) => {
    const database = await makeDatabase();
    later(database.drop);
    const startWrite = () => startService("write", { DATABASE_URL: database.url, CACHE_TTL_MS: String(ttlMs) });
    let write = await startWrite();
    later(() => write.stop());
    const adminKey = await makeAdminKey(database.url);
    const http = createHttpClient(64);
    later(http.close);
    const api: Registered["api"] = (...call) => createApiClient(http, write.url, adminKey)(...call);
    const redirects: RedirectProcess[] = [];
    later(() => Promise.all(redirects.map((redirect) => redirect.stop())));
    const add = async (more: Record<string, string> = {}, url = database.url) => {
      const redirect = await startRedirect(url, { CACHE_TTL_MS: String(ttlMs), ...env, ...more });
      redirects.push(redirect);
      return redirect;
    };
    await Promise.all([waitUntilReady(write), ...Array.from({ length: count }, () => add())]);
    const addresses = async () => {
      const { json } = await api<{ items: { address: string }[] }>("GET", "/v1/instances");
      return json.items.map(({ address }) => address);
    };
    const registered = async () => (await addresses()).length === count;
    await waitFor("every redirect process in the registry", registered);
    await scenario({
      ...{ sql: database.sql, databaseUrl: database.url, redirects, add, api, addresses },
      write: () => write,
      async restartWrite(between = async () => {}) {
        await write.stop();
        await between();
        write = await startWrite();
        await waitUntilReady(write);
      },
      async create(prefix, n) {
        const codes = Array.from({ length: n }, (_, index) => `${prefix}${index + 1}`);
        const links = codes.map((alias) => ({ alias, target: targetOf(alias) }));
        const { status } = await api("POST", "/v1/links:batch", { links });
        if (status !== 200) throw new Error(`links were not created: ${status}`);
        return codes;
      },
      async revoke(code, query = "") {
        const sentAt = performance.now();
        const { status, json } = await api<{ effective: Effective }>("DELETE", `/v1/links/${code}${query}`);
        return { status, effective: json.effective, sentAt, answeredAt: performance.now() };
      },
    });
  });
}

/**
 * Asks each process for a link again and again, from when it leads on until `stop`.
 * @returns what stops it, and gives every answer
 */
export async function ask(redirects: readonly RedirectProcess[], code: string): Promise<() => Promise<Visit[]>> {
  for (const { status } of redirects) await waitFor(`a redirect for ${code}`, async () => (await status(code)) === 302);
  let over = false;
  const asking = redirects.map(async ({ visit }) => {
    const visits: Visit[] = [];
    while (!over) {
      visits.push(await visit(code));
      await pause(ASK_EVERY_MS);
    }
    return visits;
  });
  return async () => {
    over = true;
    return (await Promise.all(asking)).flat();
  };
}

/** Answers with the old target to requests that were sent after a moment. */
export function oldAfter(visits: readonly Visit[], moment: number): number {
  return visits.filter(({ status, sentAt }) => status === 302 && sentAt > moment).length;
}
