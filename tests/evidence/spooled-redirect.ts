// A redirect process with a spool, on a port and a directory to which its successors return, and those who follow links.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createHttpClient,
  createTestDatabase,
  findFreePorts,
  keepOn,
  mapConcurrently,
  type RunningService,
  startService,
  type TestDatabase,
  waitUntilReady,
} from "@linkfence/testkit";
import { closingAfterwards } from "./closing.ts";
import { insertLinks } from "./link-rows.ts";

/** Requests under way at once: as many clicks may have been accepted unanswered when a process is killed. */
export const VISITORS = 4;

export type SpooledRedirect = {
  codes: readonly string[];
  stats: TestDatabase;
  spool: string;
  /** The process that runs now. */
  service(): RunningService;
  /** Ends it by SIGKILL. */
  kill(): Promise<void>;
  /** Starts the next one, with these settings in the place of former ones, and waits until it is ready. */
  start(env?: Record<string, string>): Promise<void>;
  /** Starts click-ingest on the statistics database, on that port. Returns its URL. */
  startIngest(port?: number): Promise<string>;
  /** Follows the links so often, with this user agent. Returns how often each status was the answer; 0 for none. */
  follow(count: number, userAgent?: string): Promise<Record<number, number>>;
  /** Follows the links without a break until `stop`, which returns the same. */
  visit(): { stop: () => Promise<Record<number, number>>; answered: () => number };
};

type Options = {
  env?: Record<string, string>;
  /** Where the spool is; by default a new directory, which goes afterwards. */
  spool?: string;
};

/** Runs a scenario on a redirect process that is ready. Its ingest is away until another one is named. */
export function withSpooledRedirect({ env = {}, spool }: Options, scenario: (at: SpooledRedirect) => Promise<void>) {
  return closingAfterwards(async (later) => {
    const [main, stats] = await Promise.all([createTestDatabase("main"), createTestDatabase("stats")]);
    later(() => Promise.all([main.drop(), stats.drop()]));
    const codes = await insertLinks(main.sql, "link", 10);
    const directory = spool ?? (await mkdtemp(join(tmpdir(), "linkfence-spool-")));
    if (spool === undefined) later(() => rm(directory, { recursive: true, force: true }));
    const first = await findFreePorts(2);
    let settings: Record<string, string> = {
      ...{ DATABASE_URL: main.url, PORT: String(first), OPS_PORT: String(first + 1), CLICK_SPOOL_DIR: directory },
      ...{ CLICK_INGEST_URL: "http://127.0.0.1:9", CLICK_FLUSH_TIMEOUT_MS: "0", ...env },
    };
    const start = async (over: Record<string, string> = {}) => {
      settings = { ...settings, ...over };
      service = await startService("redirect", settings);
      await waitUntilReady(service);
    };
    let service = await startService("redirect", settings);
    later(() => service.stop());
    await waitUntilReady(service);
    await scenario({
      ...{ codes, stats, spool: directory, start },
      service: () => service,
      async kill() {
        service.kill("SIGKILL");
        await service.exited;
      },
      async startIngest(port = 0) {
        const ingest = await startService("click-ingest", { STATS_DATABASE_URL: stats.url, PORT: String(port) });
        later(() => ingest.stop());
        await waitUntilReady(ingest);
        return ingest.url;
      },
      async follow(count, userAgent = "evidence") {
        const visits = createVisits(`http://127.0.0.1:${first}`, codes, userAgent);
        await mapConcurrently(Array.from({ length: count }), VISITORS, visits.one);
        visits.close();
        return visits.statuses;
      },
      visit() {
        const visits = createVisits(`http://127.0.0.1:${first}`, codes, "evidence");
        const ended = new AbortController();
        const all = Promise.all(Array.from({ length: VISITORS }, () => keepOn(ended.signal, visits.one)));
        return {
          answered: () => visits.statuses[302] ?? 0,
          async stop() {
            ended.abort();
            await all;
            visits.close();
            return visits.statuses;
          },
        };
      },
    });
  });
}

function createVisits(base: string, codes: readonly string[], userAgent: string) {
  const http = createHttpClient(VISITORS);
  const statuses: Record<number, number> = {};
  let next = 0;
  return {
    statuses,
    async one(): Promise<void> {
      const code = codes[next++ % codes.length] ?? "";
      const answer = await http.send(base, `/${code}`, { headers: { "User-Agent": userAgent } }).catch(() => null);
      const status = answer?.status ?? 0;
      statuses[status] = (statuses[status] ?? 0) + 1;
    },
    close: http.close,
  };
}
