// Clicks through the ends of their process, and through an ingest that is away, hangs, or talks nonsense.
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { readMetric, waitFor } from "@linkfence/testkit";
import { countClicks, settleClickAccount } from "./click-account.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { type SpooledRedirect, VISITORS, withSpooledRedirect } from "./spooled-redirect.ts";

/** A few in each run: `pnpm evidence C1 --times 67` makes two hundred of them. */
const KILLS = 3;
/** A kill comes within this time after some redirects of its process, at random. */
const MOMENTS_MS = 100;
const ANSWERED_BEFORE = 20;
/** What is taken from the ring at once: a kill may come between that and its writing. */
const GROUP = 500;

export const c1: EvidenceCase = {
  id: "C1",
  shows:
    "a redirect process is killed with SIGKILL again and again under visitors: no click is counted twice, and what is missing in the end is less than a group for each kill, and less than the bound that is reported",
  run: (report) =>
    withSpooledRedirect({}, async (at) => {
      await at.kill();
      await at.start({ CLICK_INGEST_URL: await at.startIngest() });
      const visits = at.visit();
      for (let kill = 0; kill < KILLS; kill += 1) {
        const before = visits.answered();
        await waitFor("redirects", () => visits.answered() >= before + ANSWERED_BEFORE);
        await pause(Math.random() * MOMENTS_MS);
        await at.kill();
        await at.start();
      }
      const statuses = await visits.stop();
      await judge(report, at, statuses);
    }),
};

async function judge(report: Report, at: SpooledRedirect, statuses: Record<number, number>): Promise<void> {
  const answered = statuses[302] ?? 0;
  const { dropped } = await settleClickAccount(at.service());
  const lostMax = await readMetric(at.service(), "linkfence_clicks_lost_unclean_max_total");
  const { rows, ids } = await countClicks(at.stats);
  const missing = answered - rows - Object.values(dropped).reduce((sum, count) => sum + count, 0);
  report.check("answers but redirects, and none while no process listens", Object.keys(statuses).sort(), ["0", "302"]);
  report.check("clicks counted twice", rows - ids, 0);
  // Whoever was not answered may have been counted: the redirect had been decided.
  report.check("rows beyond redirects and requests cut off", rows > answered + VISITORS * (KILLS + 1), false);
  report.check(`missing beyond ${GROUP} for each kill`, missing > GROUP * KILLS, false);
  report.check("missing beyond the bound that is reported", missing > lostMax, false);
  report.figure(
    `${KILLS} kills, ${answered} redirects, ${rows} rows, ${Math.max(0, missing)} missing (reported: at most ${lostMax})`,
  );
}

/** What an ingest does that stores nothing. */
const INGESTS: Record<string, RequestListener> = {
  hangs: () => {},
  "answers 500": (_request, response) => void response.writeHead(500).end("{}"),
  "answers nonsense": (_request, response) => void response.end("<html>"),
  "never ends its answer": (_request, response) => void response.write("{"),
};
const CLICKS = 50;

export const c2: EvidenceCase = {
  id: "C2",
  shows:
    "while the ingest is away, hangs or answers nonsense every redirect is answered; the process is then killed, and the next one stores every one of its clicks, once",
  run: (report) => followWithout(report, {}, 1),
};

export const c2c: EvidenceCase = {
  id: "C2c",
  shows: "without a spool they are all gone, and nobody is told how many",
  control: true,
  run: (report) => followWithout(report, { CLICK_SPOOL: "off" }, 0),
};

/** Follows links while the ingest fails in each way, kills the process, and looks what its successor stores. */
async function followWithout(report: Report, env: Record<string, string>, share: number): Promise<void> {
  let behave: RequestListener = () => {};
  const ingest = createServer((request, response) => behave(request, response));
  await new Promise<void>((resolve) => ingest.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(ingest.address() as AddressInfo).port}`;
  await withSpooledRedirect({ env: { ...env, CLICK_INGEST_URL: url } }, async (at) => {
    for (const [what, listener] of Object.entries(INGESTS)) {
      behave = listener;
      ingest.closeAllConnections();
      report.check(`redirects while it ${what}`, await at.follow(CLICKS), { 302: CLICKS });
    }
    ingest.closeAllConnections();
    ingest.close();
    report.check("redirects while it is away", await at.follow(CLICKS), { 302: CLICKS });
    const clicks = share * CLICKS * (Object.keys(INGESTS).length + 1);
    await written(at, clicks);
    await at.kill();
    await at.start({ CLICK_INGEST_URL: await at.startIngest() });
    const account = await settleClickAccount(at.service());
    const { rows, ids } = await countClicks(at.stats);
    report.check("rows, and distinct ones", [rows, ids], [clicks, clicks]);
    report.check("left by the process that was killed", account.recovered, clicks);
    if (clicks > 0) return;
    const bound = await readMetric(at.service(), "linkfence_clicks_lost_unclean_max_total");
    report.check("reported as lost at the most", bound, 0);
    report.figure(`${CLICKS * (Object.keys(INGESTS).length + 1)} clicks lost`);
  }).finally(() => ingest.close());
}

/** Waits until every click is written, where there is something to write to. */
async function written(at: SpooledRedirect, kept: number): Promise<void> {
  if (kept === 0) return;
  await waitFor("clicks on disk", async () => (await readMetric(at.service(), "linkfence_clicks_at_risk")) === 0);
}
