// Click-ingest and its database are killed again and again under a steady stream of visitors; the redirect stays up.
import { setTimeout as pause } from "node:timers/promises";
import {
  createHttpClient,
  createTestDatabase,
  findFreePorts,
  keepOn,
  type RunningService,
  readMetric,
  startService,
  waitFor,
  waitUntilReady,
} from "@linkfence/testkit";
import { countClicks, settleClickAccount } from "./click-account.ts";
import { closingAfterwards } from "./closing.ts";
import { insertLinks } from "./link-rows.ts";
import { type OwnServer, startOwnServer } from "./own-server.ts";
import type { EvidenceCase, Report } from "./report.ts";

/** Of the ingest and its database in turn: `pnpm evidence S5 --times 2` makes thirty of them. */
const ROUNDS = 15;
const LINKS = 20;
/** Each sends a request every few milliseconds: a batch is on its way nearly always, and nobody is overloaded. */
const VISITORS = 2;
/** A second or two of visitors: a longer outage has to drop some. */
const RING = 500;
/** The moment of a kill moves through this time in steps that share no divisor with it. */
const MOMENTS_MS = 50;
const STEP_MS = 17;

export const s5: EvidenceCase = {
  id: "S5",
  shows:
    "click-ingest and its database are killed with SIGKILL fifteen times: no redirect fails, no click is counted twice, and rows and dropped clicks add up to the redirects",
  run: (report) =>
    closingAfterwards(async (later) => {
      const main = await createTestDatabase("main");
      later(main.drop);
      const stats = await startOwnServer("stats");
      later(stats.close);
      const ingest = await startIngest(stats);
      later(ingest.stop);
      const env = { DATABASE_URL: main.url, CLICK_INGEST_URL: ingest.url, CLICK_QUEUE_CAPACITY: String(RING) };
      const redirect = await startService("redirect", env);
      later(redirect.stop);
      const codes = await insertLinks(main.sql, "link", LINKS);
      await waitUntilReady(redirect);
      const visits = startVisits(redirect, codes);
      later(visits.stop);
      await killInRounds(report, stats, ingest);
      await visits.stop();
      await judge(report, { redirect, stats, visits });
    }),
};

type Ingest = Awaited<ReturnType<typeof startIngest>>;

/** Starts click-ingest on a port to which every successor of it returns. */
async function startIngest(stats: OwnServer) {
  const PORT = String(await findFreePorts(1));
  const start = () => startService("click-ingest", { STATS_DATABASE_URL: stats.url, PORT });
  let service = await start();
  return {
    url: service.url,
    rowsStored: () => readMetric(service, "linkfence_ingest_rows_stored_total"),
    async kill(): Promise<void> {
      service.kill("SIGKILL");
      await service.exited;
    },
    async start(): Promise<void> {
      service = await start();
    },
    stop: () => service.stop(),
  };
}

/** Follows the links without a break, and counts the answers. */
function startVisits(redirect: RunningService, codes: readonly string[]) {
  const http = createHttpClient(VISITORS);
  const ended = new AbortController();
  const redirects = new Map<string, number>();
  const others: unknown[] = [];
  let next = 0;
  const visit = async () => {
    const code = codes[next++ % codes.length] ?? "";
    const answer = await http.send(redirect.url, `/${code}`).catch((error: unknown) => String(error));
    if (typeof answer === "string") others.push(answer);
    else if (answer.status === 302) redirects.set(code, (redirects.get(code) ?? 0) + 1);
    else others.push(answer.status);
  };
  const visitors = Array.from({ length: VISITORS }, () => keepOn(ended.signal, visit));
  return {
    /** Answered with a redirect, by code. */
    redirects,
    /** Every other status, and every failure. */
    others,
    async stop(): Promise<void> {
      ended.abort();
      await Promise.all(visitors);
      http.close();
    },
  };
}

/** Kills both, the one or the other first, each round at another moment after the first clicks of the round were stored. */
async function killInRounds(report: Report, stats: OwnServer, ingest: Ingest): Promise<void> {
  let recovered = 0;
  const startedAt = performance.now();
  for (let round = 0; round < ROUNDS; round += 1) {
    await waitFor("clicks to be stored", async () => (await ingest.rowsStored()) > 0);
    await pause((round * STEP_MS) % MOMENTS_MS);
    const kills = [ingest.kill, stats.kill];
    for (const kill of round % 2 === 0 ? kills : kills.reverse()) await kill();
    await Promise.all([stats.start(), ingest.start()]);
    if (stats.log().some((line) => line.includes("automatic recovery in progress"))) recovered += 1;
  }
  report.check("recoveries of the database from a crash", recovered, ROUNDS);
  report.note(`${ROUNDS} rounds in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
}

type Ended = { redirect: RunningService; stats: OwnServer; visits: ReturnType<typeof startVisits> };

async function judge(report: Report, { redirect, stats, visits }: Ended): Promise<void> {
  const account = await settleClickAccount(redirect);
  const answered = [...visits.redirects.values()].reduce((sum, count) => sum + count, 0);
  const dropped = Object.values(account.dropped).reduce((sum, count) => sum + count, 0);
  const { rows } = await countClicks(stats);
  report.check("answers that were no redirect", visits.others, []);
  report.check("clicks accepted = redirects answered", account.accepted, answered);
  report.check("rows + dropped = redirects answered", rows + dropped, answered);
  report.check("rows as the redirect counts them", account.inserted + account.duplicate, rows);
  report.check("links with more rows than redirects", await readExcess(stats, visits.redirects), []);
  report.figure(
    `${answered} redirects = ${rows} rows + ${dropped} dropped; ${account.duplicate} sent again after a commit`,
  );
}

/** Links under which there are more clicks than they were followed. */
async function readExcess({ sql }: OwnServer, followed: ReadonlyMap<string, number>) {
  const rows = await sql<
    { code: string; clicks: number }[]
  >`SELECT code, count(*)::int AS clicks FROM click GROUP BY code`;
  return rows.filter(({ code, clicks }) => clicks > (followed.get(code) ?? 0));
}
