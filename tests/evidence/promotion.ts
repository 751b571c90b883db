// A standby that lacks the end of its primary's history becomes the server: two embedded servers with streaming
// replication, and redirect processes whose connection is led from the one to the other.
import { type FaultProxy, mapConcurrently, meanwhile, startFaultProxy, waitFor } from "@linkfence/testkit";
import { closingAfterwards } from "./closing.ts";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import { type OwnServer, startOwnServer, startStandby } from "./own-server.ts";
import { type RedirectProcess, startRedirect, type Visit } from "./redirect-process.ts";
import type { Report } from "./report.ts";
import { lastOldMs, revokeWatched } from "./revocation-windows.ts";

const POLL_MS = 100;
const QUERY_TIMEOUT_MS = 1000;
const TTL_MS = 3000;
const BOUND_MS = POLL_MS + QUERY_TIMEOUT_MS;
/**
 * Changes that the standby never gets. A sequence is written ahead by 32 numbers: those the standby skips, and the
 * others it gives out a second time.
 */
const LOST = 80;
/** Revocations on the new server while nobody reads it yet, under numbers that were given out before. */
const UNSEEN = 8;
const FOLLOWED = 5;
const WIDTH = 16;

const SETTINGS = {
  POLL_INTERVAL_MS: String(POLL_MS),
  QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS),
  CACHE_TTL_MS: String(TTL_MS),
};

/** Promotes a standby that lags, under two processes: one that both servers know, and one that only the lost one knew. */
export async function promoteLagging(report: Report): Promise<void> {
  await closingAfterwards(async (later) => {
    const primary = await startOwnServer();
    later(primary.close);
    const replication = await startFaultProxy(primary.port);
    later(replication.close);
    const standby = await startStandby(primary, replication.port);
    later(standby.close);
    const path = await startFaultProxy(primary.port);
    later(path.close);
    const start = async () => {
      const redirect = await startRedirect(path.through(primary.url), SETTINGS);
      later(redirect.stop);
      return redirect;
    };

    const [before = ""] = await insertLinks(primary.sql, "before", 1);
    const lost = await insertLinks(primary.sql, "lost", LOST);
    const unseen = await insertLinks(primary.sql, "unseen", UNSEEN);
    const known = await start();
    await revokeWatched([known], before, () => revokeLinks(primary.sql, before));
    await catchUp(primary, standby);
    replication.set("refuse");
    const redirects = [known, await start()];

    const head = Math.max(...(await revokeLinks(primary.sql, ...lost)));
    for (const redirect of redirects) {
      await waitFor(
        "the last change of the primary",
        async () => (await redirect.metric("linkfence_applied_seq")) === head,
      );
      report.check("what the standby lacks is gone while the primary lives", await statuses(redirect, lost), [410]);
    }
    const seqs = await switchOver(report, { primary, standby, path, redirects, unseen });
    const again = seqs.filter((seq) => seq <= head).length;
    report.check(`revocations on the new server under numbers of lost ones (up to ${head})`, again, UNSEEN);
    await judgeAfterwards(report, standby, redirects);
    const [row] =
      await standby.sql`SELECT count(*)::int AS links FROM link WHERE code = ANY(${lost}) AND state = 'ACTIVE'`;
    report.note(`${row?.links} revocations were lost with the primary: an asynchronous standby had not got them`);
  });
}

/** Waits until the standby has everything. */
async function catchUp(primary: OwnServer, standby: OwnServer): Promise<void> {
  const [sent] = await primary.sql<{ lsn: string }[]>`SELECT pg_current_wal_lsn()::text AS lsn`;
  await waitFor("the standby to catch up", async () => {
    const [row] = await standby.sql`SELECT pg_last_wal_replay_lsn() >= ${sent?.lsn ?? ""}::pg_lsn AS there`;
    return row?.there === true;
  });
}

type Switch = {
  primary: OwnServer;
  standby: OwnServer;
  path: FaultProxy;
  redirects: readonly RedirectProcess[];
  unseen: readonly string[];
};

/** The primary dies, the standby is promoted, and links are revoked there before any process gets to it. */
async function switchOver(report: Report, { primary, standby, path, redirects, unseen }: Switch): Promise<number[]> {
  for (const redirect of redirects) report.check("links lead on before", await statuses(redirect, unseen), [302]);
  const visits: Visit[] = [];
  const visitAll = () =>
    Promise.all(redirects.flatMap(({ visit }) => unseen.map(async (code) => void visits.push(await visit(code)))));
  const { seqs, committedAt } = await meanwhile(visitAll, async () => {
    await primary.kill();
    await standby.sql`SELECT pg_promote()`;
    const seqs = await revokeLinks(standby.sql, ...unseen);
    const committedAt = performance.now();
    path.lead(standby.port);
    path.reset();
    for (const redirect of redirects)
      await waitFor("the revocations on the new server", async () => `${await statuses(redirect, unseen)}` === "410");
    return { seqs, committedAt };
  });
  const old = visits.filter(({ status }) => status === 302).map(({ sentAt }) => sentAt - committedAt);
  const late = old.filter((ms) => ms > TTL_MS).length;
  report.check(`old targets for requests sent a TTL (${TTL_MS} ms) after the commit`, late, 0);
  const others = visits.map(({ status }) => status).filter((status) => ![302, 410, 503].includes(status));
  report.check("answers that were neither 302, 410 nor 503", others, []);
  report.figure(
    `promotion: last old target ${Math.max(0, ...old).toFixed(0)} ms after the commit (bound ${TTL_MS} ms)`,
  );
  return seqs;
}

/** What was forgotten and why, revocations from here on, and whether memory agrees with the server that there is now. */
async function judgeAfterwards(
  report: Report,
  standby: OwnServer,
  redirects: readonly RedirectProcess[],
): Promise<void> {
  // Whoever forgot starts anew, and forgets once more what was read in between.
  const causes = [
    { started: 2, "epoch-changed": 1 },
    { started: 2, "registration-lost": 1 },
  ];
  for (const [index, redirect] of redirects.entries()) {
    report.check("flushes", await redirect.flushesAfterStarts(2), causes[index]);
    const codes = await insertLinks(standby.sql, `followed${index}-`, FOLLOWED);
    for (const code of codes) {
      const windows = await revokeWatched([redirect], code, () => revokeLinks(standby.sql, code));
      report.check(`a revocation takes ${BOUND_MS} ms at the most`, lastOldMs(windows) <= BOUND_MS, true);
    }
    const states = await standby.sql<{ code: string; state: string }[]>`SELECT code, state FROM link ORDER BY code`;
    const differing = await mapConcurrently(states, WIDTH, async ({ code, state }) =>
      (await redirect.status(code)) === (state === "ACTIVE" ? 302 : 410) ? [] : [code],
    );
    report.check("codes whose answer is not the new server's", differing.flat(), []);
    report.check("the process runs and found nothing wrong with itself", redirect.isUnhurt(), true);
  }
}

/** The different statuses among the answers for some codes. */
async function statuses(redirect: RedirectProcess, codes: readonly string[]): Promise<number[]> {
  return [...new Set(await mapConcurrently(codes, WIDTH, redirect.status))].sort();
}
