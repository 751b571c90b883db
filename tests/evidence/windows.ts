// How long a revoked or expired link lives on, from real processes. A request counts from when it was sent; the bounds
// are computed from the settings and the sampling interval of the watcher.
import { waitFor } from "@linkfence/testkit";
import { followExpiry } from "./expiries.ts";
import { insertLinks } from "./link-rows.ts";
import type { RedirectProcess } from "./redirect-process.ts";
import type { EvidenceCase, Report } from "./report.ts";
import {
  entryAgeMs,
  type Fleet,
  max,
  revokeOneByOne,
  spread,
  type Window,
  warm,
  withFleet,
} from "./revocation-windows.ts";

/** Deadline of a query: a read of the log or of a link ends within it, or is repeated. */
const QUERY_MS = 1000;

const settings = (pollMs: number, ttlMs: number, listen: boolean) => ({
  POLL_INTERVAL_MS: String(pollMs),
  CACHE_TTL_MS: String(ttlMs),
  QUERY_TIMEOUT_MS: String(QUERY_MS),
  LISTEN_ENABLED: String(listen),
});

/** Makes links, brings them into memory everywhere, and revokes them one after the other. */
async function revokeMany(fleet: Fleet, count: number): Promise<Window[][]> {
  const codes = await insertLinks(fleet.sql, "link", count);
  await warm(fleet, codes);
  return revokeOneByOne(fleet, codes);
}

/** Every window ends within `boundMs` and the sampling of its watcher, and holds nothing but 302 and 410. */
function checkWindows(report: Report, windows: readonly Window[], boundMs: number): void {
  const late = windows.filter(({ goneMs, samplingMs }) => goneMs >= boundMs + samplingMs);
  report.check(`first 410 later than ${boundMs} ms and a sampling interval`, late.length, 0);
  report.check("answers other than 302 and 410", windows.flatMap(({ others }) => others).length, 0);
}

/** It is polls that find changes, and not the reads of the log that keep a process young, of which there is one a TTL/4. */
async function checkPolls(report: Report, { redirects }: Fleet, ttlMs: number): Promise<void> {
  const syncs = () => Promise.all(redirects.map(({ metric }) => metric("linkfence_syncs_total")));
  const [before, startedAt] = [await syncs(), performance.now()];
  const polled = async () => (await syncs()).every((count, index) => count >= (before[index] ?? 0) + 10);
  await waitFor("ten reads of the log by each process", polled);
  const tookMs = performance.now() - startedAt;
  report.check("ten polls take less than eight reads for youth would", tookMs < 8 * (ttlMs / 4), true);
}

const tell = (report: Report, windows: readonly Window[], boundMs: number) =>
  report.figure(
    `${spread(windows.map(({ goneMs }) => goneMs))} (bound ${boundMs.toLocaleString("en-US")} ms, ${windows.length} windows)`,
  );

export const r2: EvidenceCase = {
  id: "R2",
  shows:
    "by polling alone a revocation is in force everywhere within a poll and a query, and no entry older than TTL is used",
  async run(report) {
    const [pollMs, ttlMs] = [100, 2000];
    await withFleet(2, settings(pollMs, ttlMs, false), async (fleet) => {
      await checkPolls(report, fleet, ttlMs);
      const windows = (await revokeMany(fleet, 25)).flat();
      checkWindows(report, windows, pollMs + QUERY_MS);
      const tooOld = windows.filter(({ oldestMs }) => oldestMs >= ttlMs);
      report.check("windows with a redirect after the commit from an entry as old as TTL", tooOld.length, 0);
      tell(report, windows, pollMs + QUERY_MS);
    });
  },
};

export const r2n: EvidenceCase = {
  id: "R2n",
  shows: "with notifications a revocation is in force within a small part of the poll",
  async run(report) {
    const [pollMs, ttlMs, count] = [5000, 60_000, 200];
    await withFleet(2, settings(pollMs, ttlMs, true), async (fleet) => {
      const windows = (await revokeMany(fleet, count)).flat();
      checkWindows(report, windows, pollMs + QUERY_MS);
      const quick = windows.filter(({ goneMs }) => goneMs < pollMs / 10);
      report.check("at least 95 % within a tenth of the poll", quick.length >= windows.length * 0.95, true);
      tell(report, windows, pollMs + QUERY_MS);
    });
  },
};

export const r3: EvidenceCase = {
  id: "R3",
  shows: "with neither polls nor notifications a revocation is in force after a TTL, since no older entry is used",
  async run(report) {
    const ttlMs = 1500;
    await withFleet(2, settings(0, ttlMs, false), async (fleet) => {
      const [kept = "", ...codes] = await insertLinks(fleet.sql, "link", 6);
      await warm(fleet, [kept, ...codes]);
      const windows = (await revokeOneByOne(fleet, codes)).flat();
      const late = windows.filter(({ lastOldMs, samplingMs }) => lastOldMs >= ttlMs + samplingMs);
      report.check("the old target to a request sent a TTL after the commit", late.length, 0);
      checkWindows(report, windows, ttlMs + QUERY_MS);
      const oldest = max(await Promise.all(fleet.redirects.map((redirect) => oldestUsed(redirect, kept, 2 * ttlMs))));
      report.check("the oldest entry used for any redirect is younger than TTL", oldest < ttlMs, true);
      tell(report, windows, ttlMs + QUERY_MS);
    });
  },
};

/** Follows a link for some time. Returns the age of the oldest entry that was used, in ms; infinite when it was not followed. */
async function oldestUsed({ visit }: RedirectProcess, code: string, forMs: number): Promise<number> {
  let oldest = 0;
  for (const endsAt = performance.now() + forMs; performance.now() < endsAt; ) {
    const seen = await visit(code);
    oldest = Math.max(oldest, seen.status === 302 ? entryAgeMs(seen) : Number.POSITIVE_INFINITY);
  }
  return oldest;
}

export const r11: EvidenceCase = {
  id: "R11",
  shows: "of three processes the slowest, too, obeys each of a hundred revocations within the bound",
  async run(report) {
    const [pollMs, ttlMs, count] = [100, 60_000, 100];
    await withFleet(3, settings(pollMs, ttlMs, true), async (fleet) => {
      const slowest = (await revokeMany(fleet, count)).map((windows) =>
        windows.reduce((one, other) => (one.goneMs > other.goneMs ? one : other)),
      );
      report.check("revocations seen by every process", slowest.length, count);
      checkWindows(report, slowest, pollMs + QUERY_MS);
      tell(report, slowest, pollMs + QUERY_MS);
    });
  },
};

const LIFE_MS = 2000;

export const e1: EvidenceCase = {
  id: "E1",
  shows: "a link that is in memory ends at its instant on two processes: 302 before it, 410 from it on",
  run: (report) =>
    withFleet(2, settings(100, 60_000, true), async (fleet) =>
      report.figure(await followExpiry(report, fleet, { code: "ending", lifeMs: LIFE_MS })),
    ),
};
