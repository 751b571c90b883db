// What becomes of a click, and of the redirect it came from, while statistics work, are away, are locked, or go unheard.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  createApiClient,
  createHttpClient,
  createTestDatabase,
  type FaultMode,
  type HttpRequest,
  mapConcurrently,
  type RunningService,
  readMetric,
  type Stack,
  type StackOptions,
  startFaultProxy,
  startStack,
  type TestDatabase,
  testServerUrl,
  waitFor,
} from "@linkfence/testkit";
import { countClicks, settleClickAccount } from "./click-account.ts";
import { type LossyRelay, startLossyRelay } from "./lossy-relay.ts";
import type { EvidenceCase, Report } from "./report.ts";

const LINK = "followed";
/** How long a visitor waits: a redirect that rests on memory or on one query takes milliseconds. */
const PATIENCE_MS = 1000;
/** Requests under way at once. */
const WIDTH = 8;
/** So that the ingest tells soon that it cannot store a batch. */
const QUICK_INGEST = { WRITE_TIMEOUT_MS: "1000", QUERY_TIMEOUT_MS: "500" };

/** How many visitors got which status, or no answer in time. */
type Statuses = Partial<Record<number | "timeout", number>>;

type Trial = {
  stack: Stack;
  redirect: RunningService;
  api: ReturnType<typeof createApiClient>;
  follow: (count: number, path?: string, request?: HttpRequest) => Promise<Statuses>;
};

/** Runs `use` on the whole product, with one link. */
async function withProduct(options: StackOptions, use: (trial: Trial) => Promise<void>): Promise<void> {
  const stack = await startStack(options);
  const http = createHttpClient(WIDTH);
  try {
    const [redirect] = stack.redirects;
    if (!redirect) throw new Error("no redirect process");
    const api = createApiClient(http, stack.write.url, stack.adminKey);
    await api("POST", "/v1/links", { target: "https://example.com/", alias: LINK });
    await use({ stack, redirect, api, follow: createVisitors(redirect.url) });
  } finally {
    http.close();
    await stack.stop();
  }
}

/** Visitors who follow the link, a few at a time, and give up when no answer comes. */
function createVisitors(base: string): Trial["follow"] {
  return async (count, path = `/${LINK}`, request = {}) => {
    const http = createHttpClient(WIDTH);
    const statuses: Statuses = {};
    await mapConcurrently(Array.from({ length: count }), WIDTH, async () => {
      const answer = await http.send(base, path, { ...request, timeoutMs: PATIENCE_MS }).catch(() => null);
      const status = answer?.status ?? "timeout";
      statuses[status] = (statuses[status] ?? 0) + 1;
    });
    http.close();
    return statuses;
  };
}

/** Waits until every click is accounted for, and holds the account against the database and the redirects answered. */
async function judgeAccount(report: Report, { stack, redirect }: Trial, redirects: number) {
  const account = await settleClickAccount(redirect);
  const dropped = Object.values(account.dropped).reduce((sum, count) => sum + count, 0);
  const { rows } = await countClicks(stack.stats);
  report.check("clicks accepted = redirects answered", account.accepted, redirects);
  report.check("rows + dropped = redirects answered", rows + dropped, redirects);
  report.check("rows as the redirect counts them", account.inserted + account.duplicate, rows);
  return { rows, dropped, account };
}

export const s1: EvidenceCase = {
  id: "S1",
  shows: "twenty clicks are twenty rows, and none is dropped",
  async run(report) {
    await withProduct({}, async (trial) => {
      const statuses = await trial.follow(20);
      report.check("redirects", statuses, { 302: 20 });
      const startedAt = performance.now();
      const { rows, dropped } = await judgeAccount(report, trial, 20);
      report.check("rows and dropped", [rows, dropped], [20, 0]);
      report.note(`all of them stored ${(performance.now() - startedAt).toFixed(0)} ms after the last redirect`);
    });
  },
};

/** Fewer than the clicks, so that some have to be dropped. */
const SMALL_RING = 8;

export const s2: EvidenceCase = {
  id: "S2",
  shows:
    "with the statistics database out of reach every redirect is answered, and afterwards rows and dropped clicks add up to the redirects",
  async run(report) {
    for (const mode of ["refuse", "hang"] as const) await followCutOff(report, mode);
  },
};

async function followCutOff(report: Report, mode: FaultMode): Promise<void> {
  const proxy = await startFaultProxy(Number(new URL(testServerUrl()).port));
  const redirectEnv = { CLICK_QUEUE_CAPACITY: String(SMALL_RING) };
  try {
    await withProduct({ redirectEnv, ingestEnv: QUICK_INGEST, through: { stats: proxy.through } }, async (trial) => {
      const { follow, api } = trial;
      report.note(`the connection to the statistics database: ${mode}`);
      proxy.set(mode);
      report.check("redirects", await follow(30), { 302: 30 });
      report.check("unknown links", await follow(10, "/unknown"), { 404: 10 });
      report.check("wrong methods", await follow(10, `/${LINK}`, { method: "POST" }), { 405: 10 });
      const { status, json } = await api<{ code: string }>("GET", `/v1/links/${LINK}/stats`);
      report.check("statistics of a link", [status, json.code], [503, "statistics-unavailable"]);
      const created = await api("POST", "/v1/links", { target: "https://example.com/still" });
      report.check("a new link", created.status, 201);
      report.check("rows meanwhile", (await countClicks(trial.stack.stats)).rows, 0);

      proxy.set("pass");
      proxy.reset();
      const { rows, dropped } = await judgeAccount(report, trial, 30);
      report.check("some were dropped, some were kept", [dropped > 0, rows > 0], [true, true]);
      report.figure(`${mode}: ${rows} stored + ${dropped} dropped = 30`);
    });
  } finally {
    await proxy.close();
  }
}

/** Runs `work` while another session holds the table of clicks in the strongest mode. */
async function whileLocked(stats: TestDatabase, work: () => Promise<void>): Promise<void> {
  await stats.sql.begin(async (sql) => {
    await sql`LOCK TABLE click IN ACCESS EXCLUSIVE MODE`;
    await work();
  });
}

export const s3: EvidenceCase = {
  id: "S3",
  shows:
    "while another session locks the table of clicks every redirect is answered; storing fails by its lock timeout and is repeated until all are stored",
  async run(report) {
    await withProduct({}, async (trial) => {
      const { stack, follow } = trial;
      const timedOut = () => readFailures(stack.ingest, "55P03");
      await whileLocked(stack.stats, async () => {
        report.check("redirects", await follow(20), { 302: 20 });
        await waitFor("two lock timeouts", async () => (await timedOut()) >= 2);
      });
      const { rows, dropped } = await judgeAccount(report, trial, 20);
      report.check("rows and dropped", [rows, dropped], [20, 0]);
      report.figure(`${await timedOut()} batches failed with 55P03 (lock not available)`);
    });
  },
};

/** How many batches failed with that SQLSTATE; the sample is there from the first one on. */
async function readFailures(ingest: RunningService, sqlstate: string): Promise<number> {
  return readMetric(ingest, `linkfence_ingest_batches_failed_total{sqlstate="${sqlstate}"}`).catch(() => 0);
}

export const nc2: EvidenceCase = {
  id: "NC2",
  shows: "a redirect that stores its click before it answers does not answer while the table is locked",
  control: true,
  async run(report) {
    const stats = await createTestDatabase("stats");
    const naive = await startNaiveRedirect(stats);
    try {
      const follow = createVisitors(naive.url);
      report.check("redirects while nobody holds the table", await follow(3), { 302: 3 });
      await whileLocked(stats, async () => {
        report.check("redirects", await follow(3), { timeout: 3 });
      });
    } finally {
      await naive.close();
      await stats.drop();
    }
  },
};

async function startNaiveRedirect({ sql }: TestDatabase) {
  await sql`SELECT make_click_days('{}', 1, 1)`;
  const server = createServer(async (_request, response) => {
    await sql`
      INSERT INTO click (click_id, code, link_version, clicked_at)
      VALUES ((left(first_click_id((now() AT TIME ZONE 'UTC')::date)::text, 13) || substr(gen_random_uuid()::text, 14))::uuid,
              ${LINK}, 1, now())`;
    response.writeHead(302, { Location: "https://example.com/" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close(): Promise<void> {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

export const s4: EvidenceCase = {
  id: "S4",
  shows:
    "a batch whose acknowledgement is lost after the commit is sent again whole, with the same ids, and counted once",
  async run(report) {
    let ingestUrl = "";
    const relay = await startLossyRelay(() => ingestUrl);
    try {
      await withProduct({ redirectEnv: { CLICK_INGEST_URL: relay.url } }, async (trial) => {
        ingestUrl = trial.stack.ingest.url;
        report.check("redirects", await trial.follow(10), { 302: 10 });
        const { rows, account } = await judgeAccount(report, trial, 10);
        judgeRepetition(report, relay);
        report.check("rows", rows, 10);
        const { inserted, duplicate } = account;
        report.check("as the redirect was told", { inserted, duplicate }, { inserted: 0, duplicate: 10 });
        report.figure(`${relay.batches.length / 2} acknowledgements lost, ${duplicate} duplicates recognised`);
      });
    } finally {
      await relay.close();
    }
  },
};

/** Each batch has to come twice, and the second time as it was the first. */
function judgeRepetition(report: Report, { batches }: LossyRelay): void {
  const lost = batches.filter(({ answered }) => !answered).map(({ ids }) => ids);
  const again = batches.filter(({ answered }) => answered).map(({ ids }) => ids);
  const lengths = (sent: readonly string[][]) => sent.map(({ length }) => length);
  report.check(
    "clicks in the batches sent again, as in those whose acknowledgement was lost",
    lengths(again),
    lengths(lost),
  );
  const known = new Set(lost.flat());
  report.check(
    "ids that are new when sent again",
    again.flat().filter((id) => !known.has(id)),
    [],
  );
}
