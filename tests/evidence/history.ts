// A reader's place in the change log, through everything that can become of the log: the server restarted, rows gone,
// and another history under the same numbers.
import { type FaultProxy, startFaultProxy, waitFor } from "@linkfence/testkit";
import { closingAfterwards } from "./closing.ts";
import { insertLinks, revokeLinks } from "./link-rows.ts";
import { type OwnServer, startOwnServer } from "./own-server.ts";
import { promoteLagging } from "./promotion.ts";
import { type RedirectProcess, startRedirect } from "./redirect-process.ts";
import type { EvidenceCase, Report } from "./report.ts";
import { lastOldMs, revokeWatched } from "./revocation-windows.ts";

const POLL_MS = 100;
const QUERY_TIMEOUT_MS = 1000;
/** So long that nothing below takes effect because an entry ran out. */
const TTL_MS = 60_000;
/** A read that fails at its deadline, the pause after it, and the read that brings the change. */
const RECONNECTED_MS = 2 * QUERY_TIMEOUT_MS + POLL_MS;

const SETTINGS = {
  POLL_INTERVAL_MS: String(POLL_MS),
  QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS),
  CACHE_TTL_MS: String(TTL_MS),
  DEBUG_ENTRY_AGE: "true",
};

export const r9: EvidenceCase = {
  id: "R9",
  shows:
    "a reader of the change log goes on after a restart of the database, and forgets everything when the log is not the one it remembers",
  async run(report) {
    await Promise.all([keepAndLosePlace(report), promoteLagging(report)]);
  },
};

async function keepAndLosePlace(report: Report): Promise<void> {
  await closingAfterwards(async (later) => {
    const server = await startOwnServer();
    later(server.close);
    await restart(report, server);
    await trim(report, server);
  });
}

/** The cursor survives the server, whether it went in peace or not: what was in memory stays there. */
async function restart(report: Report, server: OwnServer): Promise<void> {
  await closingAfterwards(async (later) => {
    const redirect = await startRedirect(server.url, SETTINGS);
    later(redirect.stop);
    const [kept = "", before = "", ...revoked] = await insertLinks(server.sql, "restarted", 4);
    await revokeWatched([redirect], before, () => revokeLinks(server.sql, before));
    const bornBy = performance.now();
    await expectToLeadOn(report, redirect, [kept, ...revoked]);
    const warmAt = performance.now();
    for (const end of ["stop", "kill"] as const) {
      const code = revoked.pop() ?? "";
      const windows = await revokeWatched([redirect], code, async () => {
        await server[end]();
        await server.start();
        await revokeLinks(server.sql, code);
      });
      const oldMs = lastOldMs(windows);
      report.check(
        `${end} and start: the next revocation takes ${RECONNECTED_MS} ms at the most`,
        oldMs <= RECONNECTED_MS,
        true,
      );
      report.figure(
        `${end} and start: last old target ${oldMs.toFixed(0)} ms after the commit (bound ${RECONNECTED_MS} ms)`,
      );
    }
    const { status, headers, sentAt } = await redirect.visit(kept);
    const age = Number(headers["x-entry-age-ms"]);
    report.check("what was in memory before is answered from there", status === 302 && age >= sentAt - warmAt, true);
    report.check("its age is no older than the entry can be", age <= performance.now() - bornBy, true);
    report.check("flushes", await redirect.flushes(), { started: 1 });
    report.check("the process runs and found nothing wrong with itself", redirect.isUnhurt(), true);
  });
}

/** Rows that a reader had still to read, or all of them, are gone when it comes back. */
async function trim(report: Report, server: OwnServer): Promise<void> {
  await closingAfterwards(async (later) => {
    const proxy = await startFaultProxy(server.port);
    later(proxy.close);
    const redirect = await startRedirect(proxy.through(server.url), SETTINGS);
    later(redirect.stop);
    const codes = await insertLinks(server.sql, "trimmed", 8);
    const [kept = "", known = "", ...rest] = codes;
    await expectToLeadOn(report, redirect, codes);
    await revokeWatched([redirect], known, () => revokeLinks(server.sql, known));

    // Without a flush these two would be answered from memory for a minute to come: no read brings them any more.
    await whileCutOff(proxy, redirect, async () => {
      const seqs = await revokeLinks(server.sql, ...rest.slice(0, 2));
      await server.sql`DELETE FROM link_change WHERE seq <= ${Math.max(...seqs)}`;
      await revokeLinks(server.sql, ...rest.slice(2, 4));
    });
    await expectFlush(report, redirect, { cause: "trimmed", gone: rest.slice(0, 4), kept });
    await expectToLeadOn(report, redirect, rest.slice(4));
    await whileCutOff(proxy, redirect, async () => {
      await revokeLinks(server.sql, ...rest.slice(4, 5));
      await server.sql`DELETE FROM link_change`;
    });
    await expectFlush(report, redirect, { cause: "went-back", gone: rest.slice(4, 5), kept });

    const last = rest[5] ?? "";
    const windows = await revokeWatched([redirect], last, () => revokeLinks(server.sql, last));
    report.check("from the empty log on, the reader goes on", lastOldMs(windows) <= RECONNECTED_MS, true);
    // Whoever forgot starts anew, and forgets once more what was read in between. A log that began empty and does not
    // begin with the first number may have lost what came before.
    report.check("flushes", await redirect.flushesAfterStarts(4), { started: 4, trimmed: 2, "went-back": 1 });
    report.check("the process runs and found nothing wrong with itself", redirect.isUnhurt(), true);
  });
}

async function expectToLeadOn(report: Report, redirect: RedirectProcess, codes: readonly string[]): Promise<void> {
  const statuses = await Promise.all(codes.map(redirect.status));
  report.check(
    "links are followed into memory",
    statuses,
    codes.map(() => 302),
  );
}

async function whileCutOff(proxy: FaultProxy, redirect: RedirectProcess, act: () => Promise<unknown>): Promise<void> {
  proxy.set("refuse");
  const failures = await redirect.metric("linkfence_sync_failures_total");
  await waitFor("a read that fails", async () => (await redirect.metric("linkfence_sync_failures_total")) > failures);
  await act();
  proxy.set("pass");
}

type Expected = { cause: string; gone: readonly string[]; kept: string };

/** From the return of the connection on, the reader finds the fault within its bound, and misses nothing. */
async function expectFlush(report: Report, redirect: RedirectProcess, { cause, gone, kept }: Expected): Promise<void> {
  const backAt = performance.now();
  const last = gone[0] ?? "";
  const { sentAt } = await waitFor(`${last} to be gone`, async () => {
    const answer = await redirect.visit(last);
    return answer.status === 410 && answer;
  });
  report.check(`${cause}: found within ${RECONNECTED_MS} ms`, sentAt - backAt <= RECONNECTED_MS, true);
  report.check(
    `${cause}: revoked meanwhile`,
    await Promise.all(gone.map(redirect.status)),
    gone.map(() => 410),
  );
  report.check(`${cause}: a link that was not`, await redirect.status(kept), 302);
  report.check(`${cause}: counted`, (await redirect.flushes())[cause], 1);
}
